// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// dryRun is the value of --dry-run, which each command has that changes something: what becomes of its writes.
type dryRun string

// Values of --dry-run, as kubectl has them.
const (
	dryRunNone   dryRun = "none"
	dryRunClient dryRun = "client"
	dryRunServer dryRun = "server"
)

// dryRuns are the values, as they are offered to shells.
func dryRuns() []string {
	return []string{string(dryRunNone), string(dryRunClient), string(dryRunServer)}
}

// add adds the flag to a command. Without a value it means server: whoever asks what a command would do wants to know also what the API
// server would refuse, and nothing is kept either way. kubectl takes it for client and warns that this goes.
func (d *dryRun) add(command *cobra.Command) {
	const name = "dry-run"
	*d = dryRunNone
	command.Flags().Var(d, name,
		"none, client (say what would be written, and send nothing), or server (let the API server check it too, and keep nothing)")
	command.Flags().Lookup(name).NoOptDefVal = string(dryRunServer)
	if err := command.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(dryRuns(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // The flag was added above.
	}
}

// String, Set and Type make it the value of a flag.
func (d *dryRun) String() string { return string(*d) }

// Set refuses what is none of the values.
func (d *dryRun) Set(text string) error {
	if !slices.Contains(dryRuns(), text) {
		return errors.New("it must be none, client or server")
	}
	*d = dryRun(text)
	return nil
}

// Type is what the help shows.
func (d *dryRun) Type() string { return "string" }

// mark is what stands after each deed that is printed, as kubectl has it; empty if the deed is done.
func (d *dryRun) mark() string {
	switch *d {
	case dryRunClient:
		return " (dry run)"
	case dryRunServer:
		return " (server dry run)"
	case dryRunNone:
	}
	return ""
}

// of returns the client by which a command writes.
func (d *dryRun) of(c client.Client) client.Client {
	switch *d {
	case dryRunClient:
		return unsent{client.NewDryRunClient(c)}
	case dryRunServer:
		return client.NewDryRunClient(c)
	case dryRunNone:
	}
	return c
}

// unsent is a client that sends no writes, and finds them good. Questions are sent: reads, reviews of rights, and patches that the API
// server is not to keep. What it does not know is sent to the client below, which must be one of dry runs.
type unsent struct{ client.Client }

func (c unsent) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if _, asks := object.(*authorizationv1.SelfSubjectAccessReview); asks {
		return c.Client.Create(ctx, object, options...)
	}
	return nil
}

func (c unsent) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if chosen := (&client.PatchOptions{}).ApplyOptions(options); len(chosen.DryRun) > 0 {
		return c.Client.Patch(ctx, object, patch, options...)
	}
	return nil
}

func (unsent) Update(context.Context, client.Object, ...client.UpdateOption) error { return nil }

func (unsent) Delete(context.Context, client.Object, ...client.DeleteOption) error { return nil }
