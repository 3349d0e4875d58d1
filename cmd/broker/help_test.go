// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/capacitorset/liqo-broker/test/golden"
)

func TestHelp(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, &out); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "help.txt", out.String())
	var flags strings.Builder // Those of people that an upgrade keeps.
	newCommand().Flags().VisitAll(func(f *pflag.Flag) { fmt.Fprintln(&flags, f.Name) })
	golden.Check(t, "../../../pkg/install/flags.txt", flags.String())
}
