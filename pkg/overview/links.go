// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"slices"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// States of a peering, as Links has them.
const (
	PeeringNone        = "None"
	PeeringPending     = "Pending"
	PeeringEstablished = "Established"
	PeeringEnding      = "Ending"
)

// Link is a tunnel between two clusters, or the peering of a cluster with the broker that has none yet.
type Link struct {
	From, To Cluster
	// Direct is true between a consumer and a provider, past the broker: the broker knows what the consumer has told. It is
	// false for the broker's own.
	Direct    bool
	Connected bool
	// RoundTrip is zero if nothing was measured.
	RoundTrip time.Duration
	Measured  time.Time
	// Outgoing and Incoming are the peerings by which To provides and consumes; empty for direct links.
	Outgoing, Incoming string
}

// Peers is what a broker's cluster has of its peers.
type Peers struct {
	Own       cluster.Identity
	Clusters  []liqo.Peer
	Tunnels   []liqo.Link
	Providers []v1alpha1.Provider
	Consumers []v1alpha1.Consumer
}

// Links returns the links of the broker, and those between consumers and providers that consumers have measured and that
// count at a time, in order. A tunnel counts for the cluster in whose tenant namespace it is, if it says the same.
func (p *Peers) Links(now time.Time) []Link {
	links := make([]Link, 0, len(p.Clusters))
	tunnels := map[string][]*liqo.Link{}
	for i := range p.Tunnels {
		tunnels[p.Tunnels[i].Tenant] = append(tunnels[p.Tunnels[i].Tenant], &p.Tunnels[i])
	}
	for i := range p.Clusters {
		peer := &p.Clusters[i]
		link := Link{
			From: named(p.Own), To: named(peer.Identity), Outgoing: peeringState(peer.Outgoing), Incoming: peeringState(peer.Incoming),
		}
		for _, tunnel := range tunnels[peer.Tenant] {
			if tunnel.Peer != peer.ID {
				continue
			}
			link.Connected = tunnel.Connected
			if tunnel.RoundTrip > 0 {
				link.RoundTrip, link.Measured = tunnel.RoundTrip, tunnel.Measured
			}
		}
		links = append(links, link)
	}
	// A link between others is known from the consumer that has measured it.
	names := map[string]string{}
	for i := range p.Providers {
		names[p.Providers[i].Name] = p.Providers[i].Status.ClusterName
	}
	for i := range p.Consumers {
		c := &p.Consumers[i]
		if Hides(c) {
			continue // What it told in another mode.
		}
		for j := range c.Status.RoundTrips {
			trip := &c.Status.RoundTrips[j]
			if took := trip.Decode(); took.Known(now) {
				links = append(links, Link{
					From: named(ConsumerIdentity(c)), To: Cluster{ID: trip.Provider, Name: names[trip.Provider]}, Direct: true, Connected: true,
					RoundTrip: time.Duration(took.Value * float64(time.Millisecond)), Measured: took.Measured,
				})
			}
		}
	}
	slices.SortFunc(links, func(a, b Link) int {
		return cmp.Or(cmp.Compare(a.From.ID, b.From.ID), cmp.Compare(a.To.ID, b.To.ID))
	})
	return links
}

// Hides reports whether a consumer must not learn of the providers, which it must not as long as it is not known that it may.
func Hides(c *v1alpha1.Consumer) bool {
	return c.Status.Mode != v1alpha1.ModeOrchestrated || c.Spec.Mode == v1alpha1.ModeAggregated
}

func named(id cluster.Identity) Cluster { return Cluster{ID: string(id.ID), Name: id.Name} }

func peeringState(p liqo.Peering) string {
	switch {
	case p.Ending:
		return PeeringEnding
	case p.Established:
		return PeeringEstablished
	case p.Exists:
		return PeeringPending
	default:
		return PeeringNone
	}
}

// AddPaths adds to where pods are by which path their consumers reach them, as far as that is known here: pods on a provider
// to which the consumer has told of a tunnel are reached directly, and all others on providers by the broker.
func AddPaths(pods []Placed, links []Link) {
	direct := map[[2]string]bool{}
	for _, l := range links {
		if l.Direct && l.Connected {
			direct[[2]string{l.From.ID, l.To.ID}] = true
		}
	}
	for i := range pods {
		p := &pods[i]
		if p.Provider == nil || p.Consumer == nil {
			continue
		}
		p.Path = addressing.PathRelay.String()
		if direct[[2]string{p.Consumer.ID, p.Provider.ID}] {
			p.Path = addressing.PathDirect.String()
		}
	}
}
