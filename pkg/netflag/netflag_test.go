// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package netflag

import (
	"testing"

	"github.com/spf13/pflag"
)

func TestPrefixes(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   string
		fails  bool
	}{
		"None": {reason: "It may be left out.", want: ""},
		"Some": {
			reason: "It may be repeated, in both families.", args: []string{"--allow=10.0.0.0/8", "--allow=fd00::/64"}, want: "10.0.0.0/8,fd00::/64",
		},
		"HostBits": {reason: "Who writes an address of the network means the network.", args: []string{"--allow=10.1.2.3/8"}, want: "10.0.0.0/8"},
		"Address":  {reason: "It must say how many addresses it means.", args: []string{"--allow=10.0.0.1"}, fails: true},
		"Name":     {reason: "Names are none.", args: []string{"--allow=example.org"}, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got Prefixes
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			flags.Var(&got, "allow", "prefixes")
			if err := flags.Parse(tc.args); (err != nil) != tc.fails || got.String() != tc.want {
				t.Errorf("%s\n%s, %v: want %s", tc.reason, got.String(), err, tc.want)
			}
		})
	}
}
