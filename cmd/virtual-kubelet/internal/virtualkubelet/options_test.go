// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package virtualkubelet

import (
	"testing"

	"github.com/spf13/pflag"
)

func TestGuardedNamespace(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Elsewhere": {
			"Liqo was installed into another namespace, and nobody said so", []string{"--ipam-server=liqo-network-manager.net-system:6000"},
			"net-system",
		},
		"FullName": {"the name that DNS has", []string{"--ipam-server=liqo-network-manager.net-system.svc.cluster.local:6000"}, "net-system"},
		"Usual":    {"what Liqo's chart writes", []string{"--ipam-server=liqo-network-manager.liqo:6000"}, "liqo"},
		"Explicit": {
			"who says it knows better", []string{"--ipam-server=liqo-network-manager.net-system:6000", "--liqo-namespace=liqo"}, "liqo",
		},
		"External":    {"an IPAM of somebody else says nothing about Liqo", []string{"--ipam-server=ipam.example.com:6000"}, "liqo"},
		"Address":     {"the numbers of an address are no namespace", []string{"--ipam-server=10.0.0.7:6000"}, "liqo"},
		"Address6":    {"nor those of another", []string{"--ipam-server=[fd00::7]:6000"}, "liqo"},
		"OneName":     {"a host in the same namespace, whichever that is", []string{"--ipam-server=localhost:6000"}, "liqo"},
		"NoIPAM":      {"networks are not Liqo's business there", nil, "liqo"},
		"WithoutPort": {"it does not connect either", []string{"--ipam-server=liqo-network-manager.liqo"}, "liqo"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o, flags := NewOptions(), pflag.NewFlagSet("", pflag.ContinueOnError)
			o.AddFlags(flags)
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			if got := o.guardedNamespace(); got != tc.want {
				t.Errorf("%s: %s is guarded, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
