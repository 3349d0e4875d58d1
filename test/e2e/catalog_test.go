// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"regexp"
	"testing"
)

// TestCatalog reads the catalog from a pod of the consumer: it has the federation's clusters in the shape of the seed.
func TestCatalog(t *testing.T) {
	status, body := api(t, "/api/clusters")
	if status != "200" {
		t.Fatalf("GET /api/clusters: status %s: %s", status, body)
	}
	var clusters []struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Metadata   struct {
			Name   string            `json:"name"`
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec struct {
			ClusterIdentity struct {
				ClusterID   string `json:"clusterID"`
				ClusterName string `json:"clusterName"`
			} `json:"clusterIdentity"`
			ForeignAuthURL string `json:"foreignAuthUrl"`
		} `json:"spec"`
	}
	if err := json.Unmarshal([]byte(body), &clusters); err != nil {
		t.Fatalf("GET /api/clusters: %v in %s", err, body)
	}

	found := map[string]bool{}
	for _, c := range clusters {
		if c.Kind != "ForeignCluster" || c.APIVersion != "discovery.liqo.io/v1alpha1" {
			t.Errorf("cluster %s has kind %q and apiVersion %q", c.Metadata.Name, c.Kind, c.APIVersion)
		}
		if c.Spec.ForeignAuthURL == "" {
			t.Errorf("cluster %s does not say how to peer with it", c.Metadata.Name)
		}
		if id := c.Metadata.Labels["discovery.liqo.io/cluster-id"]; id != c.Spec.ClusterIdentity.ClusterID {
			t.Errorf("cluster %s has label cluster-id %q and cluster ID %q", c.Metadata.Name, id, c.Spec.ClusterIdentity.ClusterID)
		}
		found[c.Spec.ClusterIdentity.ClusterID] = true
	}
	for _, c := range fed.Providers() {
		if !found[string(c.ID)] {
			t.Errorf("the catalog does not have %s", c.Name)
		}
	}
	if credential := regexp.MustCompile(`(?i)token|password|private|kubeconfig|BEGIN [A-Z ]+|eyJ[A-Za-z0-9_-]{10}`).FindString(body); credential != "" {
		t.Errorf("the catalog has what may be a credential: %q", credential)
	}
}

// TestToggleRefusesBadInput asks for toggles that make no sense: the answer is an error, and nothing changes.
func TestToggleRefusesBadInput(t *testing.T) {
	known := string(fed.ProviderA.ID)
	cases := map[string]struct {
		path   string
		want   string
		reason string
	}{
		"UnknownCluster": {path: "/api/toggle?id=no-such-cluster&enable=false", want: "404", reason: "There is nothing to switch."},
		"NoCluster":      {path: "/api/toggle?enable=false", want: "400", reason: "Which one?"},
		"NoState":        {path: "/api/toggle?id=" + known, want: "400", reason: "On or off?"},
		"OtherState":     {path: "/api/toggle?id=" + known + "&enable=maybe", want: "400", reason: "Only true and false are states."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := enabled(t)
			if status, body := api(t, tc.path); status != tc.want {
				t.Errorf("%s\nGET %s: got status %s, want %s: %s", tc.reason, tc.path, status, tc.want, body)
			}
			if after := enabled(t); after != before {
				t.Errorf("%s\nGET %s: provider-a was switched from %t to %t", tc.reason, tc.path, before, after)
			}
		})
	}
}
