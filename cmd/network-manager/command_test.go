// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/probe"
	"github.com/capacitorset/liqo-broker/pkg/program"
)

func TestBadCommandLine(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"NoClusterID":   {"without it no consumer could tell whose remote IPAM it is", []string{}, "--cluster-id"},
		"UnknownFlag":   {"a typo must not pass", []string{"--cluster-id=b", "--listn=:1"}, "--listn"},
		"BadListen":     {"a port is needed", []string{"--cluster-id=b", "--listen=6001"}, "--listen=6001"},
		"BadIPAM":       {"a port is needed", []string{"--cluster-id=b", "--ipam-server=localhost"}, "--ipam-server=localhost"},
		"NoRelays":      {"a consumer needs at least one", []string{"--cluster-id=b", "--max-relay-addresses=0"}, "--max-relay-addresses=0"},
		"BadLogLevel":   {"a level that does not exist", []string{"--cluster-id=b", "--log-level=loud"}, "loud"},
		"StrayArgument": {"nothing but flags is understood", []string{"--cluster-id=b", "now"}, `"now"`},
		"GuardUnknown":  {"a flag of the other command", []string{"guard", "--cluster-id=b"}, "--cluster-id"},
		"GuardAddress":  {"it must say how many addresses it means", []string{"guard", "--allow=10.0.0.1"}, "--allow"},
		"GuardIPv6":     {"the guard cannot filter it", []string{"guard", "--allow=10.0.0.0/8", "--allow=fd00::/64"}, "must be IPv4"},
		"ProbeNobody":   {"there is nobody to ask", []string{"probe", "ask"}, "between 1 and 21"},
		"ProbeAddress":  {"it is no address", []string{"probe", "ask", "web=10.0.0.1"}, `"web=10.0.0.1"`},
		"ProbeTimes":    {"it would ask for ever", []string{"probe", "ask", "--times=1001", "=10.0.0.1:80"}, "--times=1001"},
		"ProbeNowhere": {
			"the answers would be lost", []string{"probe", "ask", "--within=1ms", "--to=/nowhere/at/all", "=127.0.0.1:1"}, "/nowhere/at/all",
		},
		"ProbeServes":   {"a port is needed", []string{"probe", "serve", "--listen=8080"}, "8080"},
		"AgentHealth":   {"a port is needed", []string{"agent", "--health-address=6003"}, "--health-address=6003"},
		"AgentUnknown":  {"a flag of the other command", []string{"agent", "--cluster-id=b"}, "--cluster-id"},
		"GuardArgument": {"nothing but flags is understood", []string{"guard", "10.0.0.0/8"}, `"10.0.0.0/8"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			command := newCommand()
			command.SetArgs(tc.args)
			command.SetOut(io.Discard)
			command.SetErr(io.Discard)
			err := command.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%s: error = %v, want one line with %q", tc.reason, err, tc.want)
			}
			code := program.ExitUsage
			if slices.Contains([]string{"BadLogLevel", "ProbeNowhere", "ProbeServes"}, name) { // They are found out only on the way.
				code = program.ExitFailure
			}
			if program.ExitCode(err) != code {
				t.Errorf("%s: it exits with %d, want %d", tc.reason, program.ExitCode(err), code)
			}
		})
	}
}

// TestProbe asks a target that is not there: the answers are written where the end of the container is read.
func TestProbe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "end")
	command := newCommand()
	command.SetArgs([]string{"probe", "ask", "--within=1ms", "--to=" + file, "web=127.0.0.1:1"})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var answers []probe.Answer
	if err := json.Unmarshal(written, &answers); err != nil || len(answers) != 1 || answers[0].Pod != "web" || answers[0].Well() {
		t.Errorf("it has written %s: %v", written, err)
	}
}
