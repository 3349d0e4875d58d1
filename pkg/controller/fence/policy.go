// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fence bounds where the pods of a peer reach, and who reaches them: it keeps a NetworkPolicy in each namespace of a peer.
//
// The pods reach each other, those of their own cluster through the tunnel, the cluster's DNS, and public addresses; neither the nodes,
// nor Services and other pods of this cluster, nor what else has a private or link-local address, as the credentials of clouds do. It does
// not know whether the network plugin obeys.
package fence

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

const (
	// Name is the name of the NetworkPolicy in each namespace of a peer.
	Name = "liqo-broker"
	// annotationDigest is on a NetworkPolicy that is as it is to be, so that its metadata tell.
	annotationDigest = "brokering.liqo.io/fence"
)

// Networks are what a fence is made of.
type Networks struct {
	// Peer is how the peer is seen here; empty while there is no tunnel.
	Peer []netip.Prefix
	// Own are those of this cluster's pods, Services and nodes.
	Own []netip.Prefix
	// Internet tells that the pods may reach public addresses.
	Internet bool
}

// private are the addresses that are not public: those of RFC 1122, 1918, 2544, 3927, 6598 and 6890, multicast and reserved ones, and
// for IPv6 those of RFC 4193, 4291 and 6666, and such as hide IPv4 ones: RFC 3056, 4380 and 6052. The key tells whether they are IPv4.
// Those that are mapped into IPv6 (RFC 4291, 2.5.5.2) are on no wire but as IPv4, and the API server reads them as such: it takes no policy
// with them.
var private = map[bool][]string{
	true: {
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16",
		"198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4",
	},
	false: {"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/32", "2002::/16", "fc00::/7", "fe80::/10", "ff00::/8"},
}

// Policy returns the NetworkPolicy of a peer's namespace.
func (n Networks) Policy(namespace string, peer cluster.ID) (*networkingv1.NetworkPolicy, error) {
	same := networkingv1.NetworkPolicyPeer{NamespaceSelector: liqo.TwinsOf(peer)}
	around := append([]networkingv1.NetworkPolicyPeer{same}, n.beyond()...)
	egress := []networkingv1.NetworkPolicyEgressRule{{To: around}, {To: []networkingv1.NetworkPolicyPeer{dns()}, Ports: dnsPorts()}}
	if n.Internet {
		egress = append(egress, networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{n.public(true), n.public(false)}})
	}
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: Name, Labels: map[string]string{liqo.LabelBrokerManaged: liqo.BrokerManaged},
		},
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: around}},
			Egress:      egress,
		},
	}
	text, err := json.Marshal(policy.Spec)
	if err != nil {
		return nil, fmt.Errorf("write the fence of namespace %s: %w", namespace, err)
	}
	digest := sha256.Sum256(text)
	policy.Annotations = map[string]string{annotationDigest: hex.EncodeToString(digest[:8])}
	return policy, nil
}

// local are the addresses that lead to no other machine, or to one that tells its own guests their credentials.
var local = []netip.Prefix{
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("::1/128"),
	netip.MustParsePrefix("fe80::/10"),
}

// beyond returns how the peer is seen here, as what policies select, but for what is this cluster's own: the peer says what its networks
// are.
func (n Networks) beyond() []networkingv1.NetworkPolicyPeer {
	var peers []networkingv1.NetworkPolicyPeer
	own := sorted(append(slices.Clone(local), n.Own...))
	for _, prefix := range sorted(n.Peer) {
		if prefix.Addr().Is4In6() {
			continue // The API server would take no policy with it, and nothing is seen there.
		}
		block, taken := &networkingv1.IPBlock{CIDR: prefix.String()}, false
		for _, o := range own {
			switch {
			case !o.Overlaps(prefix):
			case o.Bits() <= prefix.Bits():
				taken = true
			default:
				block.Except = append(block.Except, o.String())
			}
		}
		if !taken {
			peers = append(peers, networkingv1.NetworkPolicyPeer{IPBlock: block})
		}
	}
	return peers
}

// public returns all public addresses of IPv4 or IPv6 that are not this cluster's.
func (n Networks) public(v4 bool) networkingv1.NetworkPolicyPeer {
	block := &networkingv1.IPBlock{CIDR: "::/0", Except: slices.Clone(private[v4])}
	if v4 {
		block.CIDR = "0.0.0.0/0"
	}
	for _, own := range sorted(n.Own) {
		if own.Addr().Is4() == v4 && own.Bits() > 0 && !isPrivate(own) {
			block.Except = append(block.Except, own.String())
		}
	}
	return networkingv1.NetworkPolicyPeer{IPBlock: block}
}

// isPrivate reports whether no address of a prefix is public.
func isPrivate(prefix netip.Prefix) bool {
	return slices.ContainsFunc(private[prefix.Addr().Is4()], func(text string) bool {
		of := netip.MustParsePrefix(text)
		return of.Bits() <= prefix.Bits() && of.Contains(prefix.Addr())
	})
}

func sorted(prefixes []netip.Prefix) []netip.Prefix {
	all := slices.Clone(prefixes)
	slices.SortFunc(all, func(a, b netip.Prefix) int {
		if c := a.Addr().Compare(b.Addr()); c != 0 {
			return c
		}
		return a.Bits() - b.Bits()
	})
	return slices.Compact(all)
}

// dns is the cluster's DNS, as Kubernetes' installations label it.
func dns() networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: metav1.NamespaceSystem}},
		PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "kube-dns"}},
	}
}

func dnsPorts() []networkingv1.NetworkPolicyPort {
	const port, portOfPods = 53, 8053 // The second one is that of some distributions' pods.
	var ports []networkingv1.NetworkPolicyPort
	for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
		for _, number := range []int32{port, portOfPods} {
			ports = append(ports, networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: new(intstr.FromInt32(number))})
		}
	}
	return ports
}
