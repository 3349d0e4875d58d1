// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command lab makes, inspects and removes a federation of real Kubernetes clusters
// with real Liqo on this machine. It needs root.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/capacitorset/liqo-broker/test/lab/node"
)

func main() {
	// The init of a node is this very program; it must not touch anything before.
	if len(os.Args) == 3 && os.Args[1] == node.InitCommand {
		fmt.Fprintln(os.Stderr, node.Init(os.Args[2]))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	err := newCommand().ExecuteContext(ctx)
	if err == nil {
		return
	}
	code, failed := node.IsExit(err)
	if !failed {
		code = 1
	}
	if !failed || code < 0 {
		fmt.Fprintf(os.Stderr, "lab: %v\n", err)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		fmt.Fprintln(os.Stderr, "lab: interrupted; `lab down` removes what there is")
	}
	stop()
	os.Exit(max(code, 1)) //nolint:gocritic // stop was called.
}
