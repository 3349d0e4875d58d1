// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package topology says which clusters a lab has, which addresses they use and
// who peers with whom. It is data: it knows nothing of how a cluster is made.
package topology

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// Names of the clusters of the usual federation.
const (
	Consumer  = "consumer"
	Broker    = "broker"
	ProviderA = "provider-a"
	ProviderB = "provider-b"
)

// Cluster is one Kubernetes cluster with a single node.
type Cluster struct {
	// Name is the name of the cluster, of its node and in Liqo.
	Name string `json:"name"`
	// Tier is the role of the cluster, told to its peers as the label lab.io/tier.
	Tier string `json:"tier"`
	// Address is the address of the node on the WAN.
	Address netip.Addr `json:"address"`
	// PodCIDR is a prefix of which the node uses the first /24.
	PodCIDR netip.Prefix `json:"podCIDR"`
	// ServiceCIDR is a /16; its addresses .0.1 and .0.10 are the API server's and the DNS server's.
	ServiceCIDR netip.Prefix `json:"serviceCIDR"`
}

// Labels are the labels that Liqo puts on the virtual nodes that stand for this cluster.
func (c Cluster) Labels() map[string]string {
	return map[string]string{"lab.io/tier": c.Tier, "lab.io/cluster": c.Name}
}

// NodePodCIDR is the part of the pod CIDR that the only node has.
func (c Cluster) NodePodCIDR() netip.Prefix { return netip.PrefixFrom(c.PodCIDR.Addr(), 24) }

// APIServerIP is the address of the Service `kubernetes`.
func (c Cluster) APIServerIP() netip.Addr { return c.serviceIP(1) }

// DNSIP is the address of the Service `kube-dns`.
func (c Cluster) DNSIP() netip.Addr { return c.serviceIP(10) }

func (c Cluster) serviceIP(host byte) netip.Addr {
	ip := c.ServiceCIDR.Masked().Addr().As4()
	ip[3] = host
	return netip.AddrFrom4(ip)
}

// Peering is a one-way relation: the consumer uses the resources of the provider.
type Peering struct {
	Consumer string `json:"consumer"`
	Provider string `json:"provider"`
}

func (p Peering) String() string { return p.Consumer + "→" + p.Provider }

// Topology is a whole lab.
type Topology struct {
	// WAN is the network that connects the nodes.
	WAN netip.Prefix `json:"wan"`
	// Gateway is the nodes' default gateway on the WAN. It leads nowhere.
	Gateway  netip.Addr `json:"gateway"`
	Clusters []Cluster  `json:"clusters"`
	// Peerings are made in this order by each consumer.
	Peerings []Peering `json:"peerings"`
}

// Overlapping is the usual federation. Its consumer and its providers have one
// and the same pod CIDR, and all clusters have the same service CIDR, so that an
// address that was not translated cannot be right by luck.
func Overlapping() Topology {
	return federation([4]string{"10.200.0.0/16", "10.201.0.0/16", "10.200.0.0/16", "10.200.0.0/16"},
		[4]string{"10.80.0.0/16", "10.80.0.0/16", "10.80.0.0/16", "10.80.0.0/16"})
}

// Distinct is the same federation with a CIDR of its own for everything, so that
// Liqo has nothing to remap.
func Distinct() Topology {
	return federation([4]string{"10.200.0.0/16", "10.201.0.0/16", "10.202.0.0/16", "10.203.0.0/16"},
		[4]string{"10.80.0.0/16", "10.81.0.0/16", "10.82.0.0/16", "10.83.0.0/16"})
}

// Equal is the same federation with one pod CIDR for all.
func Equal() Topology {
	topology := Overlapping()
	for i := range topology.Clusters {
		topology.Clusters[i].PodCIDR = topology.Clusters[0].PodCIDR
	}
	return topology
}

// Partial is the same federation with pod CIDRs of different lengths that lie
// inside one another.
func Partial() Topology {
	return federation([4]string{"10.200.0.0/16", "10.200.64.0/18", "10.200.0.0/15", "10.201.0.0/16"},
		[4]string{"10.80.0.0/16", "10.80.0.0/16", "10.80.0.0/16", "10.80.0.0/16"})
}

// Nested is the same federation where the pod CIDR of provider-b lies inside of
// 10.81.0.0/16, which Liqo takes as the external CIDR of the others.
func Nested() Topology {
	return federation([4]string{"10.200.0.0/16", "10.201.0.0/16", "10.200.0.0/16", "10.81.64.0/18"},
		[4]string{"10.80.0.0/16", "10.80.0.0/16", "10.80.0.0/16", "10.80.0.0/16"})
}

// Strangers is the same federation before anybody has peered.
func Strangers() Topology {
	topology := Overlapping()
	topology.Peerings = nil
	return topology
}

// Usage names the topologies, for the help of a command.
const Usage = "overlapping: consumer and providers with the same CIDRs; distinct: each with its own; equal: one pod CIDR for all; " +
	"partial: pod CIDRs inside one another; nested: a pod CIDR inside the external CIDR of another; strangers: as overlapping, " +
	"without peerings"

// Named returns the topology of that name, one of those in [Usage].
func Named(name string) (Topology, error) {
	switch name {
	case "overlapping":
		return Overlapping(), nil
	case "distinct":
		return Distinct(), nil
	case "equal":
		return Equal(), nil
	case "partial":
		return Partial(), nil
	case "nested":
		return Nested(), nil
	case "strangers":
		return Strangers(), nil
	}
	return Topology{}, fmt.Errorf("unknown topology %q; use %s", name, Usage)
}

func federation(pods, services [4]string) Topology {
	t := Topology{
		WAN:     netip.MustParsePrefix("172.30.0.0/24"),
		Gateway: netip.MustParseAddr("172.30.0.254"),
		Peerings: []Peering{
			{Consumer, Broker}, {Broker, ProviderA}, {Broker, ProviderB}, {Consumer, ProviderA}, {Broker, Consumer},
		},
	}
	names := [4]string{Consumer, Broker, ProviderA, ProviderB}
	tiers := [4]string{"consumer", "broker", "provider", "provider"}
	address := t.WAN.Addr()
	for i := range names {
		address = address.Next()
		t.Clusters = append(t.Clusters, Cluster{
			Name: names[i], Tier: tiers[i], Address: address,
			PodCIDR: netip.MustParsePrefix(pods[i]), ServiceCIDR: netip.MustParsePrefix(services[i]),
		})
	}
	return t
}

// Cluster returns the cluster of that name.
func (t Topology) Cluster(name string) (Cluster, error) {
	i := slices.IndexFunc(t.Clusters, func(c Cluster) bool { return c.Name == name })
	if i < 0 {
		return Cluster{}, fmt.Errorf("unknown cluster %q: the lab has %v", name, t.Names())
	}
	return t.Clusters[i], nil
}

// Names are the names of all clusters, in order.
func (t Topology) Names() []string {
	var names []string
	for _, c := range t.Clusters {
		names = append(names, c.Name)
	}
	return names
}

// Select keeps only the named clusters and the peerings among them. No names keep all.
func (t Topology) Select(names ...string) (Topology, error) {
	if len(names) == 0 {
		return t, nil
	}
	out := Topology{WAN: t.WAN, Gateway: t.Gateway}
	for _, name := range names {
		c, err := t.Cluster(name)
		if err != nil {
			return Topology{}, err
		}
		out.Clusters = append(out.Clusters, c)
	}
	for _, p := range t.Peerings {
		if slices.Contains(names, p.Consumer) && slices.Contains(names, p.Provider) {
			out.Peerings = append(out.Peerings, p)
		}
	}
	return out, nil
}

// Validate reports every reason why such a lab cannot be made.
func (t Topology) Validate() error {
	var errs []error
	seen := map[string]bool{}
	for _, c := range t.Clusters {
		switch {
		case c.Name == "" || seen[c.Name]:
			errs = append(errs, fmt.Errorf("cluster name %q is empty or used twice", c.Name))
		case seen[c.Address.String()]:
			errs = append(errs, fmt.Errorf("cluster %s: address %s is used twice", c.Name, c.Address))
		case !t.WAN.Contains(c.Address) || c.Address == t.Gateway:
			errs = append(errs, fmt.Errorf("cluster %s: address %s is not a host of the WAN %s", c.Name, c.Address, t.WAN))
		case c.PodCIDR.Bits() > 24 || c.PodCIDR != c.PodCIDR.Masked() || c.ServiceCIDR.Bits() != 16:
			errs = append(errs, fmt.Errorf("cluster %s: pod CIDR %s must hold a /24, and service CIDR %s must be a /16", c.Name, c.PodCIDR,
				c.ServiceCIDR))
		case c.PodCIDR.Overlaps(c.ServiceCIDR) || c.PodCIDR.Overlaps(t.WAN) || c.ServiceCIDR.Overlaps(t.WAN):
			errs = append(errs, fmt.Errorf("cluster %s: pod CIDR %s, service CIDR %s and WAN %s overlap", c.Name, c.PodCIDR, c.ServiceCIDR, t.WAN))
		}
		seen[c.Name], seen[c.Address.String()] = true, true
	}
	for _, p := range t.Peerings {
		if !seen[p.Consumer] || !seen[p.Provider] || p.Consumer == p.Provider {
			errs = append(errs, fmt.Errorf("peering %s is not between two clusters of the lab", p))
		}
	}
	return errors.Join(errs...)
}
