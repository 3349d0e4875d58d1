// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
	"testing"
)

func TestBadCommandLine(t *testing.T) {
	// What Liqo gives to every virtual kubelet (liqo/pkg/vkMachinery/forge/forge.go@v0.9.4).
	usual := []string{
		"--home-cluster-id=c", "--foreign-cluster-id=b", "--foreign-cluster-name=broker",
		"--foreign-kubeconfig-secret-name=identity", "--node-ip=10.0.0.1",
	}
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"BadRemoteIPAM":  {"the flag is named, and how it is written", append(usual, "--remote-ipam=host.example"), "server=HOST[:PORT]"},
		"UnknownFlag":    {"a typo must not pass", append(usual, "--remote-ipm=server=x"), "--remote-ipm"},
		"BadNodeIP":      {"the last one counts", append(usual, "--node-ip=here"), "--node-ip=here"},
		"NoForeign":      {"whose node would it be?", []string{"--home-cluster-id=c"}, "--foreign-cluster-id"},
		"BadReflection":  {"a policy that does not exist", append(usual, "--secret-reflection-type=Some"), "--secret-reflection-type=Some"},
		"NoEndpoints":    {"nothing would be passed on", append(usual, "--endpoints-per-cluster=0"), "--endpoints-per-cluster=0"},
		"BadClientCA":    {"the key is missing", append(usual, "--kubelet-client-ca=kube-system/ca"), "NAMESPACE/CONFIGMAP/KEY"},
		"CommaSplitting": {"Liqo splits its extra arguments at commas", append(usual, "port=7"), `"port=7"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			command := newCommand()
			command.SetArgs(tc.args)
			command.SetOut(io.Discard)
			command.SetErr(io.Discard)
			err := command.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: error = %v, want one line with %q", tc.reason, err, tc.want)
			}
		})
	}
}
