// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command broker is the daemon of a broker cluster: it offers consumers the sum
// of what the providers offer, offloads their workloads to the providers, and
// serves the HTTP API of the catalog and the orchestrator.
package main

import "github.com/capacitorset/liqo-broker/pkg/program"

func main() { program.Main("broker", newCommand().ExecuteContext) }
