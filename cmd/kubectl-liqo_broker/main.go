// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-liqo_broker is a plugin of kubectl: "kubectl liqo-broker" installs and removes the broker, shows what it does, and
// says why. It knows only the API server of one cluster, with the rights of whoever runs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// Exit codes.
const (
	exitFailure   = 1
	exitUsage     = 2 // The command line cannot be understood.
	exitUnhealthy = 3 // The command was carried out, and what it has looked at is not as it should be.
)

func main() {
	log.SetLogger(logr.Discard()) // The client's library complains on the terminal otherwise, in the middle of a long command.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", sheet.Plain(err.Error()))
		os.Exit(exitCode(err))
	}
}

func run(ctx context.Context, args []string, streams genericiooptions.IOStreams) error {
	command := newCommand(streams) //nolint:contextcheck // cobra hands the context to the command.
	command.SetArgs(args)
	return command.ExecuteContext(ctx)
}

// usageError is an error of whoever wrote the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// errUnhealthy says that what was looked at is not as it should be. What is wrong has been printed.
var errUnhealthy = errors.New("not all is well")

func exitCode(err error) int {
	usage := usageError{}
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errUnhealthy):
		return exitUnhealthy
	default:
		return exitFailure
	}
}
