// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package stock

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCatalog does what the page about Liqo 1.x says, and compares what strangers see with what Liqo knows.
func TestCatalog(t *testing.T) {
	load(t, broker, "liqo-broker")
	page := read(t, "docs/liqo-1.md", "TestCatalog")
	page.next(t, "kubectl apply -k deploy/catalog")
	out := page.next(t, "ca=$(mktemp)")

	// Strangers see each cluster with its role as a provider, and nothing of who consumes.
	var shown []struct {
		Kind, APIVersion string
		Metadata         struct{ Name string }
		Spec             struct{ ClusterID string }
		Status           struct {
			Role    string
			Modules map[string]struct {
				Enabled    bool
				Conditions []struct{ Type, Status string }
			}
		}
	}
	// What kubectl says of connections that are closed may follow.
	_, list, _ := strings.Cut(out, "[{")
	if err := json.NewDecoder(strings.NewReader("[{" + list)).Decode(&shown); err != nil { //nolint:musttag // The names are Liqo's.
		t.Fatalf("%v\n%s", err, out)
	}
	var ids []string
	for i := range shown {
		c := &shown[i]
		ids = append(ids, c.Spec.ClusterID)
		if c.Kind != "ForeignCluster" || c.APIVersion != "core.liqo.io/v1beta1" || c.Metadata.Name != c.Spec.ClusterID ||
			c.Status.Role != "Provider" {
			t.Errorf("a cluster is shown as %+v", c)
		}
		for _, condition := range c.Status.Modules["authentication"].Conditions {
			if strings.Contains(condition.Type, "Tenant") {
				t.Errorf("strangers see of %s whether it consumes: %v", c.Spec.ClusterID, condition)
			}
		}
		connected := func(c struct{ Type, Status string }) bool {
			return c.Type == "NetworkConnectionStatus" && c.Status == "Established"
		}
		if networking := c.Status.Modules["networking"]; !networking.Enabled || !slices.ContainsFunc(networking.Conditions, connected) {
			t.Errorf("%s is shown without its network: %+v", c.Spec.ClusterID, networking)
		}
	}
	if diff := cmp.Diff([]string{consumer.Name, provider.Name}, ids); diff != "" { // The broker uses both.
		t.Errorf("/api/clusters: -want +got\n%s", diff)
	}
	for _, secret := range []string{"liqo-tenant-", "foreignProxyUrl", "annotations", "message"} {
		if strings.Contains(out, secret) {
			t.Errorf("/api/clusters has %q:\n%s", secret, out)
		}
	}

	page.next(t, "kubectl delete -k deploy/catalog")
	if len(page.Blocks) > 0 {
		t.Errorf("nobody does what %s says", page.Blocks[0])
	}
}
