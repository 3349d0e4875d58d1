// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

var errCatalog = errors.New("with Liqo 1.x the broker is a catalog only: delete what deploy/ has installed, and apply deploy/catalog")

// mayRun returns an error unless the daemon can be what it is asked to be with a line of Liqo. All else that differs between the lines asks
// the line itself, or isAsked.
func (o *options) mayRun(with line.Line) error {
	if o.brokers() && !with.HasPlugin() {
		return errCatalog
	}
	return nil
}

// isAsked reports whether the API server asks the daemon about objects: wherever there is what deploy/ installs, and so not where the
// daemon is a catalog with Liqo 1.x, for which there is a folder of its own.
func (o *options) isAsked(with line.Line) bool { return o.brokers() || with.HasPlugin() }
