// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

// defaultStore is where the state is if nobody says where.
const defaultStore = "sqlite:/var/lib/liqo-broker/registry.db"

// storeVariable may have the DSN, so that its password is not among the arguments that all processes see.
const storeVariable = "REGISTRY_STORE"

// database is the flag of all commands that open the store.
type database struct{ dsn string }

// open opens the store.
func (d *database) open(ctx context.Context) (*store.Store, error) {
	s, err := store.Open(ctx, d.dsn)
	if err != nil {
		return nil, fmt.Errorf("open --store: %w", err)
	}
	return s, nil
}

// with opens the store for a deed.
func (d *database) with(ctx context.Context, deed func(*store.Store) error) error {
	s, err := d.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	return deed(s)
}

// read does something with all that the registry has.
func (d *database) read(ctx context.Context, deed func(store.Snapshot) error) error {
	return d.with(ctx, func(s *store.Store) error {
		snapshot, err := s.Snapshot(ctx)
		if err != nil {
			return err
		}
		return deed(snapshot)
	})
}

func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:           "registry",
		Short:         "A registry of what clusters offer to each other",
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	d := &database{}
	command.PersistentFlags().StringVar(&d.dsn, "store", defaultStore,
		`where the state is: sqlite:FILE, or postgres://USER:PASSWORD@HOST:PORT/DATABASE for several replicas; the variable `+storeVariable+` says it without showing the password to other processes`)
	command.PersistentPreRunE = func(command *cobra.Command, _ []string) error { return d.fromEnvironment(command) }
	command.AddCommand(newServe(d), newInvite(d), newParties(d), newTokens(d), newOffers(d), newMigrate(d), newFingerprint())
	command.CompletionOptions.DisableDefaultCmd = true
	program.ExplainFlags(command)
	program.Strict(command, program.ExitCodes)
	return command
}

// fromEnvironment takes the DSN from the environment, if no flag says it.
func (d *database) fromEnvironment(command *cobra.Command) error {
	if dsn := environment(storeVariable); dsn != "" && !command.Flags().Changed("store") {
		d.dsn = dsn
	}
	if d.dsn == "" {
		return program.Usage(errors.New("--store must not be empty"))
	}
	return nil
}

func newMigrate(d *database) *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Bring the schema of the database up to date",
		Long: "Bring the schema of the database up to date. The other commands do so as well: this one is for who wants it done before, or by " +
			"somebody else.",
		Args: program.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return d.with(command.Context(), func(s *store.Store) error {
				revision, err := s.Revision(command.Context())
				if err != nil {
					return err
				}
				fmt.Fprintf(command.OutOrStdout(), "The schema has version %d, the revision %d.\n", s.SchemaVersion(), revision)
				return nil
			})
		},
	}
}
