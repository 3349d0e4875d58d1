// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/controller/fence"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// A host is what a pod may want to reach.
type host struct {
	address string
	// port is one on which it listens on the lab; 0 if the lab has no such host.
	port int
	// pod is set if it is a pod.
	pod *corev1.Pod
	// open tells that the pods of a peer may reach it.
	open bool
}

// TestGuestsAreFenced reads the NetworkPolicy that a seller's guard has put around the pods of its buyer: it keeps them from the nodes,
// from Services and pods of the seller, and from what tells machines their credentials. The lab's network plugin obeys no policies, so that
// without one the pod of the buyer reaches these.
func TestGuestsAreFenced(t *testing.T) {
	contracted(t)
	at, namespace := fed.ProviderB, twinAt(t, fed.ProviderB, fed.Consumer)
	guest := onlyPod(t, at, namespace)
	var policy networkingv1.NetworkPolicy
	eventually(t, time.Minute, func(ctx context.Context) error {
		return at.Get(ctx, client.ObjectKey{Namespace: namespace, Name: fence.Name}, &policy)
	})
	if len(policy.Spec.PolicyTypes) != 2 || len(policy.Spec.PodSelector.MatchLabels)+len(policy.Spec.PodSelector.MatchExpressions) > 0 {
		t.Errorf("the policy is not about all pods of namespace %s, and all that they send and get: %+v", namespace, policy.Spec)
	}
	var apiServer corev1.Service
	var nodes corev1.Endpoints //nolint:staticcheck // What the API server keeps under its own name is one, in each version.
	key := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}
	if err := at.Get(t.Context(), key, &apiServer); err != nil {
		t.Fatal(err)
	}
	if err := at.Get(t.Context(), key, &nodes); err != nil {
		t.Fatal(err)
	}
	connector := onlyPod(t, at, "liqo-broker-connector")
	dns := onlyPod(t, at, metav1.NamespaceSystem, client.MatchingLabels{"k8s-app": "kube-dns"})
	for name, h := range map[string]host{
		"the credentials of the machine":      {address: "169.254.169.254"},
		"the API server of the node":          {address: nodes.Subsets[0].Addresses[0].IP, port: int(nodes.Subsets[0].Ports[0].Port)},
		"the Service of the API server":       {address: apiServer.Spec.ClusterIP, port: int(apiServer.Spec.Ports[0].Port)},
		"a pod of the seller":                 {address: connector.Status.PodIP, port: 8081, pod: connector},
		"a pod of the buyer":                  {address: guest.Status.PodIP, pod: guest, open: true},
		"the DNS of the seller":               {address: dns.Status.PodIP, pod: dns, open: true},
		"what everybody in the world may see": {address: "8.8.8.8", open: true},
	} {
		var peers []networkingv1.NetworkPolicyPeer
		for _, rule := range policy.Spec.Egress {
			peers = append(peers, rule.To...)
		}
		if open := admits(t, at, peers, h); open != h.open {
			t.Errorf("the policy has pods of the buyer reach %s (%s): %t, want %t", name, h.address, open, h.open)
		}
		if h.port == 0 {
			continue
		}
		address := net.JoinHostPort(h.address, strconv.Itoa(h.port))
		if reached, err := at.Reaches(t.Context(), guest, address); err != nil || !reached {
			t.Errorf("a pod of the buyer reaches %s (%s): %t, want it where no plugin obeys the policy: %v", name, address, reached, err)
		}
	}
	var from []networkingv1.NetworkPolicyPeer
	for _, rule := range policy.Spec.Ingress {
		from = append(from, rule.From...)
	}
	for _, h := range []host{{address: connector.Status.PodIP, pod: connector}, {address: guest.Status.PodIP, pod: guest, open: true}} {
		if open := admits(t, at, from, h); open != h.open {
			t.Errorf("the policy has pod %s/%s reach pods of the buyer: %t, want %t", h.pod.Namespace, h.pod.Name, open, h.open)
		}
	}
}

// admits reports whether a NetworkPolicy means a host by one of its peers, whatever the port.
func admits(t *testing.T, at *federation.Cluster, peers []networkingv1.NetworkPolicyPeer, h host) bool {
	t.Helper()
	address := netip.MustParseAddr(h.address)
	matches := func(selector *metav1.LabelSelector, of map[string]string) bool {
		s, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		return s.Matches(labels.Set(of))
	}
	var namespace corev1.Namespace
	if h.pod != nil {
		if err := at.Get(t.Context(), client.ObjectKey{Name: h.pod.Namespace}, &namespace); err != nil {
			t.Fatal(err)
		}
	}
	for _, peer := range peers {
		switch {
		case peer.IPBlock != nil:
			means := netip.MustParsePrefix(peer.IPBlock.CIDR).Contains(address)
			for _, except := range peer.IPBlock.Except {
				means = means && !netip.MustParsePrefix(except).Contains(address)
			}
			if means {
				return true
			}
		case h.pod != nil && matches(peer.NamespaceSelector, namespace.Labels) &&
			(peer.PodSelector == nil || matches(peer.PodSelector, h.pod.Labels)):
			return true
		}
	}
	return false
}
