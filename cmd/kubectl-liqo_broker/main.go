// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-liqo_broker is a plugin of kubectl: "kubectl liqo-broker" installs and removes the broker, shows what it does, and
// says why. It knows only the API server of one cluster, with the rights of whoever runs it.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// exitUnhealthy is the exit code of a command that was carried out, and what it has looked at is not as it should be.
const exitUnhealthy = 3

func main() {
	log.SetLogger(logr.Discard()) // The client's library complains on the terminal otherwise, in the middle of a long command.
	program.Main("error", func(ctx context.Context) error {
		err := run(ctx, os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
		if err != nil {
			return program.WithCode(errors.New(sheet.Plain(err.Error())), program.ExitCode(err))
		}
		return nil
	})
}

func run(ctx context.Context, args []string, streams genericiooptions.IOStreams) error {
	command := newCommand(streams) //nolint:contextcheck // cobra hands the context to the command.
	command.SetArgs(args)
	return command.ExecuteContext(ctx)
}

// errUnhealthy says that what was looked at is not as it should be. What is wrong has been printed.
var errUnhealthy = program.WithCode(errors.New("not all is well"), exitUnhealthy)
