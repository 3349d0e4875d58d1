// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package remoteipam

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// DirectName names the ConfigMap in the tenant namespace of a provider in which
// the broker keeps the [DirectConsumers] of that provider. The sidecar writes
// it, and the broker's virtual kubelet for the provider reads it.
const DirectName = "liqo-broker-direct-consumers"

// ErrPrefixTaken means that a consumer told a prefix at a provider that overlaps the one of
// another consumer there.
var ErrPrefixTaken = errors.New("another consumer has reported the prefix at the provider")

// DirectConsumers are the consumers that reach a provider past the broker, each
// with the prefix under which the provider sees its pods.
type DirectConsumers map[cluster.ID]netip.Prefix

// ParseDirectConsumers reads the data of the ConfigMap: prefixes by cluster ID.
// What cannot be read is left out, and the first few are named in the error; the
// rest is returned in any case.
func ParseDirectConsumers(data map[string]string) (DirectConsumers, error) {
	consumers := make(DirectConsumers, len(data))
	var invalid []error
	for _, id := range slices.Sorted(maps.Keys(data)) {
		prefix, err := netip.ParsePrefix(data[id])
		switch {
		case err == nil:
			consumers[cluster.ID(id)] = prefix.Masked()
		case len(invalid) < maxInvalid:
			invalid = append(invalid, fmt.Errorf("prefix of consumer %s is %.*q, which is not a prefix", id, maxShown, data[id]))
		}
	}
	return consumers, errors.Join(invalid...)
}

// What an error tells of what somebody else wrote: of so many mistakes, and so much of each.
const maxInvalid, maxShown = 5, 64
