// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package linestest has what tests need that go through all lines of Liqo's versions. It does not know what they test.
package linestest

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
)

// Scheme returns one with the kinds of Kubernetes, and of all lines.
func Scheme(tb testing.TB) *runtime.Scheme {
	tb.Helper()
	scheme, err := daemon.Kinds(lines.AddToScheme)
	if err != nil {
		tb.Fatal(err)
	}
	return scheme
}
