// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"fmt"
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
			got := one(Open(tc.in, pods, 100))
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
			if diff := cmp.Diff(tc.want, count) + cmp.Diff(tc.opened, opened); diff != "" || got.InNamespace+got.InAll > 0 {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

// one returns what is opened in the namespace without a name.
func one(all map[string]*Opening) *Opening { return all[""] }

func many(n int) []string {
	addresses := make([]string, n)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("10.200.%d.%d", i/100, i%100+1)
	}
	return addresses
}

func in(namespace string, s discoveryv1.EndpointSlice) discoveryv1.EndpointSlice {
	s.Namespace = namespace
	return s
}

// TestOpenBounded holds that the oldest slices count first, so that a new one takes nothing from them, in any namespace.
func TestOpenBounded(t *testing.T) {
	pods := prefixes("10.200.0.0/16")
	type counts struct{ Opened, InNamespace, InAll int }
	for name, tc := range map[string]struct {
		reason string
		in     []discoveryv1.EndpointSlice
		most   int
		want   map[string]counts
		slices map[string]int // Endpoints that are told, by NAMESPACE/SLICE.
	}{
		"Namespace": {
			"A namespace has its bound; what is open in it may be told again.",
			[]discoveryv1.EndpointSlice{slice("a", 9, "10.200.99.1", many(1)[0]), slice("b", 1, many(MaxInNamespace)...)}, 1000,
			map[string]counts{"": {MaxInNamespace, 1, 0}}, map[string]int{"/a": 1, "/b": MaxInNamespace},
		},
		"Consumer": {
			"All namespaces of a consumer have one together, and the oldest slice goes first, wherever it is.",
			[]discoveryv1.EndpointSlice{in("x", slice("a", 9, "10.200.0.1", "10.200.0.2")), in("y", slice("a", 1, many(3)...))}, 4,
			map[string]counts{"x": {1, 0, 1}, "y": {3, 0, 0}}, map[string]int{"x/a": 1, "y/a": 3},
		},
		"Twice": {
			"An address counts in each namespace: each takes one of the external network.",
			[]discoveryv1.EndpointSlice{in("x", slice("a", 1, "10.200.0.1")), in("y", slice("a", 2, "10.200.0.1", "10.200.0.1"))}, 1,
			map[string]counts{"x": {1, 0, 0}, "y": {0, 0, 2}}, map[string]int{"x/a": 1},
		},
		"Exact": {
			"As many as are allowed are no more than that.",
			[]discoveryv1.EndpointSlice{in("x", slice("a", 1, many(2)...)), in("y", slice("a", 1, many(2)...))}, 4,
			map[string]counts{"x": {2, 0, 0}, "y": {2, 0, 0}}, map[string]int{"x/a": 2, "y/a": 2},
		},
		"Foreign": {
			"Addresses that are none of its pods take nothing away.",
			[]discoveryv1.EndpointSlice{in("x", slice("a", 1, "10.201.0.1", "10.201.0.2")), in("y", slice("a", 2, many(2)...))}, 2,
			map[string]counts{"x": {}, "y": {2, 0, 0}}, map[string]int{"y/a": 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, told := map[string]counts{}, map[string]int{}
			for namespace, o := range Open(tc.in, pods, tc.most) {
				got[namespace] = counts{len(o.Addresses), o.InNamespace, o.InAll}
				for slice, endpoints := range o.Slices {
					told[namespace+"/"+slice] = len(endpoints)
				}
			}
			if diff := cmp.Diff(tc.want, got) + cmp.Diff(tc.slices, told); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}
