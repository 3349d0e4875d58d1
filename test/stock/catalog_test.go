// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package stock

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capacitorset/liqo-broker/test/docs"
)

// TestCatalog does what the page about Liqo 1.x says, and compares what strangers see with what Liqo knows.
func TestCatalog(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	image, err := os.Open(filepath.Join(root, "bin", "images", "liqo-broker.tar"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = broker.Load(t.Context(), image, "")
	if err := errors.Join(err, image.Close()); err != nil {
		t.Fatal(err)
	}
	blocks, err := docs.Read(root, "docs/liqo-1.md", "TestCatalog")
	if err != nil {
		t.Fatal(err)
	}
	shell, err := docs.NewShell(t.Context(), root, t.TempDir(), "PATH="+filepath.Dir(broker.KubectlPath())+":"+os.Getenv("PATH"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shell.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &docs.Reader{Blocks: blocks, Run: func(_ context.Context, _ docs.Block, script string) (string, error) {
		return shell.Run("KUBECONFIG", broker.KubeconfigPath(), script)
	}}
	next := func(command string) string {
		out, err := r.Next(t.Context(), command)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	next("kubectl apply -k deploy/catalog")
	out := next("ca=$(mktemp)")

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
	_, list, _ := strings.Cut(out, "[")
	if err := json.Unmarshal([]byte("["+list), &shown); err != nil { //nolint:musttag // The names are those of Liqo, whatever the case.
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

	next("kubectl delete -k deploy/catalog")
	if len(r.Blocks) > 0 {
		t.Errorf("nobody does what %s says", r.Blocks[0])
	}
}
