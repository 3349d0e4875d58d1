// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// network returns a Configuration in JSON: as the peer has its networks, and as they are seen here; nil if that is not decided.
func network(t *testing.T, own api.CIDRs, seen *api.ClusterNetworks) []byte {
	t.Helper()
	text, err := json.Marshal(configuration(own, seen))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestRouted(t *testing.T) {
	own := api.CIDRs{Pod: []string{"192.168.0.0/16"}}
	cases := map[string]struct {
		reason  string
		network []byte
		want    string
	}{
		"Decided": {
			"It is routed as it is seen.", network(t, own, &api.ClusterNetworks{CIDR: api.CIDRs{
				Pod: []string{"10.61.0.0/16", "10.62.0.0/16"}, External: []string{"10.63.0.0/16"},
			}}), "[10.61.0.0/16 10.62.0.0/16 10.63.0.0/16]",
		},
		"Undecided": {"It is not seen.", network(t, own, nil), "[]"},
		"None":      {"There is no network.", nil, "[]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := (Line{}).NetworkRules().Routed(tc.network); err != nil || fmt.Sprint(got) != tc.want {
				t.Errorf("%s\nRouted() = %v, %v, want %s", tc.reason, got, err, tc.want)
			}
		})
	}
	if got, err := (Line{}).NetworkRules().Routed([]byte(`{"spec": 1}`)); err == nil {
		t.Errorf("Routed() = %v of something else", got)
	}
}

func TestCheckNetwork(t *testing.T) {
	many := func(n int) []byte {
		own := make([]string, n)
		for i := range own {
			own[i] = fmt.Sprintf("10.%d.0.0/16", i)
		}
		return network(t, api.CIDRs{Pod: own}, nil)
	}
	few := many(1)
	others := []liqo.Link{{Peer: "v", Seen: []netip.Prefix{netip.MustParsePrefix("10.70.0.0/16")}}}
	cases := map[string]struct {
		reason      string
		before, now []byte
		added       string
		want        string
	}{
		"Free":       {"It is nobody's.", few, few, "10.61.0.0/16", ""},
		"Nothing":    {"Nothing is new.", few, few, "", ""},
		"Public":     {"Liqo's IPAM gives no such prefix.", few, few, "8.8.0.0/16", "8.8.0.0/16 is not in a private range"},
		"Others":     {"It leads to another peer.", nil, few, "10.70.8.0/24", "10.70.8.0/24 overlaps 10.70.0.0/16, which leads to cluster v"},
		"Around":     {"So does this.", nil, few, "10.64.0.0/10", "overlaps"},
		"Many":       {"Each becomes routes.", few, many(65), "", "spec.remote.cidr.pod has 65 networks"},
		"ManyBefore": {"They are there.", many(65), many(65), "", ""},
		"Fewer":      {"It gets better.", many(70), many(66), "", ""},
		"External": {
			"Of either kind.", nil, network(t, api.CIDRs{External: make([]string, 65)}, nil), "", "spec.remote.cidr.external has 65 networks",
		},
		"Unreadable":       {"It is something else.", few, []byte(`{"spec": 1}`), "", "read a Configuration"},
		"UnreadableBefore": {"It was.", []byte(`{"spec": 1}`), few, "", "read a Configuration"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var added []netip.Prefix
			if tc.added != "" {
				added = append(added, netip.MustParsePrefix(tc.added))
			}
			err := Line{}.NetworkRules().CheckNetwork(tc.before, tc.now, added, others)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nCheckNetwork() = %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
