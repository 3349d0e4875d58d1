// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command network-manager serves the remote IPAM of a broker. It runs as a
// sidecar of Liqo's own network-manager, whose IPAM it asks over the loopback
// interface for relay addresses. Its command guard closes that IPAM to peers, also
// on clusters that trade.
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
		fmt.Fprintln(os.Stderr, "network-manager:", err)
		os.Exit(1)
	}
}

func execute() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return newCommand().ExecuteContext(ctx)
}
