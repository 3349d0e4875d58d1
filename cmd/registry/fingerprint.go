// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

func newFingerprint() *cobra.Command {
	var keyFile string
	command := &cobra.Command{
		Use:   "fingerprint",
		Short: "Print the fingerprint of the registry's own key, by which connectors know it",
		Long: "Print the fingerprint of the registry's own key, which is spec.fingerprint of a Registry. `registry serve` makes the key. " +
			"Connectors know a registry that shows an ordinary certificate by that, and not by its key.",
		Args: program.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			key, err := readKey(keyFile)
			if err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), key.Fingerprint())
			return nil
		},
	}
	addKeyFile(command, &keyFile, "file with the registry's own key")
	return command
}

// addKeyFile adds the flag of the registry's own key.
func addKeyFile(command *cobra.Command, name *string, usage string) {
	command.Flags().StringVar(name, "key-file", "/var/lib/liqo-broker/registry.key", usage)
}

// readKey reads the registry's own key. The error is fs.ErrNotExist if there is none.
func readKey(name string) (party.Key, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return party.Key{}, fmt.Errorf("--key-file: %w", err)
	}
	key, err := party.ParseKey(text)
	if err != nil {
		return party.Key{}, fmt.Errorf("--key-file=%s: %w", name, err)
	}
	return key, nil
}
