// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// TestInstallation checks that the federation is set up as the README says: Liqo's controller manager on the consumer has the
// two flags, and their address is that of the reflected Service.
func TestInstallation(t *testing.T) {
	needs(t, federation.RemoteIPAM)
	installed(t)
	service, err := fed.ReflectedNetworkManager(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	args, err := fed.Consumer.ControllerManagerArgs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"--kubelet-image=capacitorset/liqo-broker-vk:",
		fmt.Sprintf("--kubelet-extra-args=--remote-ipam=server=liqo-network-manager.%s.svc.cluster.local", service.Namespace),
	} {
		if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, want) }) {
			t.Errorf("liqo-controller-manager does not have the flag %s", want)
		}
	}
}

// TestNothingElseIsReflected puts a Secret, a ConfigMap and a Service next to the one that the NamespaceOffloading of the README is
// for: no peer gets them, nor anything else of Liqo's namespace.
func TestNothingElseIsReflected(t *testing.T) {
	needs(t, federation.TwinsOfLiqo)
	together(t, v1alpha1.ModeOrchestrated)
	const canary = `
apiVersion: v1
kind: Secret
metadata: {name: canary, namespace: liqo}
stringData: {key: secret}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: canary, namespace: liqo}
data: {key: value}
---
apiVersion: v1
kind: Service
metadata: {name: canary, namespace: liqo}
spec: {selector: {app: canary}, ports: [{port: 80}]}
`
	if err := fed.Broker.ApplyManifests(t.Context(), canary); err != nil {
		t.Fatal(err)
	}
	walk.KubectlAtEnd(t, fed.Broker, "delete", "--namespace=liqo", "secret/canary", "configmap/canary", "service/canary")
	// Liqo reflects within a second; what has not arrived after this will not arrive.
	time.Sleep(10 * time.Second)

	for _, peer := range []*federation.Cluster{fed.Consumer, fed.ProviderA, fed.ProviderB} {
		for _, namespace := range twinsOfLiqo(t, peer) {
			var secrets corev1.SecretList
			var maps corev1.ConfigMapList
			var services corev1.ServiceList
			for _, list := range []client.ObjectList{&secrets, &maps, &services} {
				if err := peer.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
					t.Fatal(err)
				}
			}
			for i := range secrets.Items {
				t.Errorf("%s got Secret %s of the broker's namespace liqo", peer.Name, secrets.Items[i].Name)
			}
			for i := range maps.Items {
				if maps.Items[i].Name != "kube-root-ca.crt" { // Kubernetes makes one in each namespace.
					t.Errorf("%s got ConfigMap %s of the broker's namespace liqo", peer.Name, maps.Items[i].Name)
				}
			}
			for i := range services.Items {
				if services.Items[i].Name != "liqo-network-manager" {
					t.Errorf("%s got Service %s of the broker's namespace liqo", peer.Name, services.Items[i].Name)
				}
			}
		}
	}
}

// TestOfferingIsProtected offers namespace liqo to all virtual nodes: the broker lets only those have it whose
// virtual kubelet is ours, and all of its own are.
func TestOfferingIsProtected(t *testing.T) {
	needs(t, federation.TwinsOfLiqo)
	installed(t)
	manifest := filepath.Join(t.TempDir(), "offloading.yaml")
	if err := os.WriteFile(manifest, []byte(offeringTo(allVirtualNodes)), 0o600); err != nil {
		t.Fatal(err)
	}
	stored, err := fed.Broker.Kubectl(t.Context(), "replace", "--dry-run=server", "--output=yaml", "--filename="+manifest)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(stored, liqo.LabelVirtualKubelet) {
		t.Errorf("namespace liqo would be offloaded by any virtual kubelet:\n%s", stored)
	}
	var nodes corev1.NodeList
	if err := fed.Broker.List(t.Context(), &nodes, client.MatchingLabels{liqo.LabelNodeType: liqo.NodeTypeVirtual}); err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		if nodes.Items[i].Labels[liqo.LabelVirtualKubelet] == "" {
			t.Errorf("node %s does not say that its virtual kubelet is ours", nodes.Items[i].Name)
		}
	}
}

// twinsOfLiqo returns the namespaces of a cluster that are twins of the broker's namespace liqo.
func twinsOfLiqo(t *testing.T, c *federation.Cluster) []string {
	t.Helper()
	var namespaces corev1.NamespaceList
	if err := c.List(t.Context(), &namespaces); err != nil {
		t.Fatal(err)
	}
	var twins []string
	for i := range namespaces.Items {
		if strings.HasPrefix(namespaces.Items[i].Name, "liqo-broker-") {
			twins = append(twins, namespaces.Items[i].Name)
		}
	}
	return twins
}
