// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command broker is the daemon of a broker cluster: it offers consumers the sum
// of what the providers offer, offloads their workloads to the providers, and
// serves the HTTP API of the catalog and the orchestrator.
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
		fmt.Fprintln(os.Stderr, "broker:", err)
		os.Exit(exitCode(err))
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

func exitCode(err error) int {
	if usage := (usageError{}); errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailure
}
