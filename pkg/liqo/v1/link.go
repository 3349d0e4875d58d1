// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// errUndecided means that Liqo has not decided yet under which prefix a network is seen here.
var errUndecided = errors.New("not seen here yet")

// LinksOf returns the networks towards peers: one for each Configuration, with the Connection to the same cluster beside it.
func LinksOf(configurations []api.Configuration, connections []api.Connection) []liqo.Link {
	beside := map[types.NamespacedName]*api.Connection{} // By its namespace, and the cluster to which it leads.
	to := func(o client.Object) types.NamespacedName {
		return types.NamespacedName{Namespace: o.GetNamespace(), Name: string(leadsTo(o.GetLabels()))}
	}
	for i := range connections {
		if c := &connections[i]; beside[to(c)] == nil || Connected(c) && !said(c).Before(said(beside[to(c)])) {
			beside[to(c)] = c
		}
	}
	links := make([]liqo.Link, len(configurations))
	for i := range configurations {
		links[i] = LinkOf(&configurations[i], beside[to(&configurations[i])])
	}
	return links
}

// LinkOf returns the network that a Configuration describes, and how its Connection is; nil if there is none. How the peer sees this
// cluster only the peer knows: [addressing.Peer.Home] and HomeExternal are not valid.
func LinkOf(c *api.Configuration, tunnel *api.Connection) liqo.Link {
	link := liqo.Link{
		Tenant: c.Namespace, Peer: leadsTo(c.Labels), Seen: seenPrefixes(c), Connected: Connected(tunnel), Said: said(tunnel),
	}
	link.Path, link.Negotiating = linkPath(c, link.Connected)
	if tunnel != nil {
		link.Measure(tunnel.Status.Latency.Value, tunnel.Status.Latency.Timestamp.Time)
	}
	return link
}

// Connected reports whether a tunnel is there, and up.
func Connected(tunnel *api.Connection) bool {
	return tunnel != nil && tunnel.Status.Value == api.Connected
}

// said returns when the gateway of a tunnel has said last that it is up; zero if it does not. The gateway sends a ping every 2 s, says with
// the first answer that comes 10 s after it has said so last, and says otherwise when none has come for 10 s (UpdateConnectionStatus in
// liqo/pkg/gateway/connection, flags.go, and RunDisconnectObserver in conncheck, @v1.2.0).
func said(tunnel *api.Connection) time.Time {
	if !Connected(tunnel) {
		return time.Time{}
	}
	return tunnel.Status.Latency.Timestamp.Time
}

// leadsTo returns the cluster of which an object of the network says that it leads there.
func leadsTo(labels map[string]string) cluster.ID {
	return cluster.ID(labels[liqo.LabelRemoteClusterID])
}

// linkPath reads out of a Configuration how the peer's own pods and its external CIDR are seen here: the first ones of their lists. While
// Liqo has not decided about the former, the error says so.
func linkPath(c *api.Configuration, connected bool) (addressing.Peer, error) {
	id, own, seen := leadsTo(c.Labels), c.Spec.Remote.CIDR, remapped(c)
	if id == "" {
		return addressing.Peer{}, fmt.Errorf("configuration %s/%s names no cluster", c.Namespace, c.Name)
	}
	pods, err := firstView(own.Pod, seen.Pod)
	if err != nil {
		return addressing.Peer{}, fmt.Errorf("pod CIDR of cluster %s: %w", id, err)
	}
	external, err := firstView(own.External, seen.External)
	if err != nil {
		external = addressing.View{}
	}
	return addressing.Peer{Pods: pods, External: external, Connected: connected}, nil
}

// firstView returns how the first network of a list is seen here, which is at the same place of the other list. Other than in Liqo 0.9,
// nothing there means that it is not seen, and not that it is seen as it is.
func firstView(own, seen []string) (addressing.View, error) {
	if len(own) == 0 || len(seen) == 0 || seen[0] == "" {
		return addressing.View{}, errUndecided
	}
	return addressing.NewView(own[0], seen[0])
}

// seenPrefixes returns the prefixes under which what is behind a peer is seen here, pods and others.
func seenPrefixes(c *api.Configuration) []netip.Prefix {
	return append(prefixesOf(remapped(c).Pod...), prefixesOf(remapped(c).External...)...)
}

// prefixesOf returns those that some texts say. What is none is passed over: Liqo has not decided, or takes it for none either.
func prefixesOf(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			all = append(all, prefix.Masked())
		}
	}
	return all
}

// ownPrefixes returns the networks of this cluster by their types, of all Networks somewhere. The other Networks are of peers.
func ownPrefixes(ctx context.Context, objects client.Reader, where ...client.ListOption) (map[string][]netip.Prefix, error) {
	var networks api.NetworkList
	if err := objects.List(ctx, &networks, append(slices.Clone(where), client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list the networks: %w", err)
	}
	own := map[string][]netip.Prefix{}
	for i := range networks.Items {
		n := &networks.Items[i]
		if of := n.Labels[api.LabelNetworkType]; slices.Contains(ownNetworkTypes(), of) {
			own[of] = append(own[of], prefixesOf(n.Status.CIDR)...)
		}
	}
	return own, nil
}

// ownNetworkTypes are the types of the Networks that are this cluster's.
func ownNetworkTypes() []string {
	return []string{api.NetworkTypePods, api.NetworkTypeServices, api.NetworkTypeExternal, api.NetworkTypeInternal}
}

// configurationsIn returns the Configurations somewhere, which say how the networks of peers are seen here, the oldest first. They are the
// cache's own.
func configurationsIn(ctx context.Context, objects client.Reader, where ...client.ListOption) ([]api.Configuration, error) {
	var all api.ConfigurationList
	if err := objects.List(ctx, &all, append(slices.Clone(where), client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list the configurations: %w", err)
	}
	slices.SortFunc(all.Items, func(a, b api.Configuration) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	})
	return all.Items, nil
}

// remapped returns the networks of a peer as they are seen here; none while Liqo has decided about none.
func remapped(c *api.Configuration) api.CIDRs {
	if c.Status.Remote == nil {
		return api.CIDRs{}
	}
	return c.Status.Remote.CIDR
}
