// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/transit"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// TransitPrefix begins the names of all that is kept for the transit, beside the label [liqo.LabelBrokerManaged].
const TransitPrefix = "liqo-broker-"

// TransitFirewall is the name of the FirewallConfiguration of a peer in its tenant namespace, and of that of all peers in the namespace of
// who keeps both.
const TransitFirewall = TransitPrefix + "transit"

// tablePeer is the table of a peer in its gateway, where that of all is too.
const tablePeer = TransitFirewall + "-peer"

// Chains with priorityRaw are passed before destinations are translated and before connections are tracked, those with priorityTranslated
// after sources are translated (liqo/apis/networking/v1beta1/firewall/chain_types.go@v1.2.0). Liqo's own rules translate a source by the
// tunnel out of which a packet came, so that where they work ours know it too.
const (
	priorityRaw        = -300
	priorityTranslated = 150
)

// TransitPeer is a peer with its tenant namespace, where what is kept for it is.
type TransitPeer struct {
	transit.Peer

	Tenant string
}

// TransitFacts reads what decides about the transit: the networks of this cluster, and the peers with which it has a network. Only what is
// in the namespace of Liqo itself tells of the former: peers write IPs into their tenant namespaces. What people allow is not read.
func TransitFacts(ctx context.Context, objects client.Reader, own cluster.ID, liqos string) (transit.Networks, []TransitPeer, error) {
	n, err := ownNetworks(ctx, objects, liqos)
	if err != nil {
		return transit.Networks{}, nil, err
	}
	known, err := reader{objects, own}.Peers(ctx)
	if err != nil {
		return transit.Networks{}, nil, err
	}
	var peers []TransitPeer
	for i := range known {
		p := &known[i]
		seen, is, err := networkSeen(ctx, objects, p)
		if err != nil {
			return transit.Networks{}, nil, err
		}
		if !is {
			continue
		}
		granted, err := viewsGranted(ctx, objects, p, own)
		if err != nil {
			return transit.Networks{}, nil, err
		}
		peers = append(peers, TransitPeer{Tenant: p.Tenant, Peer: transit.Peer{
			ID: p.ID, Consumes: p.Incoming.Exists, Provides: p.Outgoing.Exists,
			Pods: prefixesOf(seen.Pod...), External: prefixesOf(seen.External...), Granted: granted,
		}})
	}
	return n, peers, nil
}

func ownNetworks(ctx context.Context, objects client.Reader, liqos string) (transit.Networks, error) {
	own, err := ownPrefixes(ctx, objects, client.InNamespace(liqos))
	if err != nil {
		return transit.Networks{}, err
	}
	var ips api.IPList
	if err := objects.List(ctx, &ips, client.InNamespace(liqos), client.UnsafeDisableDeepCopy); err != nil {
		return transit.Networks{}, fmt.Errorf("list IPs in namespace %s: %w", liqos, err)
	}
	n := transit.Networks{Pods: own[api.NetworkTypePods]}
	for _, external := range own[api.NetworkTypeExternal] {
		if external.Addr().Is4() {
			n.External = external
		}
	}
	for i := range ips.Items {
		ip := &ips.Items[i]
		address, err := netip.ParseAddr(ip.Status.IP)
		if ip.Labels[api.LabelIPType] == api.IPTypeProxy && err == nil && n.External.IsValid() && n.External.Contains(address) {
			n.Proxy = append(n.Proxy, address)
		}
	}
	return n, nil
}

// PodsSeen returns the prefixes under which this cluster sees the pods of a peer; none without a network to it.
func PodsSeen(ctx context.Context, objects client.Reader, own, id cluster.ID) ([]netip.Prefix, error) {
	peer, err := reader{objects, own}.Peer(ctx, id)
	if err != nil || peer == nil {
		return nil, err
	}
	seen, _, err := networkSeen(ctx, objects, peer)
	return prefixesOf(seen.Pod...), err
}

// ProviderPods returns under which prefix this cluster sees the pods of each peer that provides; those to which there is no network yet are
// left out. Only what is in the tenant namespace of a peer tells of it: of several Configurations the oldest, also while Liqo has decided
// about a younger one alone, or the prefix would change with each that is written.
func ProviderPods(ctx context.Context, objects client.Reader, own cluster.ID) (map[cluster.ID]netip.Prefix, error) {
	peers, err := reader{objects, own}.Peers(ctx)
	if err != nil {
		return nil, err
	}
	all, err := configurationsIn(ctx, objects)
	if err != nil {
		return nil, err
	}
	provides, pods := map[string]cluster.ID{}, map[cluster.ID]netip.Prefix{}
	for i := range peers {
		if p := &peers[i]; p.Tenant != "" && p.Outgoing.Exists {
			provides[p.Tenant] = p.ID
		}
	}
	for i := range all {
		c := &all[i]
		id, is := provides[c.Namespace]
		if !is || leadsTo(c.Labels) != id {
			continue
		}
		delete(provides, c.Namespace)
		if prefix, is := podsOf(c); is {
			pods[id] = prefix
		}
	}
	return pods, nil
}

// NetworksTo returns the names of the Configurations that lead to a peer, in its tenant namespace; the first one counts. Liqo makes one.
func NetworksTo(ctx context.Context, objects client.Reader, own, id cluster.ID) ([]string, error) {
	peer, err := reader{objects, own}.Peer(ctx, id)
	if err != nil || peer == nil || peer.Tenant == "" {
		return nil, err
	}
	all, err := configurationsIn(ctx, objects, client.InNamespace(peer.Tenant))
	var names []string
	for i := range all {
		if leadsTo(all[i].Labels) == id {
			names = append(names, all[i].Name)
		}
	}
	return names, err
}

// podsOf returns under which prefix this cluster sees the pods of a peer, of which others that are behind it are listed later.
func podsOf(c *api.Configuration) (netip.Prefix, bool) {
	seen := remapped(c).Pod
	if len(seen) == 0 {
		return netip.Prefix{}, false
	}
	prefix, err := netip.ParsePrefix(seen[0])
	return prefix.Masked(), err == nil
}

// PodsChanged reports whether an update of a Configuration changes under which prefix this cluster sees the pods of a peer.
func PodsChanged(before, after client.Object) bool {
	was, one := before.(*api.Configuration)
	is, other := after.(*api.Configuration)
	if !one || !other {
		return false
	}
	wasPods, _ := podsOf(was)
	isPods, _ := podsOf(is)
	return wasPods != isPods || leadsTo(was.Labels) != leadsTo(is.Labels)
}

// networkSeen returns under which prefixes this cluster sees a peer, and whether there is a network at all.
func networkSeen(ctx context.Context, objects client.Reader, p *liqo.Peer) (seen api.CIDRs, found bool, err error) {
	if p.Tenant == "" {
		return api.CIDRs{}, false, nil
	}
	all, err := configurationsIn(ctx, objects, client.InNamespace(p.Tenant))
	if err != nil {
		return api.CIDRs{}, false, err
	}
	for i := range all {
		if c := &all[i]; leadsTo(c.Labels) == p.ID {
			found = true
			seen.Pod, seen.External = append(seen.Pod, remapped(c).Pod...), append(seen.External, remapped(c).External...)
		}
	}
	return seen, found, nil
}

// viewsGranted returns the prefixes that a consumer was told. What cannot be read opens nothing.
func viewsGranted(ctx context.Context, objects client.Reader, p *liqo.Peer, own cluster.ID) ([]netip.Prefix, error) {
	var granted []netip.Prefix
	requests, err := RequestsBy(ctx, objects, own, p)
	for _, s := range requests.Slices {
		if !s.DeletionTimestamp.IsZero() {
			continue
		}
		told, _ := liqo.ViewsOf(s.Status.NodeLabels)
		for _, key := range slices.Sorted(maps.Keys(told)) {
			if told[key].Addr().Is4() {
				granted = append(granted, told[key])
			}
		}
	}
	return granted, err
}

// ForgeFirewall returns what Liqo keeps in all gateways, in a namespace.
func ForgeFirewall(namespace string, rules transit.Rules) *api.FirewallConfiguration {
	return forgeFirewall(namespace, TransitFirewall, rules, api.LabelFirewallSubcategory, api.FirewallAllGateways)
}

// ForgePeerFirewall returns what Liqo keeps in the gateway of one peer.
func ForgePeerFirewall(p *TransitPeer, rules transit.Rules) *api.FirewallConfiguration {
	return forgeFirewall(p.Tenant, tablePeer, rules, api.LabelFirewallUnique, string(p.ID))
}

func forgeFirewall(namespace, table string, rules transit.Rules, where, value string) *api.FirewallConfiguration {
	chains := []api.FirewallChain{
		dropping("arriving", api.HookPrerouting, priorityRaw, api.PositionDestination, rules.Arriving),
		dropping("leaving", api.HookPostrouting, priorityTranslated, api.PositionSource, rules.Leaving),
	}
	if len(rules.Forwarded) > 0 {
		chains = append(chains, dropping("forwarded", api.HookForward, 0, api.PositionDestination, rules.Forwarded))
	}
	return &api.FirewallConfiguration{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: TransitFirewall, Labels: map[string]string{
			liqo.LabelBrokerManaged: liqo.BrokerManaged, api.LabelFirewallCategory: api.FirewallCategoryGateway, where: value,
		}},
		Spec: api.FirewallConfigurationSpec{Table: api.FirewallTable{Name: &table, Family: new(api.FamilyIPv4), Chains: chains}},
	}
}

// dropping returns a chain that drops what comes out of the tunnel to some destinations, or from some sources. Liqo takes a rule for the
// same as long as it has the same name, puts new ones behind those that stay, and removes before it adds: each is called after what it
// does, so that those that stay are never away.
func dropping(name string, hook api.FirewallHook, priority int32, position api.FirewallPosition, of []transit.Range) api.FirewallChain {
	chain := api.FirewallChain{
		Name: &name, Type: api.ChainFilter, Policy: new(api.PolicyAccept), Hook: &hook, Priority: &priority,
	}
	for _, addresses := range of {
		chain.Rules.Filter = append(chain.Rules.Filter, api.FirewallRule{
			Name: new("drop-" + addresses.String()), Counter: true, Action: api.ActionDrop,
			Match: []api.FirewallMatch{
				{Op: api.OpEqual, Dev: &api.FirewallDevice{Value: api.Tunnel, Position: api.DeviceIn}},
				{Op: api.OpEqual, IP: &api.FirewallIP{Value: addresses.String(), Position: position}},
			},
		})
	}
	return chain
}

// Firewalled returns a FirewallConfiguration as it is with what another one says, or nil if it says so already.
func Firewalled(is, want *api.FirewallConfiguration) *api.FirewallConfiguration {
	labels := maps.Clone(want.Labels)
	for key, value := range is.Labels {
		if _, ours := labels[key]; !ours && key != api.LabelFirewallSubcategory && key != api.LabelFirewallUnique {
			labels[key] = value
		}
	}
	if equality.Semantic.DeepEqual(is.Spec, want.Spec) && maps.Equal(is.Labels, labels) {
		return nil
	}
	changed := is.DeepCopy()
	changed.Labels, changed.Spec = labels, want.Spec
	return changed
}

// IsTransit reports whether an object is kept for the transit.
func IsTransit(o client.Object) bool {
	return o.GetLabels()[liqo.LabelBrokerManaged] == liqo.BrokerManaged && strings.HasPrefix(o.GetName(), TransitPrefix)
}

// TransitSelector selects what is kept for the transit, for caches.
func TransitSelector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{liqo.LabelBrokerManaged: liqo.BrokerManaged})
}

// EndpointsSelector selects the EndpointSlices that consumers put here, and those that are kept beside them.
func EndpointsSelector() (labels.Selector, error) {
	managers := []string{api.EndpointsReflected, liqo.BrokerManaged}
	r, err := labels.NewRequirement(discoveryv1.LabelManagedBy, selection.In, managers)
	if err != nil {
		return nil, fmt.Errorf("select EndpointSlices by %s: %w", discoveryv1.LabelManagedBy, err)
	}
	return labels.NewSelector().Add(*r), nil
}

// EndpointsOf reports whether an EndpointSlice is one that Liqo has made here of what a consumer asked for.
func EndpointsOf(s *discoveryv1.EndpointSlice, consumer cluster.ID) bool {
	return s.Labels[liqo.LabelManagedBy] == liqo.ManagedByShadowEndpointSlice && s.Labels[api.LabelOriginCluster] == string(consumer) &&
		s.DeletionTimestamp.IsZero()
}

// BareEndpoints takes out of an EndpointSlice of a consumer what nobody here reads: each endpoint may have a hundred addresses, and as many
// zones, and the slice labels without number.
func BareEndpoints(s *discoveryv1.EndpointSlice) {
	if IsCompanion(s) {
		return
	}
	s.Annotations, s.Finalizers, s.OwnerReferences, s.GenerateName = nil, nil, nil, ""
	written := s.Labels
	s.Labels = map[string]string{}
	for _, key := range []string{liqo.LabelManagedBy, api.LabelOriginCluster, discoveryv1.LabelServiceName} {
		if value, has := written[key]; has {
			s.Labels[key] = value
		}
	}
	endpoints := make([]discoveryv1.Endpoint, len(s.Endpoints)) // Those that were read may have room for more.
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		endpoints[i] = discoveryv1.Endpoint{
			Addresses: slices.Clone(e.Addresses[:min(len(e.Addresses), 1)]), Conditions: e.Conditions, Hostname: e.Hostname,
		}
	}
	s.Endpoints, s.Ports = endpoints, slices.Clone(s.Ports)
}

// IsCompanion reports whether an EndpointSlice is kept beside one of a consumer. A consumer gives its own what names and labels it likes,
// and one that is a broker has companions too, which arrive here: Liqo marks them.
func IsCompanion(s *discoveryv1.EndpointSlice) bool {
	return IsTransit(s) && s.Labels[liqo.LabelManagedBy] == ""
}

// ForgeIP returns what opens an address to peers, in a namespace. Liqo deletes Services and EndpointSlices beside it that have its name
// (liqo/pkg/liqo-controller-manager/networking/ip-controller/exposition.go@v1.2.0): no Service has one with a dot.
func ForgeIP(namespace string, address netip.Addr) *api.IP {
	return &api.IP{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: TransitPrefix + strings.ReplaceAll(address.String(), ".", "-") + ".ip",
			Labels: map[string]string{liqo.LabelBrokerManaged: liqo.BrokerManaged},
		},
		Spec: api.IPSpec{IP: address.String()},
	}
}

// Opens reports whether an IP opens what another one does, in the same way.
func Opens(is, want *api.IP) bool { return equality.Semantic.DeepEqual(is.Spec, want.Spec) }

// IsOffloaded reports whether this cluster offloads a namespace.
func IsOffloaded(ctx context.Context, objects client.Reader, namespace string) (bool, error) {
	var o api.NamespaceOffloading
	key := client.ObjectKey{Namespace: namespace, Name: liqo.OffloadingName}
	if err := objects.Get(ctx, key, &o); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return false, nil
		}
		return false, fmt.Errorf("get NamespaceOffloading %s: %w", key, err)
	}
	return o.DeletionTimestamp.IsZero(), nil
}

// LeadsTo returns the cluster to which an object of the network leads.
func LeadsTo(o client.Object) cluster.ID { return leadsTo(o.GetLabels()) }
