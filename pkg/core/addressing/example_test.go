// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package addressing_test

import (
	"fmt"
	"log"
	"net/netip"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// A consumer offloads to a broker, which runs the pods on two providers. With near the consumer is peered too, with far it is not. All
// clusters have the same pod CIDR, so that everybody sees the pods of others under a remapped prefix.
func ExampleTable_Resolve() {
	view := func(own, seen string) addressing.View {
		v, err := addressing.NewView(own, seen)
		if err != nil {
			log.Fatal(err)
		}
		return v
	}
	const pods = "10.200.0.0/16"
	table, err := addressing.NewTable(
		view(pods, "10.50.0.0/16"),
		[]addressing.Route{ // What the broker says of its providers.
			{Provider: "near", Pods: view(pods, "10.81.0.0/16")},
			{Provider: "far", Pods: view(pods, "10.82.0.0/16")},
		},
		map[cluster.ID]addressing.Peer{ // What the consumer's own tunnels say.
			"near": {Pods: view(pods, "10.61.0.0/16"), Connected: true},
		},
	)
	if err != nil {
		log.Fatal(err)
	}
	for _, reported := range []string{"10.200.3.4", "10.81.3.4", "10.82.3.4"} {
		path, address := table.Resolve(netip.MustParseAddr(reported))
		if path == addressing.PathRelay {
			fmt.Printf("%s is reached by path %s: ask the broker for an address\n", reported, path)
			continue
		}
		fmt.Printf("%s is reached by path %s, at %s\n", reported, path, address)
	}
	// Output:
	// 10.200.3.4 is reached by path broker, at 10.50.3.4
	// 10.81.3.4 is reached by path direct, at 10.61.3.4
	// 10.82.3.4 is reached by path relay: ask the broker for an address
}
