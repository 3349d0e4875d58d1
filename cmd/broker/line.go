// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/capacitorset/liqo-broker/pkg/liqo/line"

// isAsked reports whether the API server asks the daemon about objects: wherever there is what deploy/ installs, and so not where the
// daemon is a catalog with Liqo 1.x, for which there is a folder of its own.
func (o *options) isAsked(with line.Line) bool { return o.brokers() || with.HasPlugin() }
