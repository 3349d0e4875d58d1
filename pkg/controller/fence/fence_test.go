// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/controller/fence"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

const peer = "b1a2"

// inBlocks reports whether an address is in one of what policies select.
func inBlocks(peers []networkingv1.NetworkPolicyPeer, address netip.Addr) bool {
	for _, p := range peers {
		if p.IPBlock == nil || !netip.MustParsePrefix(p.IPBlock.CIDR).Contains(address) {
			continue
		}
		excepted := false
		for _, except := range p.IPBlock.Except {
			excepted = excepted || netip.MustParsePrefix(except).Contains(address)
		}
		if !excepted {
			return true
		}
	}
	return false
}

// reaches evaluates a policy: whether pods reach an address on any port, and whether they are reached from there.
func reaches(policy *networkingv1.NetworkPolicy, address string) (out, in bool) {
	parsed := netip.MustParseAddr(address).Unmap() // Which it is on the wire.
	for _, rule := range policy.Spec.Egress {
		out = out || len(rule.Ports) == 0 && inBlocks(rule.To, parsed)
	}
	for _, rule := range policy.Spec.Ingress {
		in = in || inBlocks(rule.From, parsed)
	}
	return out, in
}

// taken fails where the API server does not take what a policy selects, which it reads with package net (ValidateIPBlock of Kubernetes).
func taken(t *testing.T, peers []networkingv1.NetworkPolicyPeer) {
	t.Helper()
	for _, p := range peers {
		if p.IPBlock == nil {
			continue
		}
		_, block, err := net.ParseCIDR(p.IPBlock.CIDR)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range p.IPBlock.Except {
			_, except, err := net.ParseCIDR(text)
			if err != nil {
				t.Fatal(err)
			}
			bits, _ := block.Mask.Size()
			if exceptBits, _ := except.Mask.Size(); !block.Contains(except.IP) || exceptBits <= bits {
				t.Errorf("%s is not a part of %s", text, p.IPBlock.CIDR)
			}
		}
	}
}

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func TestPolicy(t *testing.T) {
	own := prefixes("10.200.0.0/16", "10.96.0.0/12", "203.0.113.7/32", "2001:db8:1::7/128")
	internet := fence.Networks{Peer: prefixes("10.210.0.0/16", "10.211.0.0/16"), Own: own, Internet: true}
	shut := fence.Networks{Peer: internet.Peer, Own: own}
	hostile := fence.Networks{
		Peer: prefixes("0.0.0.0/0", "::/0", "::ffff:0:0/90", "::ffff:10.200.0.0/112", "169.254.169.0/24", "10.200.7.0/24"), Own: own,
	}
	cases := map[string]struct {
		reason   string
		networks fence.Networks
		address  string
		out, in  bool
	}{
		"Tunnel":      {"It is the peer's own cluster.", internet, "10.210.1.2", true, true},
		"Relayed":     {"The peer relays from there.", shut, "10.211.1.2", true, true},
		"Public":      {"The internet is not this cluster's.", internet, "198.51.100.7", true, false},
		"Public6":     {"Also the newer one.", internet, "2606:4700::1", true, false},
		"Shut":        {"The operator does not let them.", shut, "198.51.100.7", false, false},
		"Pod":         {"It is somebody else's.", internet, "10.200.1.2", false, false},
		"Service":     {"The API server is one.", internet, "10.96.0.1", false, false},
		"Node":        {"The kubelet listens there.", internet, "203.0.113.7", false, false},
		"Node6":       {"Also there.", internet, "2001:db8:1::7", false, false},
		"Neighbour":   {"It is not a node.", internet, "203.0.113.8", true, false},
		"Private":     {"The operator's own machines are there.", internet, "192.168.1.1", false, false},
		"Private172":  {"Also there.", internet, "172.18.0.2", false, false},
		"Carrier":     {"And there.", internet, "100.64.0.1", false, false},
		"Credentials": {"Clouds tell nodes who they are.", internet, "169.254.169.254", false, false},
		"Credential6": {"Also there.", internet, "fd00:ec2::254", false, false},
		"Loopback":    {"It is the node itself for some plugins.", internet, "127.0.0.1", false, false},
		"Mapped":      {"It is the same address.", internet, "::ffff:169.254.169.254", false, false},
		"Translated":  {"A gateway makes it one.", internet, "64:ff9b::a9fe:a9fe", false, false},
		"NoTunnel":    {"It is nobody's.", fence.Networks{Own: own}, "10.210.1.2", false, false},
		"AllPods":     {"The peer says that it has all addresses.", hostile, "10.200.1.2", false, false},
		"AllServices": {"Also these.", hostile, "10.96.0.1", false, false},
		"AllNodes":    {"Also these.", hostile, "203.0.113.7", false, false},
		"AllLocal":    {"Also these.", hostile, "169.254.169.254", false, false},
		"AllMapped":   {"Also these.", hostile, "::ffff:10.200.1.2", false, false},
		"AllNodes6":   {"Also these.", hostile, "2001:db8:1::7", false, false},
		"Within":      {"The peer says that it has a part of this cluster's.", hostile, "10.200.7.7", false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy, err := tc.networks.Policy("shop", peer)
			if err != nil {
				t.Fatal(err)
			}
			for _, rule := range policy.Spec.Egress {
				taken(t, rule.To)
			}
			for _, rule := range policy.Spec.Ingress {
				taken(t, rule.From)
			}
			if out, in := reaches(policy, tc.address); out != tc.out || in != tc.in {
				t.Errorf("%s\nreached %t, reaches %t, want %t and %t", tc.reason, out, in, tc.out, tc.in)
			}
		})
	}
}

// TestNeighbours holds that pods reach those of the same peer in its other namespaces, and not what Liqo 1.x runs for that peer: whoever
// reaches a virtual kubelet may ask it for anything.
func TestNeighbours(t *testing.T) {
	policy, err := fence.Networks{}.Policy("shop", peer)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		namespace labels.Set
		want      bool
	}{
		"Own":     {labels.Set{"liqo.io/remote-cluster-id": peer}, true},
		"Another": {labels.Set{"liqo.io/remote-cluster-id": "c3d4"}, false},
		"Liqo":    {labels.Set{"liqo.io/remote-cluster-id": peer, "liqo.io/tenant-namespace": "true"}, false},
	} {
		for _, around := range [][]networkingv1.NetworkPolicyPeer{policy.Spec.Egress[0].To, policy.Spec.Ingress[0].From} {
			selector, err := metav1.LabelSelectorAsSelector(around[0].NamespaceSelector)
			if err != nil {
				t.Fatal(err)
			}
			if got := selector.Matches(tc.namespace); got != tc.want {
				t.Errorf("%s: the namespace with %v is around: %t", name, tc.namespace, got)
			}
		}
	}
}

// TestOrder makes the same policy of the same networks, in whatever order they are read.
func TestOrder(t *testing.T) {
	first, err := fence.Networks{Peer: prefixes("10.2.0.0/16", "10.1.0.0/16"),
		Own: prefixes("203.0.113.8/32", "203.0.113.7/32")}.Policy("shop", peer)
	if err != nil {
		t.Fatal(err)
	}
	again, err := fence.Networks{Peer: prefixes("10.1.0.0/16", "10.2.0.0/16", "10.1.0.0/16"),
		Own: prefixes("203.0.113.7/32", "203.0.113.8/32")}.Policy("shop", peer)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error(diff)
	}
}

// peers has a tunnel to whoever is asked for.
type peers struct{}

func (peers) Line() line.Line { return v09.Line{} }

func (peers) Peer(context.Context, cluster.ID) (*liqo.Peer, error) {
	return nil, nil
}

func (peers) LinksTo(context.Context, *liqo.Peer) ([]liqo.Link, error) {
	return []liqo.Link{{Seen: []netip.Prefix{netip.MustParsePrefix("10.210.0.0/16")}}}, nil
}

func TestReconcile(t *testing.T) {
	own := &corev1.Namespace{}
	own.Name = "own"
	ipam := &v09.IpamStorage{}
	ipam.Name, ipam.Spec.PodCIDR = "ipam", "198.51.0.0/16"
	node := &corev1.Node{}
	node.Name = "node"
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "node"}, {Type: corev1.NodeExternalIP, Address: "203.0.113.7"},
	}
	c := snapshottest.NewClient(t, interceptor.Funcs{}, liqotest.TwinNamespace("shop", cluster.Identity{ID: peer}), own, ipam, node)
	r := fence.New(fence.Config{Client: c, Peers: peers{}, Internet: true})
	look := func(name string) {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	key := client.ObjectKey{Namespace: "shop", Name: fence.Name}
	read := func() *networkingv1.NetworkPolicy {
		t.Helper()
		var policy networkingv1.NetworkPolicy
		if err := c.Get(t.Context(), key, &policy); err != nil {
			t.Fatal(err)
		}
		return &policy
	}
	look("shop")
	made := read()
	for address, want := range map[string]bool{"10.210.1.2": true, "192.0.2.7": true, "198.51.100.7": false, "203.0.113.7": false} {
		if out, _ := reaches(made, address); out != want {
			t.Errorf("%s is reached: %t", address, out)
		}
	}
	look("shop")
	if again := read(); again.ResourceVersion != made.ResourceVersion {
		t.Error("what is as it is to be is written again")
	}
	opened := made.DeepCopy()
	opened.Spec.Egress = append(opened.Spec.Egress, networkingv1.NetworkPolicyEgressRule{})
	if err := c.Update(t.Context(), opened); err != nil {
		t.Fatal(err)
	}
	look("shop")
	if diff := cmp.Diff(made.Spec, read().Spec); diff != "" {
		t.Errorf("what somebody has opened stays open\n%s", diff)
	}
	for _, name := range []string{"own", "gone"} {
		look(name)
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: name, Name: fence.Name},
			&networkingv1.NetworkPolicy{}); !apierrors.IsNotFound(err) {
			t.Errorf("namespace %s of nobody is fenced: %v", name, err)
		}
	}
}
