// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/capacitorset/liqo-broker/test/golden"
)

func TestHelp(t *testing.T) {
	t.Setenv("HOME", "/home/user")
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, genericiooptions.IOStreams{Out: &out, ErrOut: &out}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "help.txt", out.String())
}
