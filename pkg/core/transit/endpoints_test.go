// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func slice(name string, made int64, addresses ...string) discoveryv1.EndpointSlice {
	s := discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(made, 0))},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, address := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, NodeName: new("consumer"), Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		})
	}
	return s
}

func TestOpen(t *testing.T) {
	pods := prefixes("10.200.0.0/16")
	six, none := slice("a", 1, "10.200.0.1"), slice("a", 1, "10.200.0.1")
	six.AddressType, none.Endpoints[0].Addresses = discoveryv1.AddressTypeIPv6, nil
	cases := map[string]struct {
		reason string
		in     []discoveryv1.EndpointSlice
		want   map[string]int
		opened []string
	}{
		"Own": {
			"Pods of the consumer are opened, once each.",
			[]discoveryv1.EndpointSlice{slice("a", 1, "10.200.0.2", "10.200.0.1"), slice("b", 2, "10.200.0.1")},
			map[string]int{"a": 2, "b": 1}, []string{"10.200.0.1", "10.200.0.2"},
		},
		"Foreign": {
			"No address of anybody else is.",
			[]discoveryv1.EndpointSlice{slice("a", 1, "10.201.0.1", "10.200.0.1", "172.30.0.1", "169.254.169.254", "nonsense", "::1")},
			map[string]int{"a": 1}, []string{"10.200.0.1"},
		},
		"None":    {"A slice without any has none.", []discoveryv1.EndpointSlice{slice("a", 1, "10.201.0.1")}, map[string]int{}, nil},
		"IPv6":    {"Nor one of another family.", []discoveryv1.EndpointSlice{six}, map[string]int{}, nil},
		"Nothing": {"Nor one whose endpoint has no address.", []discoveryv1.EndpointSlice{none}, map[string]int{}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Open(tc.in, pods)
			count := map[string]int{}
			for slice, endpoints := range got.Slices {
				count[slice] = len(endpoints)
				for _, e := range endpoints {
					if e.NodeName != nil || e.Conditions.Ready == nil || !*e.Conditions.Ready {
						t.Errorf("%s: an endpoint names a node, or is not ready: %v", tc.reason, e)
					}
				}
			}
			var opened []string
			for _, a := range got.Addresses {
				opened = append(opened, a.String())
			}
			if diff := cmp.Diff(tc.want, count) + cmp.Diff(tc.opened, opened); diff != "" || got.Left {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

// TestOpenBounded holds that the oldest slices count first, so that a new one takes nothing from them.
func TestOpenBounded(t *testing.T) {
	var many []string
	for i := range MaxAddresses {
		many = append(many, fmt.Sprintf("10.200.%d.%d", i/100, i%100+1))
	}
	late := slice("a", 9, "10.200.99.1", many[0])
	got := Open([]discoveryv1.EndpointSlice{late, slice("b", 1, many...)}, []netip.Prefix{netip.MustParsePrefix("10.200.0.0/16")})
	if len(got.Addresses) != MaxAddresses || !got.Left || len(got.Slices["b"]) != MaxAddresses || len(got.Slices["a"]) != 1 {
		first, last := len(got.Slices["b"]), len(got.Slices["a"])
		t.Errorf("%d addresses, left %t, %d of the first and %d of the last", len(got.Addresses), got.Left, first, last)
	}
}
