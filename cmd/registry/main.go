// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command registry collects what clusters offer to each other, signed by them, and shows it to all of them. It
// needs no Kubernetes. Its administrators let clusters in and put them out with its other commands, on the database itself.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if err := execute(); err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
}

func execute() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return newCommand().ExecuteContext(ctx)
}
