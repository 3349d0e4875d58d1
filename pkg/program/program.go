// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package program is what main does in every program: it runs a command until a signal ends it, says what went wrong, and exits with a
// code that tells a command line which cannot be understood from a failure. It does not know what the command does.
package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	ExitFailure = 1
	ExitUsage   = 2 // The command line cannot be understood.
)

// Main runs a command, whose context a signal ends, and exits if it fails. What went wrong is written to the standard error, after who says
// it.
func Main(who string, run func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", who, err)
		os.Exit(ExitCode(err))
	}
}

// codedError is an error that has an exit code of its own.
type codedError struct {
	error
	code int
}

func (e codedError) Unwrap() error { return e.error }

// WithCode returns an error for which a program exits with a code.
func WithCode(err error, code int) error { return codedError{err, code} }

// Usage returns an error of whoever wrote the command line.
func Usage(err error) error { return WithCode(err, ExitUsage) }

// ExitCode returns the code with which a program exits for an error that is not nil.
func ExitCode(err error) int {
	if own := (codedError{}); errors.As(err, &own) {
		return own.code
	}
	return ExitFailure
}

// NoArguments is a check of arguments: there must be none.
func NoArguments(command *cobra.Command, args []string) error {
	if len(args) > 0 {
		return seeHelp(command, fmt.Errorf("unexpected argument %q", args[0]))
	}
	return nil
}

// ExplainFlags makes the errors about flags of a command, and of those below it, errors of usage that say where help is.
func ExplainFlags(command *cobra.Command) { command.SetFlagErrorFunc(seeHelp) }

// seeHelp returns an error of usage that says where help is.
func seeHelp(command *cobra.Command, err error) error {
	return Usage(fmt.Errorf("%w: see %s --help", err, command.CommandPath()))
}
