// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/transittest"
	"github.com/capacitorset/liqo-broker/pkg/transit/endpoints"
)

func TestTransitFlags(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		err    string
	}{
		"IPv6":    {"Liqo has no IPv6.", []string{"--allow=fd00::/8"}, "--allow=fd00::/8"},
		"Nowhere": {"Probes need a port.", []string{"--health-address=x"}, "--health-address=x"},
		"None":    {"Providers reach something.", []string{"--max-addresses=0"}, "--max-addresses=0"},
		"All":     {"No external network of Liqo has more.", []string{"--max-addresses=65537"}, "--max-addresses=65537"},
		"Prefix":  {"What is allowed is a prefix.", []string{"--allow=10.0.0.1"}, "allow"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			command := newCommand()
			command.SetArgs(append([]string{"transit"}, tc.args...))
			command.SetOut(&bytes.Buffer{})
			command.SetErr(&bytes.Buffer{})
			if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: %v, want an error about %s", tc.reason, err, tc.err)
			}
		})
	}
}

// TestTransitCache holds that of what Liqo keeps for each pod there is nothing in memory.
func TestTransitCache(t *testing.T) {
	options, err := transitCache("liqo", endpoints.NewKept(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	ofPod := labels.Set{"networking.liqo.io/firewall-category": "gateway", "networking.liqo.io/firewall-subcategory": "ip-mapping"}
	seen := 0
	for kind, by := range options.ByObject {
		switch kind.(type) {
		case *discoveryv1.EndpointSlice:
			seen++
			checkBare(t, by.Transform)
		case *api.FirewallConfiguration:
			seen++
			if by.Label.Matches(ofPod) {
				t.Error("the table of each pod is kept")
			}
		case *api.IP:
			seen++
			others, is := by.Namespaces[cache.AllNamespaces]
			if !is || others.LabelSelector.Matches(labels.Set{}) || by.Namespaces["liqo"].LabelSelector != nil {
				t.Error("the IP of each pod is kept, or those of Liqo itself are not")
			}
		}
	}
	if seen != 3 {
		t.Errorf("%d of 3 kinds are bounded", seen)
	}
}

// TestTransitBounds holds that of each consumer the cache keeps no more than the flag says.
func TestTransitBounds(t *testing.T) {
	options, err := transitCache("liqo", (&transitOptions{maxAddresses: 1}).kept())
	if err != nil {
		t.Fatal(err)
	}
	for kind, by := range options.ByObject {
		if _, is := kind.(*discoveryv1.EndpointSlice); !is {
			continue
		}
		for i, want := range []int{1, 0} {
			s := transittest.Endpoints(strconv.Itoa(i), "10.200.0.2")
			if _, err := by.Transform(s); err != nil || len(s.Endpoints) != want {
				t.Errorf("of slice %d there are %d endpoints, want %d: %v", i, len(s.Endpoints), want, err)
			}
		}
	}
}

// checkBare has a transformation take out of an EndpointSlice of a consumer what is not read, and nothing out of what is kept beside it.
func checkBare(t *testing.T, transform toolscache.TransformFunc) {
	t.Helper()
	full := func(labels map[string]string) *discoveryv1.EndpointSlice {
		s := transittest.Made(&discoveryv1.EndpointSlice{}, transittest.Twin, "liqo-broker-x", labels)
		s.Annotations = map[string]string{"a": "b"}
		s.Endpoints = []discoveryv1.Endpoint{{}, {
			Addresses: []string{"10.200.0.2", "10.200.0.3"}, Hostname: new("web-0"), NodeName: new("c"), Zone: new("z"),
			Conditions: discoveryv1.EndpointConditions{Ready: new(true)}, DeprecatedTopology: map[string]string{"a": "b"},
		}}
		return s
	}
	reflected := map[string]string{"app.kubernetes.io/managed-by": "liqo-broker", "liqo.io/managed-by": "shadowendpointslice"}
	bare, ours := full(reflected), full(map[string]string{"app.kubernetes.io/managed-by": "liqo-broker"})
	bare.Annotations = nil
	delete(bare.Labels, "app.kubernetes.io/managed-by")
	bare.Endpoints[1] = discoveryv1.Endpoint{
		Addresses: []string{"10.200.0.2"}, Hostname: new("web-0"), Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
	}
	for _, tc := range []struct{ of, want *discoveryv1.EndpointSlice }{{full(reflected), bare}, {ours.DeepCopy(), ours}} {
		got, err := transform(tc.of)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("-want +cached\n%s", diff)
		}
	}
}
