// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command connector is what a cluster buys and sells capacity with: it follows registries, sells what the cluster offers,
// and buys what is wanted, by contracts that it negotiates with the connectors of others and that Liqo obeys.
package main

import "github.com/capacitorset/liqo-broker/pkg/program"

func main() { program.Main("connector", newCommand().ExecuteContext) }
