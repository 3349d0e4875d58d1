// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command connector is what a cluster buys and sells capacity with: it follows registries, sells what the cluster offers,
// and buys what is wanted, by contracts that it negotiates with the connectors of others and that Liqo obeys.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitFailure = 1
	exitUsage   = 2 // The command line cannot be understood.
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "connector:", err)
		if usage := (usageError{}); errors.As(err, &usage) {
			os.Exit(exitUsage)
		}
		os.Exit(exitFailure)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	command := newCommand() //nolint:contextcheck // cobra hands the context to the command.
	command.SetArgs(args)
	command.SetOut(stdout)
	return command.ExecuteContext(ctx)
}

// usageError is an error of whoever wrote the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }
