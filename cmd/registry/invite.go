// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/discovery"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store"
)

func newInvite(d *database) *cobra.Command {
	var keyFile string
	certificate := false
	token := newToken{}
	command := &cobra.Command{
		Use:   "invite URL",
		Short: "Print an invitation: the URL, the fingerprint of the registry's own key, and a token, in one text",
		Long: "Print an invitation, with which a party joins: kubectl liqo-broker registry join INVITATION. It is the URL at which parties " +
			"reach the registry, the fingerprint of its own key, and a token that lets them in, which is shown once. Give it to the party by a " +
			"way that nobody else reads or changes.",
		Example: "  registry invite https://registry.example:30443 --comment milan",
		Args:    program.Arguments(cobra.ExactArgs(1)),
		RunE: func(command *cobra.Command, args []string) error {
			i := discovery.Invitation{URL: args[0]}
			if err := discovery.CheckURL(i.URL); err != nil {
				return program.Usage(fmt.Errorf("%.80q: %w", i.URL, err))
			}
			if token.uses != 0 {
				if err := token.check(); err != nil {
					return err
				}
			}
			if !certificate {
				key, err := readKey(keyFile)
				if err != nil {
					return err
				}
				i.Fingerprint = key.Fingerprint()
			}
			// Nothing is in the store if the rest is wrong.
			if token.uses > 0 {
				err := d.with(command.Context(), func(s *store.Store) error {
					var err error
					i.Token, err = token.create(command.Context(), s)
					return err
				})
				if err != nil {
					return err
				}
			}
			fmt.Fprintln(command.OutOrStdout(), i)
			return nil
		},
	}
	addKeyFile(command, &keyFile, "file with the registry's own key")
	command.Flags().BoolVar(&certificate, "ordinary-certificate", false,
		"leave the fingerprint out: the registry shows an ordinary certificate (--tls-cert-file of registry serve)")
	token.addFlags(command, "how many parties the token lets in; 0 for an invitation without a token")
	return command
}
