// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"context"

	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// withoutRole looks at a cluster on which nothing of this project was set up, and reports whether it is a provider: one that shares its
// resources with others, for which Liqo is enough.
func (l *look) withoutRole(ctx context.Context) (provides bool, checks []Check) {
	const area, setUp = "Provider", "Set-up"
	peers, err := v09.Peers(ctx, l)
	if err != nil {
		return false, cannot(setUp, "the peers", err)
	}
	var offers v09.ResourceOfferList
	if err := l.List(ctx, &offers); err != nil {
		return false, cannot(setUp, "the ResourceOffers", err)
	}
	consumes := false
	for i := range peers {
		consumes, provides = consumes || peers[i].Outgoing.Exists, provides || peers[i].Incoming.Exists
		if !peers[i].Incoming.Established {
			continue // What is wrong with the peering is said among the peerings.
		}

		// What the peer was offered, and whether it has taken it.
		to, found, accepted := peers[i].Identity, false, false
		for _, offer := range v09.OffersOf(offers.Items) {
			if !offer.FromPeer && offer.Tenant == peers[i].Tenant {
				found, accepted = true, accepted || offer.Accepted
			}
		}
		switch {
		case accepted:
			checks = append(checks, one(area, OK, "", "%s has accepted what it is offered. A provider needs nothing of this project", to))
		case found:
			checks = append(checks, one(area, Problem, "On that cluster: kubectl get resourceoffers -A; kubectl logs -n liqo "+
				"deploy/liqo-controller-manager", "%s has not accepted what it is offered", to))
		default:
			checks = append(checks, one(area, Problem, "See why: kubectl logs -n liqo deploy/liqo-controller-manager", "%s is offered nothing", to))
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
