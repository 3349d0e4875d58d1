// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/test/commandline"
	"github.com/capacitorset/liqo-broker/test/golden"
)

func TestHelp(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, &out); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "help.txt", out.String())
	var guard bytes.Buffer
	if err := run(t.Context(), []string{"guard", "--help"}, &guard); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "help-guard.txt", guard.String())
	// Those of people that an upgrade keeps.
	for file, command := range map[string]*cobra.Command{"flags.txt": newCommand(), "guardflags.txt": newGuardCommand()} {
		var flags strings.Builder
		command.Flags().VisitAll(func(f *pflag.Flag) { fmt.Fprintln(&flags, f.Name) })
		golden.Check(t, "../../../pkg/install/"+file, flags.String())
	}
}

// TestGuardUsage gives the guard what it cannot mean.
func TestGuardUsage(t *testing.T) {
	for flag, want := range map[string]string{
		"--webhook-address=9443":             "--webhook-address",
		"--health-address=:http:1":           "--health-address",
		"--pod-security=lax":                 "--pod-security",
		"--service-types=ExternalName":       "--service-types",
		"--namespace-quota=count/secrets=-1": "--namespace-quota",
		"--webhook-allow=here":               "--webhook-allow",
		"unexpected":                         "unexpected",
		"--with-orchestrator":                "--with-orchestrator",
	} {
		var out bytes.Buffer
		err := run(t.Context(), []string{"guard", flag}, &out)
		if err == nil || program.ExitCode(err) != program.ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// TestStrayArguments gives each command more arguments than it takes.
func TestStrayArguments(t *testing.T) { commandline.RefuseStrays(t, newCommand) }
