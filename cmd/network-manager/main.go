// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command network-manager serves the remote IPAM of a broker. It runs as a
// sidecar of Liqo's own network-manager, whose IPAM it asks over the loopback
// interface for relay addresses. Its command guard closes that IPAM to peers, also
// on clusters that trade. Its command transit is what a broker with Liqo 1.x has in its place.
package main

import "github.com/capacitorset/liqo-broker/pkg/program"

func main() { program.Main("network-manager", newCommand().ExecuteContext) }
