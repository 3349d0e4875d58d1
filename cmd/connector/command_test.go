// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/test/commandline"
	"github.com/capacitorset/liqo-broker/test/golden"
)

// run carries out a command line.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	command := newCommand()
	command.SetArgs(args)
	command.SetOut(stdout)
	return command.ExecuteContext(ctx)
}

func TestHelp(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, &out); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "help.txt", out.String())
}

// TestUsage refuses command lines that cannot be meant.
func TestUsage(t *testing.T) {
	for flag, want := range map[string]string{
		"--address=8446":                              "--address",
		"--resource-plugin-address=:http:1":           "--resource-plugin-address",
		"--endpoint=http://a.example":                 "--endpoint",
		"--endpoint=https://user@a.example":           "--endpoint",
		"--endpoint=https://a.example?token=to":       "--endpoint",
		"--share=0":                                   "--share",
		"--share-devices=-1":                          "--share-devices",
		"--share-devices=101":                         "--share-devices",
		"--share=101":                                 "--share",
		"--node-labels=nvidia.com/gpu product":        "--node-labels",
		"--node-labels=a," + strings.Repeat("b,", 16): "--node-labels",
		"--drain=0s":                                  "--drain",
		"--reserve-for=-1m":                           "--reserve-for",
		"--keep-contracts=59m":                        "--keep-contracts",
		"--keep-mebibytes=0":                          "--keep-mebibytes",
		"--keep-mebibytes=4097":                       "--keep-mebibytes",
		"--max-open-contracts=0":                      "--max-open-contracts",
		"--max-open-contracts=2049":                   "--max-open-contracts",
		"--max-kept-contracts=31":                     "--max-kept-contracts",
		"--max-kept-contracts=8193":                   "--max-kept-contracts",
		"--name=" + strings.Repeat("n", 200):          "--name",
		"unexpected":                                  "unexpected",
		"--no-such-flag":                              "no-such-flag",
	} {
		var out bytes.Buffer
		err := run(t.Context(), []string{"--namespace=connector", flag}, &out)
		if err == nil || program.ExitCode(err) != program.ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v", flag, err)
		}
	}
	for flags, want := range map[string][]string{
		"--endpoint=https://a.example --address=0":                             {"--endpoint", "--address"},
		"--broker --resource-plugin-address=:7000":                             {"--resource-plugin-address", "--broker"},
		"--broker --resource-plugin-allow=10.0.0.0/8":                          {"--resource-plugin-allow", "--broker"},
		"--broker --node-labels=nvidia.com/gpu.product":                        {"--node-labels", "--broker"},
		"--resource-plugin-address=0 --resource-plugin-allow=10.0.0.0/8":       {"--resource-plugin-allow", "--resource-plugin-address"},
		"--drain=0s --namespace=connector --metrics-address=:8080 --name=edge": {"--drain"},
	} {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"--namespace=connector"}, strings.Fields(flags)...), &out)
		for _, flag := range want {
			if err == nil || program.ExitCode(err) != program.ExitUsage || !strings.Contains(err.Error(), flag) {
				t.Errorf("%s: %v: it does not name %s", flags, err, flag)
			}
		}
	}
	o := &options{}
	if err := o.findNamespace(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "--namespace") {
		t.Errorf("outside of a pod: %v", err)
	}
}

// TestStrayArguments gives the connector more arguments than it takes.
func TestStrayArguments(t *testing.T) { commandline.RefuseStrays(t, newCommand) }
