// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
)

// only09 are the objects that a broker needs with Liqo 0.9 only, of those that kubectl and the plugin apply in any case: what may be done
// beside Liqo's network manager, who reaches that, and where Liqo's controller manager asks what to offer. With 1.x nobody has the account
// that they are about, and nobody asks.
func only09() []string {
	return []string{
		"ClusterRole/liqo-broker-network-manager", "ClusterRoleBinding/liqo-broker-network-manager",
		"RoleBinding/kube-system/liqo-broker-network-manager", "ClusterRole/liqo-broker-remote-ipam-client",
		"ClusterRole/liqo-broker-ipam-guard", "ClusterRoleBinding/liqo-broker-ipam-guard",
		"NetworkPolicy/liqo/liqo-broker-network-manager", "Service/liqo-broker/liqo-broker-resource-plugin",
	}
}

// TestChartEqualsKustomize holds that who installs with Helm has the same objects as who installs with kubectl or the plugin, except for
// what adapt lists.
func TestChartEqualsKustomize(t *testing.T) {
	cases := map[string]struct {
		release

		reason string
		chart  string
		dirs   []string
		lacks  []string // Keys of objects of the folders that the chart leaves out.
	}{
		"Policies": {reason: "Admission policies are there where Kubernetes has them.", chart: ours,
			release: release{kubernetes: "v1.30.0", set: "namespace.create=true"}, dirs: []string{"deploy", "deploy/admission"}},
		"Vendor": {reason: "A vendor's version is as good as another.", chart: ours,
			release: release{kubernetes: "v1.34.1-eks-3025e55", set: "namespace.create=true"}, dirs: []string{"deploy", "deploy/admission"}},
		"NoPolicies": {reason: "Kubernetes 1.28 has none, and takes the rest.", chart: ours,
			release: release{kubernetes: "v1.28.15", set: "namespace.create=true"}, dirs: []string{"deploy"}},
		"Liqo1": {reason: "With Liqo 1.x the broker has the transit, and nothing beside a network manager.", chart: ours,
			release: release{kinds: []string{of1}, set: "namespace.create=true"},
			dirs:    []string{"deploy", "deploy/admission", "deploy/transit"}, lacks: only09()},
		"Said1": {reason: "Without an API server to ask, people say so.", chart: ours,
			release: release{kinds: []string{}, set: "namespace.create=true,liqo.line=1"},
			dirs:    []string{"deploy", "deploy/admission", "deploy/transit"}, lacks: only09()},
		"Said09": {reason: "Also where the kinds of both are there.", chart: ours,
			release: release{kinds: []string{of09, of1}, set: "namespace.create=true,liqo.line=0.9"},
			dirs:    []string{"deploy", "deploy/admission"}},
		"Agent": {reason: "A consumer has the agent.", chart: agentChart, release: release{set: "namespace.create=true"},
			dirs: []string{"deploy/agent"}},
		"AgentUnasked": {reason: "Also where nobody tells Helm what the API server has.", chart: agentChart,
			release: release{kinds: []string{}, set: "namespace.create=true"}, dirs: []string{"deploy/agent"}},
		"Connector": {reason: "The connector is the same, and brings the guard.", chart: connector,
			release: release{set: "namespace.create=true"}, dirs: []string{"deploy/connector", "deploy/guard", "deploy/guard/policies"}},
		"ConnectorNoPolicies": {reason: "Kubernetes 1.28 has no policies for it either.", chart: connector,
			release: release{kubernetes: "v1.28.15", set: "namespace.create=true"}, dirs: []string{"deploy/connector", "deploy/guard"}},
		"Guarded": {reason: "What another release brings is not brought twice.", chart: connector,
			release: release{set: "namespace.create=true,guard.enabled=false"}, dirs: []string{"deploy/connector"}},
		"SQLite": {reason: "A registry is the same, in the namespace of the release.", chart: registryChart, dirs: []string{"deploy/registry"}},
		"PostgreSQL": {reason: "And with its state elsewhere.", chart: registryChart, dirs: []string{"deploy/registry/postgres"},
			release: release{set: "replicas=2,postgres.existingSecret=liqo-broker-registry-store,key.existingSecret=liqo-broker-registry-key"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var dirs []string
			for _, dir := range tc.dirs {
				dirs = append(dirs, filepath.Join(root, dir))
			}
			want := kustomized(t, dirs...)
			c := load(t, tc.chart)
			if tc.chart == registryChart { // Helm makes its namespace.
				delete(want, "Namespace/liqo-broker-registry")
			}
			for _, key := range tc.lacks {
				if want[key] == nil {
					t.Errorf("%s is not there in any case", key)
				}
				delete(want, key)
			}
			got, _ := tc.render(t, c)
			for _, key := range slices.Sorted(maps.Keys(got)) {
				adapt(t, c, key, got[key])
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s -kustomize +chart\n%s", tc.reason, diff)
			}
		})
	}
}

// adapt checks what a chart alone has, and takes it out.
func adapt(t *testing.T, of *chart.Chart, key string, o object) {
	t.Helper()
	metadata := o["metadata"].(map[string]any)
	if o["kind"] == "CustomResourceDefinition" {
		// They stay when the release goes, and need no labels, as generated.
		take(t, key, metadata["annotations"], "helm.sh/resource-policy", "keep")
		return
	}
	// Pods are replaced when what they read at their start changes.
	pod := func() map[string]any {
		return o["spec"].(map[string]any)["template"].(map[string]any)["metadata"].(map[string]any)
	}
	switch key {
	case "Deployment/liqo-broker/liqo-broker":
		spec := o["spec"].(map[string]any)
		// The lab has no room for two.
		if spec["replicas"] != 2.0 {
			t.Errorf("%s has %v replicas, want 2", key, spec["replicas"])
		}
		spec["replicas"] = 1.0
	case "Deployment/liqo-broker-guard/liqo-broker-guard":
		take(t, key, pod()["annotations"], "brokering.liqo.io/pod-security", "baseline")
		delete(pod(), "annotations")
	case "Deployment/liqo-broker-connector/liqo-broker-connector":
		if digest, _ := pod()["annotations"].(map[string]any)["brokering.liqo.io/settings"].(string); len(digest) != 64 {
			t.Errorf("%s has the digest %q of its settings", key, digest)
		}
		delete(pod(), "annotations")
	}
	for label, value := range map[string]string{
		"app.kubernetes.io/instance": "our-release", "app.kubernetes.io/version": of.AppVersion(),
		"app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": of.Name() + "-" + of.Metadata.Version,
	} {
		take(t, key, metadata["labels"], label, value)
	}
}

// take removes a key from labels or annotations, which must have the value.
func take(t *testing.T, of string, from any, key, want string) {
	t.Helper()
	texts, _ := from.(map[string]any)
	if texts[key] != want {
		t.Errorf("%s has %v for %s, want %s", of, texts[key], key, want)
	}
	delete(texts, key)
}

// TestVersions holds that charts and images are of one version, which is what make builds.
func TestVersions(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	tag := regexp.MustCompile(`(?m)^TAG +\?= (v(\S+))$`).FindSubmatch(makefile)
	if tag == nil {
		t.Fatal("the Makefile has no TAG")
	}
	for _, dir := range charts() {
		metadata := load(t, dir).Metadata
		if metadata.AppVersion != string(tag[1]) || metadata.Version != string(tag[2]) {
			t.Errorf("%s is %s of %s, want %s of %s", dir, metadata.Version, metadata.AppVersion, tag[2], tag[1])
		}
	}
}

// text returns an object as it is compared with a pattern.
func text(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestMonitors holds that who installs without Helm has the same monitors.
func TestMonitors(t *testing.T) {
	file, err := os.ReadFile(filepath.Join(root, "deploy/monitoring/podmonitors.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c := load(t, ours)
	without, _ := release{}.render(t, c)
	got, _ := release{set: "podMonitor.enabled=true"}.render(t, c)
	want := map[string]object{}
	for _, o := range decode(t, "podmonitors.yaml", string(file)) {
		want[o.key()] = o
	}
	for key := range got {
		if _, also := without[key]; also {
			delete(got, key)
			continue
		}
		adapt(t, c, key, got[key])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-deploy/monitoring +chart\n%s", diff)
	}
}
