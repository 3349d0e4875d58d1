// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package addressing

import (
	"fmt"
	"net/netip"
)

// private are the ranges from which Liqo takes the prefixes of pods: RFC 1918, RFC 6598 and RFC 4193.
var private = [...]netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"),
	netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.168.0.0/16"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("fc00::/7"),
}

// CheckReport returns why a prefix cannot be the one under which a provider sees the pods of a consumer, as that consumer reports
// it; nil if it can. The prefixes that have another meaning there are those of [Peer.Taken], and what other consumers reported.
//
// Endpoints of the consumer's Services are shown on the provider under addresses of this prefix. A consumer that could choose it
// freely could make any address of the provider's network an endpoint of its own.
func CheckReport(reported netip.Prefix, taken ...netip.Prefix) error {
	if !isPrivate(reported) {
		return fmt.Errorf("prefix %s is not in a private range", reported)
	}
	for _, other := range taken {
		if reported.Overlaps(other) {
			return fmt.Errorf("prefix %s overlaps %s, which is taken", reported, other)
		}
	}
	return nil
}

// Taken returns the prefixes that have a meaning of their own in the network of the peer: those of its pods and its external CIDR, and
// those under which it sees this cluster. What is not known is left out.
func (p Peer) Taken() []netip.Prefix {
	var taken []netip.Prefix
	for _, prefix := range []netip.Prefix{p.Pods.Own, p.External.Own, p.Home.Seen, p.HomeExternal.Seen} {
		if prefix.IsValid() {
			taken = append(taken, prefix)
		}
	}
	return taken
}

// isPrivate reports whether all addresses of a prefix are in one private range.
func isPrivate(prefix netip.Prefix) bool {
	for _, within := range private {
		if prefix.IsValid() && prefix.Bits() >= within.Bits() && within.Contains(prefix.Addr()) {
			return true
		}
	}
	return false
}
