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

	"github.com/capacitorset/liqo-broker/test/commandline"
	"github.com/capacitorset/liqo-broker/test/golden"
)

func TestHelp(t *testing.T) {
	for name, args := range map[string][]string{
		"help.txt": {"--help"}, "help-guard.txt": {"guard", "--help"}, "help-probe.txt": {"probe", "--help"},
		"help-agent.txt":     {"agent", "--help"},
		"help-probe-ask.txt": {"probe", "ask", "--help"}, "help-probe-serve.txt": {"probe", "serve", "--help"},
		"help-transit.txt": {"transit", "--help"},
	} {
		var out bytes.Buffer
		command := newCommand()
		command.SetArgs(args)
		command.SetOut(&out)
		if err := command.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name, out.String())
	}
	// Those of people that an upgrade keeps.
	for file, command := range map[string]*cobra.Command{"transitflags.txt": newTransitCommand(), "agentflags.txt": newAgentCommand()} {
		var flags strings.Builder
		command.Flags().VisitAll(func(f *pflag.Flag) { fmt.Fprintln(&flags, f.Name) })
		golden.Check(t, "../../../pkg/install/"+file, flags.String())
	}
}

// TestStrayArguments gives each command more arguments than it takes.
func TestStrayArguments(t *testing.T) { commandline.RefuseStrays(t, newCommand) }
