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
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	ExitFailure = 1
	ExitUsage   = 2 // The command line cannot be understood.
)

// ExitCodes says in help what the exit codes of a program mean that has no others.
const ExitCodes = "0 it was done, 1 it failed, 2 the command line cannot be understood."

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

// Arguments returns a check of arguments whose error is one of usage that says where help is.
func Arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if err := check(command, args); err != nil {
			return seeHelp(command, err)
		}
		return nil
	}
}

// ExplainFlags makes the errors about flags of a command, and of those below it, errors of usage that say where help is.
func ExplainFlags(command *cobra.Command) { command.SetFlagErrorFunc(seeHelp) }

// Strict makes a word that names no command an error of usage, with the commands that can be meant, wherever a command has others below it:
// cobra prints its help instead, and exits with 0. Commands that only have others below them print their help when they are given nothing,
// and their help says what exit codes mean. All commands must have been added before.
func Strict(root *cobra.Command, exitCodes string) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	strict(root, exitCodes)
	for _, child := range root.Commands() {
		switch child.Name() {
		case "help":
			child.Args = knownTopic
		case "completion":
			for _, shell := range child.Commands() {
				shell.Args = NoArguments
			}
		}
	}
}

// strict does it with a command and those below it.
func strict(command *cobra.Command, exitCodes string) {
	if !command.HasSubCommands() {
		return
	}
	// Before arguments are looked at, cobra wants to know the flags, and those of a command that nobody has are not known.
	flagError := command.FlagErrorFunc()
	command.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if c == command && c.Flags().NArg() > 0 {
			return unknown(c, c.Flags().Arg(0))
		}
		return flagError(c, err)
	})
	command.Args = func(command *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknown(command, args[0])
		}
		return nil
	}
	if !command.Runnable() {
		command.RunE = func(command *cobra.Command, _ []string) error { return command.Help() }
		command.DisableFlagsInUseLine = true
	}
	if command.Long == "" {
		command.Long = command.Short + "."
	}
	command.Long = strings.TrimRight(command.Long, "\n") + "\n\nExit codes: " + exitCodes
	for _, child := range command.Commands() {
		strict(child, exitCodes)
	}
}

// knownTopic is a check of what somebody wants help about.
func knownTopic(help *cobra.Command, args []string) error {
	found, rest, err := help.Root().Find(args)
	if err != nil {
		return seeHelp(help, err)
	}
	if len(rest) > 0 && found.HasSubCommands() {
		return unknown(found, rest[0])
	}
	return nil
}

// unknown returns the error of a word that names none of the commands below one.
func unknown(command *cobra.Command, word string) error {
	err := fmt.Errorf("unknown command %q for %q", word, command.CommandPath())
	if command.SuggestionsMinimumDistance == 0 {
		command.SuggestionsMinimumDistance = 2 // As cobra has it.
	}
	if meant := command.SuggestionsFor(word); len(meant) > 0 {
		return Usage(fmt.Errorf("%w: did you mean %s? See %s --help", err, strings.Join(meant, " or "), command.CommandPath()))
	}
	return seeHelp(command, err)
}

// seeHelp returns an error of usage that says where help is.
func seeHelp(command *cobra.Command, err error) error {
	return Usage(fmt.Errorf("%w: see %s --help", err, command.CommandPath()))
}
