// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// TestKubeletAPIRefusesStrangers asks the broker's virtual kubelets for the pods of their nodes, from every cluster: only the API
// server is answered.
func TestKubeletAPIRefusesStrangers(t *testing.T) {
	needs(t, federation.OurKubelets)
	together(t, v1alpha1.ModeOrchestrated)
	ask := func(from *federation.Cluster, address string, args ...string) string {
		t.Helper()
		code, err := from.Curl(t.Context(), append([]string{
			"--insecure", "--output", "/dev/null", "--write-out", "%{http_code}", "https://" + net.JoinHostPort(address, "10250") + "/pods",
		}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(code)
	}
	token, err := fed.Broker.Kubectl(t.Context(), "create", "token", "--namespace=default", "default")
	if err != nil {
		t.Fatal(err)
	}
	for _, kubelet := range virtualKubelets(t) {
		for _, peer := range []*federation.Cluster{fed.Consumer, fed.ProviderA, fed.ProviderB} {
			if code := ask(peer, seen(t, peer, fed.Broker, kubelet.Status.PodIP)); code != "401" {
				t.Errorf("%s of %s answers %s with %s, want 401", kubelet.Name, fed.Broker.Name, peer.Name, code)
			}
		}
		if code := ask(fed.Broker, kubelet.Status.PodIP); code != "401" {
			t.Errorf("%s answers a pod of its own cluster with %s, want 401", kubelet.Name, code)
		}
		if code := ask(fed.Broker, kubelet.Status.PodIP, "--header", "Authorization: Bearer "+strings.TrimSpace(token)); code != "403" {
			t.Errorf("%s answers a token without rights with %s, want 403", kubelet.Name, code)
		}
	}
	for _, provider := range fed.Providers() {
		node, err := fed.Broker.VirtualNode(t.Context(), provider)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fed.Broker.Kubectl(t.Context(), "get", "--raw=/api/v1/nodes/"+node.Name+"/proxy/pods"); err != nil {
			t.Errorf("the API server is not answered: %v", err)
		}
	}
}

// TestPeerNamesNoNamespaces has a provider say that it has a namespace of the broker that nobody offloads to it: no Secret follows.
func TestPeerNamesNoNamespaces(t *testing.T) {
	needs(t, federation.HostilePeers)
	installed(t)
	const private, loot, secret = "private-of-broker", "loot", "private"
	ctx := t.Context()
	walk.KubectlAtEnd(t, fed.Broker, "delete", "namespace", private, "--ignore-not-found")
	walk.KubectlAtEnd(t, fed.ProviderA, "delete", "namespace", loot, "--ignore-not-found")
	if err := fed.Broker.ApplyManifests(ctx, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: Secret
metadata: {name: %[2]s, namespace: %[1]s}
stringData: {key: value}
`, private, secret)); err != nil {
		t.Fatal(err)
	}
	if err := fed.ProviderA.ApplyManifests(ctx, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: broker, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: liqo-virtual-kubelet-remote}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[2]s}]
`, loot, fed.Broker.ID)); err != nil {
		t.Fatal(err)
	}

	var maps vkv1alpha1.NamespaceMapList
	if err := fed.Broker.List(ctx, &maps, client.MatchingLabels{liqo.LabelRemoteClusterID: string(fed.ProviderA.ID)}); err != nil {
		t.Fatal(err)
	}
	if len(maps.Items) != 1 {
		t.Fatalf("the broker has %d NamespaceMaps for %s, want 1", len(maps.Items), fed.ProviderA.Name)
	}
	status, err := json.Marshal(map[string]any{"status": map[string]any{"currentMapping": map[string]any{
		private: vkv1alpha1.RemoteNamespaceStatus{RemoteNamespace: loot, Phase: vkv1alpha1.MappingAccepted},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	// The broker's own replicator would write it, which copies what the provider says.
	claim := func() error {
		_, err := fed.Broker.Kubectl(ctx, "patch", "--namespace="+maps.Items[0].Namespace, "namespacemap", maps.Items[0].Name,
			"--subresource=status", "--type=merge", "--patch="+string(status), "--as=system:serviceaccount:liqo:liqo-crd-replicator")
		return err
	}
	if err := claim(); err == nil || !strings.Contains(err.Error(), "currentMapping") {
		t.Errorf("the provider names a namespace that nobody offloads to it: %v", err)
	}
	// Also where nothing refuses it, the virtual kubelet goes by what this cluster offloads.
	restore := withoutAdmission(t)
	eventually(t, time.Minute, func(context.Context) error { return claim() }) // The API server needs a moment to forget them.
	time.Sleep(3 * time.Second)
	found, err := fed.ProviderA.Kubectl(ctx, "get", "secrets", "--namespace="+loot, "--output=name")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(found, "secret/"+secret) {
		t.Errorf("a Secret of the broker's namespace %s is on %s", private, fed.ProviderA.Name)
	}
	if _, err := fed.Broker.Kubectl(ctx, "patch", "--namespace="+maps.Items[0].Namespace, "namespacemap", maps.Items[0].Name,
		"--subresource=status", "--type=merge", fmt.Sprintf(`--patch={"status": {"currentMapping": {%q: null}}}`, private)); err != nil {
		t.Error(err)
	}
	restore()
}
