// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
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
	token := newToken{}
	command := &cobra.Command{
		Use:     "create",
		Short:   "Create a token, and print it: it is shown once",
		Args:    program.NoArguments,
		PreRunE: func(*cobra.Command, []string) error { return token.check() },
		RunE: func(command *cobra.Command, _ []string) error {
			return d.with(command.Context(), func(s *store.Store) error {
				secret, err := token.create(command.Context(), s)
				if err != nil {
					return err
				}
				fmt.Fprintln(command.OutOrStdout(), secret)
				return nil
			})
		},
	}
	token.addFlags(command, "how many parties the token lets in")
	return command
}

// create creates the token, and returns its secret. Only a digest of it is stored: who reads the database cannot use it.
func (n *newToken) create(ctx context.Context, s *store.Store) (secret string, err error) {
	secret = rand.Text()
	now, err := s.Now(ctx)
	if err != nil {
		return "", err
	}
	token := store.Token{Digest: store.Digest(secret), Uses: n.uses, ExpiresAt: now.Add(n.validFor), CreatedAt: now, Comment: n.comment}
	return secret, s.CreateToken(ctx, token)
}

// newToken is what a command was told of a token that it creates.
type newToken struct {
	uses     int64
	validFor time.Duration
	comment  string
}

// addFlags adds the flags.
func (n *newToken) addFlags(command *cobra.Command, uses string) {
	flags := command.Flags()
	flags.Int64Var(&n.uses, "uses", 1, uses)
	flags.DurationVar(&n.validFor, "valid-for", 24*time.Hour, "how long the token lets parties in")
	flags.StringVar(&n.comment, "comment", "", "for whom it is; shown by registry tokens list")
}

// check refuses what cannot be meant.
func (n *newToken) check() error {
	switch {
	case n.uses < 1 || n.uses > store.MaxUses:
		return program.Usage(fmt.Errorf("--uses=%d: must be between 1 and %d", n.uses, store.MaxUses))
	case n.validFor <= 0:
		return program.Usage(fmt.Errorf("--valid-for=%s: must be positive", n.validFor))
	}
	return nil
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
