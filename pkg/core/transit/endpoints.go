// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// MaxInNamespace is how many addresses of one namespace of a consumer are opened: each takes one of the external network, and a rule on
// each gateway.
const MaxInNamespace = 250

// Opening is what is opened of the endpoints of one consumer in one namespace.
type Opening struct {
	// Slices are the endpoints that providers are told, by the names of the slices of the consumer. A slice without any has none.
	Slices map[string][]discoveryv1.Endpoint
	// Addresses are those of all of them, in order and each once.
	Addresses []netip.Addr
	// InNamespace and InAll are how many endpoints are not opened, because of the bound on this namespace, and on all of the consumer.
	InNamespace, InAll int
}

// Open returns what is opened of the slices that a consumer has put into its namespaces here, by these. Only addresses count under which
// this cluster sees pods of that consumer: what a consumer writes there may be any address that this cluster reaches, and what is opened,
// providers reach. In a namespace up to [MaxInNamespace] are opened, and most in all of them, where the same one counts in each: what was
// made first goes first, so that what comes takes nothing from what is there. The endpoints name no node: they are on one of the
// consumer's, which is none of this cluster.
func Open(written []discoveryv1.EndpointSlice, pods []netip.Prefix, most int) map[string]*Opening {
	inOrder := make([]*discoveryv1.EndpointSlice, len(written))
	for i := range written {
		inOrder[i] = &written[i]
	}
	slices.SortFunc(inOrder, func(a, b *discoveryv1.EndpointSlice) int {
		return cmp.Or(
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		)
	})
	openings, opened, all := map[string]*Opening{}, map[string]map[netip.Addr]bool{}, 0
	for _, s := range inOrder {
		o, in := openings[s.Namespace], opened[s.Namespace]
		if o == nil {
			o, in = &Opening{Slices: map[string][]discoveryv1.Endpoint{}}, map[netip.Addr]bool{}
			openings[s.Namespace], opened[s.Namespace] = o, in
		}
		if s.AddressType != discoveryv1.AddressTypeIPv4 {
			continue
		}
		for i := range s.Endpoints {
			address, is := inside(&s.Endpoints[i], pods)
			switch {
			case !is:
				continue
			case in[address]: // It is open for another one.
			case len(in) >= MaxInNamespace:
				o.InNamespace++
				continue
			case all >= most:
				o.InAll++
				continue
			default:
				in[address] = true
				all++
			}
			o.Slices[s.Name] = append(o.Slices[s.Name], discoveryv1.Endpoint{
				Addresses:  []string{address.String()},
				Conditions: *s.Endpoints[i].Conditions.DeepCopy(),
				Hostname:   s.Endpoints[i].Hostname,
			})
		}
	}
	for namespace, o := range openings {
		o.Addresses = slices.SortedFunc(maps.Keys(opened[namespace]), netip.Addr.Compare)
	}
	return openings
}

// inside returns the address of an endpoint if it is in one of the prefixes. Of several addresses only the first one means anything.
func inside(e *discoveryv1.Endpoint, prefixes []netip.Prefix) (netip.Addr, bool) {
	if len(e.Addresses) == 0 {
		return netip.Addr{}, false
	}
	address, err := netip.ParseAddr(e.Addresses[0])
	if err != nil {
		return netip.Addr{}, false
	}
	return address, slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(address) })
}
