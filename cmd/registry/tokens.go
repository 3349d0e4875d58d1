// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store"
)

// idLength is how much of a token's digest people type.
const idLength = 12

// tokenLine is a token, as it is printed. Its secret is nowhere.
type tokenLine struct {
	ID      string    `json:"id"`
	Uses    int64     `json:"usesLeft"`
	Expires time.Time `json:"expiresAt"`
	Created time.Time `json:"createdAt"`
	Comment string    `json:"comment,omitempty"`
}

func newTokens(d *database) *cobra.Command {
	command := &cobra.Command{Use: "tokens", Short: "Create, list or delete the tokens that let parties in"}
	command.AddCommand(newTokensCreate(d), newTokensList(d), newTokensDelete(d))
	return command
}

func newTokensCreate(d *database) *cobra.Command {
	var uses int64
	var validFor time.Duration
	var comment string
	command := &cobra.Command{
		Use:   "create",
		Short: "Create a token, and print it: it is shown once",
		Args:  program.NoArguments,
		PreRunE: func(*cobra.Command, []string) error {
			switch {
			case uses < 1 || uses > store.MaxUses:
				return program.Usage(fmt.Errorf("--uses=%d: must be between 1 and %d", uses, store.MaxUses))
			case validFor <= 0:
				return program.Usage(fmt.Errorf("--valid-for=%s: must be positive", validFor))
			}
			return nil
		},
		// Only a digest of the token is stored: who reads the database cannot use it.
		RunE: func(command *cobra.Command, _ []string) error {
			return d.with(command.Context(), func(s *store.Store) error {
				secret := rand.Text()
				now, err := s.Now(command.Context())
				if err != nil {
					return err
				}
				token := store.Token{Digest: store.Digest(secret), Uses: uses, ExpiresAt: now.Add(validFor), CreatedAt: now, Comment: comment}
				if err := s.CreateToken(command.Context(), token); err != nil {
					return err
				}
				fmt.Fprintln(command.OutOrStdout(), secret)
				return nil
			})
		},
	}
	flags := command.Flags()
	flags.Int64Var(&uses, "uses", 1, "how many parties the token lets in")
	flags.DurationVar(&validFor, "valid-for", 24*time.Hour, "how long the token lets parties in")
	flags.StringVar(&comment, "comment", "", "for whom it is; shown by registry tokens list")
	return command
}

func newTokensList(d *database) *cobra.Command {
	o := &output{}
	command := &cobra.Command{
		Use:   "list",
		Short: "List the tokens, without their secrets",
		Args:  program.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return d.with(command.Context(), func(s *store.Store) error {
				tokens, err := s.Tokens(command.Context())
				if err != nil {
					return err
				}
				now := time.Now()
				var lines []tokenLine
				for _, t := range tokens {
					lines = append(lines, tokenLine{t.Digest[:min(idLength, len(t.Digest))], t.Uses, t.ExpiresAt, t.CreatedAt, t.Comment})
				}
				return list(o, command.OutOrStdout(), lines, []string{"ID", "USES LEFT", "EXPIRES", "AGE", "COMMENT"}, func(t tokenLine) []string {
					return []string{t.ID, strconv.FormatInt(t.Uses, 10), ago(t.Expires, now), ago(t.Created, now), t.Comment}
				})
			})
		},
	}
	o.addFlags(command)
	return command
}

func newTokensDelete(d *database) *cobra.Command {
	return &cobra.Command{
		Use:   "delete ID...",
		Short: "Delete tokens, by their IDs: parties that they have let in stay",
		Args:  program.Arguments(cobra.MinimumNArgs(1)),
		RunE: func(command *cobra.Command, args []string) error {
			return d.with(command.Context(), func(s *store.Store) error {
				tokens, err := s.Tokens(command.Context())
				if err != nil {
					return err
				}
				for _, id := range args {
					digest, err := findToken(tokens, id)
					if err != nil {
						return err
					}
					if err := s.DeleteToken(command.Context(), digest); err != nil {
						return err
					}
					fmt.Fprintf(command.OutOrStdout(), "token %s deleted\n", id)
				}
				return nil
			})
		},
	}
}

// findToken returns the digest of the token that is meant.
func findToken(tokens []store.Token, id string) (string, error) {
	for _, t := range tokens {
		if len(id) >= idLength && strings.HasPrefix(t.Digest, id) {
			return t.Digest, nil
		}
	}
	return "", fmt.Errorf("there is no token %q: registry tokens list shows them", id)
}
