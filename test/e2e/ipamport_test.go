// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// TestIPAMPortIsClosed tries to reach Liqo's IPAM on the broker from every cluster, under every address that leads there: nobody
// gets through but the broker's own virtual kubelets. The remote IPAM in the same pod answers all of them, so that it is not the
// path that is missing.
func TestIPAMPortIsClosed(t *testing.T) {
	needs(t, federation.KubeletsAskIPAM)
	together(t, v1alpha1.ModeOrchestrated)
	manager := networkManager(t)
	for _, peer := range []*federation.Cluster{fed.Consumer, fed.ProviderA, fed.ProviderB} {
		t.Run(peer.Name, func(t *testing.T) {
			t.Parallel()
			tools := pod(t, peer, "default", "tools")
			addresses := []string{seen(t, peer, fed.Broker, manager.Status.PodIP)}
			for _, namespace := range twinsOfLiqo(t, peer) {
				addresses = append(addresses, serviceIP(t, peer, namespace))
			}
			if len(addresses) < 2 {
				t.Errorf("%s has no Service of the broker's network manager", peer.Name)
			}
			for _, address := range addresses {
				checkReach(t, peer, tools, address, remoteipam.Port, true)
				checkReach(t, peer, tools, address, v09.IPAMPort, false)
			}
		})
	}
	t.Run("broker", func(t *testing.T) {
		t.Parallel()
		for _, address := range []string{manager.Status.PodIP, serviceIP(t, fed.Broker, "liqo")} {
			// Liqo's gateway runs in the network of the node.
			for _, stranger := range []*corev1.Pod{pod(t, fed.Broker, "default", "tools"), liqoPod(t, "gateway")} {
				checkReach(t, fed.Broker, stranger, address, remoteipam.Port, true)
				checkReach(t, fed.Broker, stranger, address, v09.IPAMPort, false)
			}
			for _, kubelet := range virtualKubelets(t) {
				checkReach(t, fed.Broker, kubelet, address, v09.IPAMPort, true)
			}
		}
		checkReach(t, fed.Broker, manager, "127.0.0.1", v09.IPAMPort, true)
	})
	t.Run("disguised", func(t *testing.T) {
		t.Parallel()
		guest := disguised(t)
		checkReach(t, fed.Broker, guest, manager.Status.PodIP, remoteipam.Port, true)
		checkReach(t, fed.Broker, guest, manager.Status.PodIP, v09.IPAMPort, false)
	})
}

// disguised starts a pod on the broker's own node that looks like a virtual kubelet and is none, as a consumer can for the moment
// until the broker moves its pod to a provider.
func disguised(t *testing.T) *corev1.Pod {
	t.Helper()
	const namespace = "ipam-port-disguised"
	walk.KubectlAtEnd(t, fed.Broker, "delete", "namespace", namespace)
	err := fed.Broker.ApplyManifests(t.Context(), `
apiVersion: v1
kind: Namespace
metadata: {name: `+namespace+`}
---
apiVersion: v1
kind: Pod
metadata:
  name: disguised
  namespace: `+namespace+`
  labels:
    app.kubernetes.io/name: virtual-kubelet
    app.kubernetes.io/instance: virtual-kubelet
    app.kubernetes.io/managed-by: advertisementoperator
    app.kubernetes.io/component: virtual-kubelet
    app.kubernetes.io/part-of: liqo
    discovery.liqo.io/virtual-node: liqo-provider-a
spec:
  terminationGracePeriodSeconds: 0
  nodeSelector: {lab/real: "true"}
  containers: [{name: tools, image: "lab.local/tools:1", imagePullPolicy: IfNotPresent}]
`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fed.Broker.Kubectl(t.Context(), "wait", "--namespace="+namespace, "--for=condition=Ready", "--timeout=1m",
		"pod/disguised"); err != nil {
		t.Fatal(err)
	}
	return pod(t, fed.Broker, namespace, "disguised")
}

// TestIPAMPortOpensToVirtualKubelets ends the broker's virtual kubelets: those that follow reach Liqo's IPAM, and translate.
func TestIPAMPortOpensToVirtualKubelets(t *testing.T) {
	needs(t, federation.KubeletsAskIPAM)
	const namespace = "ipam-port"
	start(t, v1alpha1.ModeOrchestrated)
	deploy(t, namespace, federation.Web, 2)
	checkAddresses(t, copies(t, namespace, 2))
	manager := networkManager(t)

	before := map[string]bool{}
	for _, kubelet := range virtualKubelets(t) {
		before[kubelet.Name] = true
		if err := fed.Broker.Delete(t.Context(), kubelet); err != nil {
			t.Fatal(err)
		}
	}
	var kubelets []*corev1.Pod
	eventually(t, time.Minute, func(context.Context) error {
		kubelets = virtualKubelets(t)
		for _, kubelet := range kubelets {
			if before[kubelet.Name] || kubelet.Status.PodIP == "" || kubelet.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("virtual kubelet %s does not run", kubelet.Name)
			}
		}
		if len(kubelets) != len(before) {
			return fmt.Errorf("%d virtual kubelets run, want %d", len(kubelets), len(before))
		}
		return nil
	})
	for _, kubelet := range kubelets {
		checkReach(t, fed.Broker, kubelet, manager.Status.PodIP, v09.IPAMPort, true)
	}
	if err := fed.Scale(t.Context(), namespace, federation.Web, 4); err != nil {
		t.Fatal(err)
	}
	checkAddresses(t, copies(t, namespace, 4))
}

// checkReach fails unless a TCP port is open to a pod of a cluster, or closed: without an answer, or refused.
func checkReach(t *testing.T, c *federation.Cluster, from *corev1.Pod, address string, port int, want bool) {
	t.Helper()
	if open, err := c.Reaches(t.Context(), from, net.JoinHostPort(address, strconv.Itoa(port))); err != nil || open != want {
		t.Errorf("pod %s/%s of %s reaches port %d at %s: %t, want %t: %v", from.Namespace, from.Name, c.Name, port, address, open, want, err)
	}
}

func pod(t *testing.T, c *federation.Cluster, namespace, name string) *corev1.Pod {
	t.Helper()
	found := &corev1.Pod{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, found); err != nil {
		t.Fatal(err)
	}
	return found
}

// networkManager returns the pod on the broker that serves Liqo's IPAM and the remote IPAM.
func networkManager(t *testing.T) *corev1.Pod {
	t.Helper()
	return liqoPod(t, "network-manager")
}

// liqoPod returns the pod of a component of Liqo on the broker.
func liqoPod(t *testing.T, component string) *corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	err := fed.Broker.List(t.Context(), &pods, client.InNamespace("liqo"), client.MatchingLabels{"app.kubernetes.io/name": component})
	if err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 1 {
		t.Fatalf("the broker has %d pods of Liqo's %s, want 1", len(pods.Items), component)
	}
	return &pods.Items[0]
}

// virtualKubelets returns the pods of the broker's virtual kubelets.
func virtualKubelets(t *testing.T) []*corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	err := fed.Broker.List(t.Context(), &pods, client.MatchingLabels{fed.Broker.Traits().KubeletLabel: "virtual-kubelet"})
	if err != nil {
		t.Fatal(err)
	}
	var found []*corev1.Pod
	for i := range pods.Items {
		// Others only look like one: see disguised.
		if pods.Items[i].DeletionTimestamp == nil && strings.HasPrefix(pods.Items[i].Namespace, "liqo-tenant-") {
			found = append(found, &pods.Items[i])
		}
	}
	return found
}

// seen returns the address under which an observer sees a pod of another cluster.
func seen(t *testing.T, observer, owner *federation.Cluster, podIP string) string {
	t.Helper()
	address, err := observer.Seen(t.Context(), owner, podIP)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// serviceIP returns the address of the Service liqo-network-manager in a namespace.
func serviceIP(t *testing.T, c *federation.Cluster, namespace string) string {
	t.Helper()
	var service corev1.Service
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "liqo-network-manager"}, &service); err != nil {
		t.Fatal(err)
	}
	return service.Spec.ClusterIP
}

// TestIPAMPortPolicy checks what the NetworkPolicy beside the guard says of the pods that there are. The lab's network plugin knows
// no policies, so that whether one obeys is not seen here.
func TestIPAMPortPolicy(t *testing.T) {
	needs(t, federation.KubeletsAskIPAM)
	installed(t)
	output, err := fed.Broker.Kubectl(t.Context(), "get", "networkpolicy", "--namespace=liqo", "liqo-broker-network-manager", "--output=json")
	if err != nil {
		t.Fatal(err)
	}
	var policy networkingv1.NetworkPolicy
	if err := json.Unmarshal([]byte(output), &policy); err != nil {
		t.Fatal(err)
	}
	var pods corev1.PodList
	if err := fed.Broker.List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	var guarded, admitted, want []string
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Namespace == policy.Namespace && selects(t, &policy.Spec.PodSelector, pod.Labels) {
			guarded = append(guarded, pod.Name)
		}
		var namespace corev1.Namespace
		if err := fed.Broker.Get(t.Context(), client.ObjectKey{Name: pod.Namespace}, &namespace); err != nil {
			t.Fatal(err)
		}
		for _, peer := range policy.Spec.Ingress[0].From {
			if selects(t, peer.NamespaceSelector, namespace.Labels) && selects(t, peer.PodSelector, pod.Labels) {
				admitted = append(admitted, pod.Name)
			}
		}
	}
	for _, kubelet := range virtualKubelets(t) {
		want = append(want, kubelet.Name)
	}
	if diff := cmp.Diff([]string{networkManager(t).Name}, guarded); diff != "" {
		t.Errorf("pods that the policy guards (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, admitted); diff != "" {
		t.Errorf("pods that the policy admits to Liqo's IPAM (-want +got):\n%s", diff)
	}
	open := map[string]string{} // Port to who is admitted.
	for _, rule := range policy.Spec.Ingress {
		for _, port := range rule.Ports {
			open[port.Port.String()] = map[bool]string{true: "everybody", false: "some"}[len(rule.From) == 0]
		}
	}
	if diff := cmp.Diff(map[string]string{"6000": "some", "6001": "everybody", "6002": "some", "6003": "everybody"}, open); diff != "" {
		t.Errorf("ports that the policy opens (-want +got):\n%s", diff)
	}
}

func selects(t *testing.T, selector *metav1.LabelSelector, set map[string]string) bool {
	t.Helper()
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Matches(labels.Set(set))
}
