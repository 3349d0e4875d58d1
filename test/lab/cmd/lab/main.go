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
	err := newCommand().ExecuteContext(ctx)
	interrupted := ctx.Err() != nil
	stop()
	os.Exit(report(err, interrupted))
}

// report prints an error for people and returns the exit code.
func report(err error, interrupted bool) int {
	var failed programError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &failed):
		// The program has said itself what is wrong.
		return failed.code
	case interrupted:
		fmt.Fprintln(os.Stderr, "lab: interrupted; `lab down` removes what there is")
	default:
		fmt.Fprintf(os.Stderr, "lab: %v\n", err)
	}
	return 1
}
