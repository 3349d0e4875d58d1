// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"cmp"
	"slices"

	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// MaxNodes is how many nodes of single providers a consumer is told of: one request less than are looked at is left for the one by which
// it is told.
const MaxNodes = MaxRequests - 1

// TellsNodes reports whether a consumer is told by a request which nodes of single providers it is to have: it has the name of none.
func (r *Request) TellsNodes() bool { return !isOfProvider(r) }

// Nodes returns the nodes of single providers that a consumer is to have, by their names: all that it is offered something on, or has. Of a
// provider that peers it keeps the node whatever becomes of that, so that a provider which is lost for a while does not take the node
// along. If there are too many, those for which it asks already go first.
func Nodes(requests []Request, offers []capacity.NodeOffer, peers func(cluster.ID) bool) map[string]cluster.ID {
	var all []capacity.NodeOffer
	for _, o := range offers {
		if o.Provider != "" && peers(o.Provider) {
			all = append(all, o)
		}
	}
	asked := map[string]int{}
	for i := range requests {
		asked[requests[i].Name] = -1
	}
	slices.SortFunc(all, func(a, b capacity.NodeOffer) int {
		return cmp.Or(cmp.Compare(asked[a.Node], asked[b.Node]), cmp.Compare(a.Node, b.Node))
	})
	nodes := map[string]cluster.ID{}
	for _, o := range all[:min(len(all), MaxNodes)] {
		nodes[o.Node] = o.Provider
	}
	return nodes
}
