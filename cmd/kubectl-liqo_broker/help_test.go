// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/capacitorset/liqo-broker/test/commandline"
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

// TestHelpOfCommands holds what each command says of itself: the reference of flags is made of it.
func TestHelpOfCommands(t *testing.T) {
	t.Setenv("HOME", "/home/user")
	for _, command := range newCommand(genericiooptions.NewTestIOStreamsDiscard()).Commands() {
		if name := command.Name(); name != "help" && name != "completion" {
			var out bytes.Buffer
			if err := run(t.Context(), []string{name, "--help"}, genericiooptions.IOStreams{Out: &out, ErrOut: &out}); err != nil {
				t.Fatal(err)
			}
			own, _, _ := strings.Cut(out.String(), "\nGlobal Flags:")
			golden.Check(t, "help-"+name+".txt", own)
		}
	}
}

// TestStrayArguments gives each command more arguments than it takes.
func TestStrayArguments(t *testing.T) {
	commandline.RefuseStrays(t, func() *cobra.Command { return newCommand(genericiooptions.NewTestIOStreamsDiscard()) })
}
