// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

func TestTransitFlags(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		err    string
	}{
		"IPv6":    {"Liqo has no IPv6.", []string{"--allow=fd00::/8"}, "--allow=fd00::/8"},
		"Nowhere": {"Probes need a port.", []string{"--health-address=x"}, "--health-address=x"},
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
	options, err := transitCache("liqo")
	if err != nil {
		t.Fatal(err)
	}
	ofPod := labels.Set{"networking.liqo.io/firewall-category": "gateway", "networking.liqo.io/firewall-subcategory": "ip-mapping"}
	seen := 0
	for kind, by := range options.ByObject {
		switch kind.(type) {
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
	if seen != 2 {
		t.Errorf("%d of 2 kinds are bounded", seen)
	}
}
