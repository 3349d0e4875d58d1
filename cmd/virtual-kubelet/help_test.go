// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/liqotech/liqo/cmd/virtual-kubelet/root"
	"github.com/spf13/pflag"

	"github.com/capacitorset/liqo-broker/test/commandline"
	"github.com/capacitorset/liqo-broker/test/golden"
)

// TestHelp leaves out the flags of Liqo's virtual kubelet, whose words are Liqo's.
func TestHelp(t *testing.T) {
	liqos := pflag.NewFlagSet("", pflag.ContinueOnError)
	root.InstallFlags(liqos, root.NewOpts())
	ours := pflag.NewFlagSet("", pflag.ContinueOnError)
	command := newCommand()
	command.Flags().VisitAll(func(f *pflag.Flag) {
		if liqos.Lookup(f.Name) == nil {
			ours.AddFlag(f)
		}
	})
	golden.Check(t, "help.txt", command.Short+"\n\n"+ours.FlagUsages())
}

// TestStrayArguments gives the virtual kubelet more arguments than it takes.
func TestStrayArguments(t *testing.T) { commandline.RefuseStrays(t, newCommand) }
