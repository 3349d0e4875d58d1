// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

// withoutRole looks at a cluster on which nothing of this project was set up, and reports whether it is a provider: one that shares its
// resources with others, for which Liqo is enough.
func (l *look) withoutRole(ctx context.Context) (provides bool, checks []Check) {
	const area, setUp = "Provider", "Set-up"
	peers, err := l.reader().Peers(ctx)
	if err != nil {
		return false, cannot(setUp, "the peers", err)
	}
	all := l.setup.Liqo().Kinds().Offers
	offers := map[string][]liqo.Offer{} // To peers, by their tenant namespaces.
	if err := l.List(ctx, all); err != nil {
		return false, cannot(setUp, "what is offered", err)
	}
	if err := line.Each(all, func(o client.Object) {
		if offer := l.setup.Liqo().OfferOf(o); !offer.FromPeer {
			offers[offer.Tenant] = append(offers[offer.Tenant], offer)
		}
	}); err != nil {
		return false, cannot(setUp, "what is offered", err)
	}
	says := l.offering()
	consumes := false
	for i := range peers {
		consumes, provides = consumes || peers[i].Outgoing.Exists, provides || peers[i].Incoming.Exists
		if !peers[i].Incoming.Established {
			continue // What is wrong with the peering is said among the peerings.
		}

		// What the peer was offered, and whether it has taken it.
		to, made := peers[i].Identity, offers[peers[i].Tenant]
		switch {
		case slices.ContainsFunc(made, func(o liqo.Offer) bool { return o.Accepted }):
			checks = append(checks, one(area, OK, "", "%s %s. A provider needs nothing of this project", to, says.accepted))
		case len(made) > 0:
			checks = append(checks, one(area, Problem, says.look, "%s %s", to, says.open))
		default:
			checks = append(checks, one(area, Problem, "See why: kubectl logs -n liqo deploy/liqo-controller-manager", "%s %s", to, says.nothing))
		}
	}

	// What else it may be meant to be: nobody can see here whether a peer is a broker.
	switch {
	case consumes:
		checks = append(checks, one(setUp, Note, "If one of its peers is a broker: "+prepare0,
			"This cluster uses others as Liqo does by itself: it is not prepared for a broker"))
	case !provides:
		checks = append(checks, one(setUp, Note, "On a broker: "+install0+". On a consumer, when it has peered with a broker: "+prepare0,
			"This cluster is neither a broker nor a consumer, does not trade, and shares its resources with nobody"))
	}
	return provides, checks
}

// offering are the words for how far offers of a provider have come, and where to look if they are not accepted.
type offering struct{ accepted, open, look, nothing string }

// offering returns those of the line that runs: with Liqo 0.9 peers accept what they are offered, and with 1.x this cluster accepts what
// they ask for.
func (l *look) offering() offering {
	if l.setup.Liqo1() {
		return offering{
			"was granted what it asks for", "was not granted what it asks for",
			"kubectl get resourceslices -A; kubectl logs -n liqo deploy/liqo-controller-manager", "asks for nothing",
		}
	}
	return offering{
		"has accepted what it is offered", "has not accepted what it is offered",
		"On that cluster: kubectl get resourceoffers -A; kubectl logs -n liqo deploy/liqo-controller-manager", "is offered nothing",
	}
}
