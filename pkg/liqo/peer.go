// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"net/netip"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// Peer is a cluster that this one knows, as Liqo's record of it says.
type Peer struct {
	cluster.Identity

	// Record is the name of the record, and Known when it was made.
	Record string
	Known  time.Time
	// Tenant is the namespace here that holds what concerns the peer; empty if there is none yet.
	Tenant string
	// Outgoing is the peering over which the peer provides, Incoming the one over which it consumes.
	Outgoing, Incoming Peering
	// Permit is the object in namespace Tenant by which Liqo 1.x lets the peer consume; zero if none does. A peering that has ended and begun
	// again has another one.
	Permit Permit
	// InBand tells that the peering carries Liqo's control plane through its own tunnel, so that the API servers do not reach each
	// other without it.
	InBand bool
	// CorePrice is what a core of it costs by contract, as [CorePrice] returns it.
	CorePrice string
	// AuthURL is where it authenticates who peers with it, without what could be a credential; empty if that is not known.
	AuthURL string
}

// Older reports whether this cluster knows a peer for longer than another one, or, if both were made
// in the same second, whether its record comes first by name.
func (p *Peer) Older(other *Peer) bool {
	return p.Known.Before(other.Known) || p.Known.Equal(other.Known) && p.Record < other.Record
}

// Peering is how far a peering in one direction has come.
type Peering struct {
	// Exists is false if there is none, nor one being made or ended.
	Exists bool
	// Established tells that resources can be shared over it.
	Established bool
	// Ending tells that one of the two clusters has ended it.
	Ending bool
}

// Permit is an object that lets a peer consume.
type Permit struct {
	Name string
	UID  types.UID
}

// Offer is what one cluster offers to another on one virtual node. It shares memory with the object that says so, and is not to be changed.
type Offer struct {
	// Tenant is the namespace here of the other cluster, in which the offer has its Name.
	Tenant, Name string
	// With is the peer whose tenant namespace that is; empty if it is no peer's. Wrong is why the offer counts for nothing there: it names
	// another cluster.
	With  cluster.ID
	Wrong error
	// FromPeer tells that a peer has put it here; others are of this cluster.
	FromPeer bool
	// Node is the name of the virtual node that Liqo makes of it; empty in an offer of this cluster that leaves the name to Liqo or to the
	// consumer.
	Node      string
	Resources corev1.ResourceList
	// Prices are what a unit of each resource costs, as its cluster wrote them.
	Prices corev1.ResourceList
	// Accepted tells that it is in force: accepted, and neither withdrawn nor being deleted.
	Accepted bool
	// Denied is why the cluster that was asked denies it, for people; empty if it does not, or does not say so. DeniedFor is why in a word.
	Denied, DeniedFor string
	// Ending tells that its peering ends. Liqo then evicts all pods from its virtual node, and removes it. Deleted tells that the object
	// that says so is being deleted, which is an end too.
	Ending, Deleted bool
	// Unreadable says what of it was left out when it was read, and why; empty if it is whole.
	Unreadable string
}

// IsNothing reports whether an offer is of no use: without cores or memory Liqo lets no pod start.
func (o *Offer) IsNothing() bool { return o.Resources.Cpu().IsZero() || o.Resources.Memory().IsZero() }

// By returns the peer that makes an offer, or none if this cluster does, or it counts for nothing.
func (o *Offer) By() cluster.ID {
	if o.FromPeer && o.Wrong == nil {
		return o.With
	}
	return ""
}

// To returns the peer to which this cluster makes an offer, or none if a peer makes it, or it counts for nothing.
func (o *Offer) To() cluster.ID {
	if !o.FromPeer && o.Wrong == nil {
		return o.With
	}
	return ""
}

// Wish is what a peer asks for by a ShadowPod: Liqo keeps such a pod here. It shares memory with the object that says so.
type Wish struct {
	// Pod is the pod. It may be changed if the object may.
	Pod *corev1.PodSpec
	// Ended tells that the pod had ended when Liqo looked last. The peer cannot change it.
	Ended bool
}

// Link is the network towards a peer.
type Link struct {
	// Tenant is the namespace in which Liqo keeps its record, and Peer the cluster to which that says that it leads. Liqo makes it of what
	// the peer writes, so that it is true only of the peer whose tenant namespace it is.
	Tenant string
	Peer   cluster.ID
	// Path is how the addresses of one cluster are seen in the other, unless Negotiating says what is missing of it yet.
	Path        addressing.Peer
	Negotiating error
	// Seen are the prefixes under which the pods of the peer, and what it relays, are seen here. Until Liqo has decided
	// them there are none: nothing arrives from there yet.
	Seen []netip.Prefix
	// Connected tells that it is up. Liqo's gateway says so: one that has stopped goes on saying what it has said last.
	Connected bool
	// Said is when the gateway has said last that it is up, by its own clock. It is zero if it does not say so, or not again and again: with
	// Liqo 0.9, and with 1.x where people have it send no pings.
	Said time.Time
	// RoundTrip is the round-trip time that Liqo has measured in it, and Measured when; zero if it is not up, or nothing was measured.
	RoundTrip time.Duration
	Measured  time.Time
}

// Measure notes a round-trip time as Liqo writes it, and when that was measured. What is no time of a link that is up is passed over.
func (l *Link) Measure(latency string, at time.Time) {
	took, err := time.ParseDuration(latency)
	if err == nil && took > 0 && l.Connected && !at.IsZero() {
		l.RoundTrip, l.Measured = took, at
	}
}

// PublicURL returns a URL without what could be a credential: user and password,
// query and fragment. What is no URL is not shown.
func PublicURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" {
		return ""
	}
	u.User, u.RawQuery, u.Fragment, u.RawFragment = nil, "", "", ""
	return u.String()
}
