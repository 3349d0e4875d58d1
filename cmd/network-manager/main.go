// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command network-manager serves the remote IPAM of a broker. It runs as a
// sidecar of Liqo's own network-manager, whose IPAM it asks over the loopback
// interface for relay addresses.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "network-manager:", err)
		stop()
		os.Exit(1)
	}
}
