// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command registry collects what clusters offer to each other, signed by them, and shows it to all of them. It
// needs no Kubernetes. Its administrators let clusters in and put them out with its other commands, on the database itself.
package main

import "github.com/capacitorset/liqo-broker/pkg/program"

func main() { program.Main("registry", newCommand().ExecuteContext) }
