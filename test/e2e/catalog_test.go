// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/test/federation"
)

// TestCatalog reads the catalog from a pod of the consumer: it has the federation's clusters in the shape that the README shows.
func TestCatalog(t *testing.T) {
	installed(t)
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
			// Of Liqo 1.x.
			ClusterID string `json:"clusterID"`
			// Of Liqo 0.9.
			ClusterIdentity struct {
				ClusterID string `json:"clusterID"`
			} `json:"clusterIdentity"`
			ForeignAuthURL string `json:"foreignAuthUrl"`
		} `json:"spec"`
		Status struct {
			APIServerURL string `json:"apiServerUrl"`
		} `json:"status"`
	}
	traits := fed.Broker.Traits()
	if err := json.Unmarshal([]byte(body), &clusters); err != nil {
		t.Fatalf("GET /api/clusters: %v in %s", err, body)
	}

	found := map[string]bool{}
	for _, c := range clusters {
		if c.Kind != "ForeignCluster" || c.APIVersion != traits.ForeignClusters {
			t.Errorf("cluster %s has kind %q and apiVersion %q, want %s", c.Metadata.Name, c.Kind, c.APIVersion, traits.ForeignClusters)
		}
		if c.Spec.ForeignAuthURL == "" && c.Status.APIServerURL == "" {
			t.Errorf("cluster %s does not say how to peer with it", c.Metadata.Name)
		}
		id := cmp.Or(c.Spec.ClusterIdentity.ClusterID, c.Spec.ClusterID)
		if is := c.Metadata.Labels[traits.ClusterLabel]; is != id {
			t.Errorf("cluster %s has label %s %q and cluster ID %q", c.Metadata.Name, traits.ClusterLabel, is, id)
		}
		found[id] = true
	}
	for _, c := range fed.Providers() {
		if !found[string(c.ID)] {
			t.Errorf("the catalog does not have %s", c.Name)
		}
	}
	if credential := regexp.MustCompile(`(?i)token|password|private|kubeconfig|BEGIN [A-Z ]+|eyJ[A-Za-z0-9_-]{10}`).
		FindString(body); credential != "" {
		t.Errorf("the catalog has what may be a credential: %q", credential)
	}
}

// TestAPIRefusesStrangers asks for what the broker's operator may do, as a pod of the consumer that nobody knows: it neither switches
// a provider off nor learns of one, and a token that is for the broker's API server is not accepted.
func TestAPIRefusesStrangers(t *testing.T) {
	installed(t)
	off := fmt.Sprintf("/api/toggle?id=%s&enable=false", fed.ProviderA.ID)
	forAPIServer, err := fed.Broker.Kubectl(t.Context(), "create", "token", "--namespace=liqo-broker", "liqo-broker-operator")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		token  string
		path   string
		args   []string
		want   string
		reason string
	}{
		"List": {path: "/api/clusters", want: "401", reason: "Consumers of an aggregator are not to learn of the providers."},
		"Get":  {path: off, want: "401", reason: "A link switches nothing."},
		"Post": {path: off, args: []string{"--request", "POST"}, want: "401", reason: "Nor does who is not known."},
		"OtherToken": {
			token: strings.TrimSpace(forAPIServer), path: off, want: "401", reason: "A token for the API server is not for the broker.",
		},
		"CrossSite": {
			path: off, args: []string{"--header", "Sec-Fetch-Site: cross-site"}, want: "403", reason: "Nor does a page of another site.",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := enabled(t)
			if status, body := apiAs(t, tc.token, tc.path, tc.args...); status != tc.want || strings.Contains(body, fed.ProviderB.Name) {
				t.Errorf("%s\nstatus %s, want %s: %s", tc.reason, status, tc.want, body)
			}
			if after := enabled(t); after != before {
				t.Errorf("%s\nprovider-a was switched from %t to %t", tc.reason, before, after)
			}
		})
	}
}

// TestDaemonRefusesPeers connects from a pod of the consumer to the daemon's pod, which has a route to it: the webhooks and the metrics
// do not even begin to talk, and the probes say nothing but how the daemon is.
func TestDaemonRefusesPeers(t *testing.T) {
	installed(t)
	daemons, err := fed.Daemon().Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	address := seen(t, fed.Consumer, fed.Broker, daemons[0].Status.PodIP)
	got, err := fed.Consumer.Curl(t.Context(), "--insecure", "https://"+address+":8000/api/clusters")
	if (err != nil) != fed.Broker.Has(federation.Fenced) {
		t.Fatalf("the consumer's pod is answered %q by the daemon's, %v", got, err)
	}
	for port, path := range map[string]string{"9443": "/place-pods", "8080": "/metrics"} {
		got, err := fed.Consumer.Curl(t.Context(), "--insecure", "--header", "Content-Type: application/json", "--data", "{}",
			"https://"+address+":"+port+path)
		if err == nil {
			t.Errorf("port %s answers a pod of the consumer: %s", port, got)
		}
	}
}

// TestToggleRefusesBadInput asks for toggles that make no sense: the answer is an error, and nothing changes.
func TestToggleRefusesBadInput(t *testing.T) {
	installed(t)
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
