// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store"
)

// partyLine is a party, as it is printed.
type partyLine struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	State      string     `json:"state"`
	Alive      bool       `json:"alive"`
	Offers     int        `json:"offers"`
	Endpoint   string     `json:"endpoint,omitempty"`
	Keys       int        `json:"keys"`
	EnrolledBy string     `json:"enrolledBy,omitempty"`
	EnrolledAt time.Time  `json:"enrolledAt"`
	LeaseUntil *time.Time `json:"leaseUntil,omitempty"`
}

func newParties(d *database) *cobra.Command {
	command := &cobra.Command{Use: "parties", Short: "List parties, approve them, revoke them, or drop those that wait"}
	command.AddCommand(newPartiesList(d), newApprove(d), newRevoke(d), newDrop(d))
	return command
}

func newPartiesList(d *database) *cobra.Command {
	o, state := &output{}, ""
	command := &cobra.Command{
		Use:   "list",
		Short: "List the parties that have announced themselves",
		Args:  program.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return d.read(command.Context(), func(snapshot store.Snapshot) error {
				now := time.Now()
				return list(o, command.OutOrStdout(), partyLines(snapshot, state),
					[]string{"ID", "NAME", "STATE", "ALIVE", "OFFERS", "ENDPOINT", "ENROLLED BY", "AGE"},
					func(p partyLine) []string {
						return []string{
							p.ID, p.Name, p.State, strconv.FormatBool(p.Alive), strconv.Itoa(p.Offers), p.Endpoint, p.EnrolledBy, ago(p.EnrolledAt, now),
						}
					})
			})
		},
	}
	o.addFlags(command)
	command.Flags().StringVar(&state, "state", "", "only those that are Pending, Approved or Revoked")
	check := command.PreRunE
	command.PreRunE = func(command *cobra.Command, args []string) error {
		if state != "" && state != string(store.Pending) && state != string(store.Approved) && state != string(store.Revoked) {
			return program.Usage(fmt.Errorf("--state=%s: must be %s, %s or %s", state, store.Pending, store.Approved, store.Revoked))
		}
		return check(command, args)
	}
	return command
}

func partyLines(snapshot store.Snapshot, state string) []partyLine {
	offers := map[string]int{}
	for _, o := range snapshot.Offers {
		offers[o.Party]++
	}
	var lines []partyLine
	for _, p := range snapshot.Parties {
		if state != "" && string(p.State) != state {
			continue
		}
		line := partyLine{
			ID: p.ID, Name: p.Name, State: string(p.State), Alive: p.State == store.Approved && !p.Silent, Offers: offers[p.ID],
			Endpoint: p.Endpoint, Keys: len(p.Keys), EnrolledBy: p.EnrolledBy, EnrolledAt: p.EnrolledAt,
		}
		if !p.LeaseUntil.IsZero() {
			line.LeaseUntil = &p.LeaseUntil
		}
		lines = append(lines, line)
	}
	return lines
}

func newApprove(d *database) *cobra.Command {
	return &cobra.Command{
		Use:   "approve PARTY...",
		Short: "Let parties publish offers and read what is offered",
		Args:  program.Arguments(cobra.MinimumNArgs(1)),
		RunE:  d.decide("approved", (*store.Store).Approve),
	}
}

func newRevoke(d *database) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke PARTY...",
		Short: "Put parties out for ever, with all that they offer",
		Long: "Put parties out for ever, with all that they offer. Contracts that they have with others are not the registry's: those end as " +
			"their parties agreed.",
		Args: program.Arguments(cobra.MinimumNArgs(1)),
		RunE: d.decide("revoked", (*store.Store).Revoke),
	}
}

func newDrop(d *database) *cobra.Command {
	pending, waited := false, time.Duration(0)
	command := &cobra.Command{
		Use:   "drop --pending",
		Short: "Forget the parties that wait for approval",
		Long:  "Forget the parties that wait for approval, as after somebody has announced many. They may announce themselves again.",
		Args:  program.NoArguments,
		PreRunE: func(*cobra.Command, []string) error {
			switch {
			case !pending:
				return program.Usage(errors.New("--pending is required: parties that are approved are put out by revoke"))
			case waited < 0:
				return program.Usage(fmt.Errorf("--waited=%s: must not be negative", waited))
			}
			return nil
		},
		RunE: func(command *cobra.Command, _ []string) error {
			return d.with(command.Context(), func(s *store.Store) error {
				now, err := s.Now(command.Context())
				if err != nil {
					return err
				}
				n, err := s.DropPending(command.Context(), now.Add(time.Millisecond-waited))
				if err != nil {
					return err
				}
				fmt.Fprintf(command.OutOrStdout(), "%d parties dropped\n", n)
				return nil
			})
		},
	}
	command.Flags().BoolVar(&pending, "pending", false, "those that wait for approval; it is required")
	command.Flags().DurationVar(&waited, "waited", 0, "only those that have waited for so long")
	return command
}

// decision is what the registry decides about a party.
type decision = func(s *store.Store, ctx context.Context, id string) (store.Party, error)

// decide returns what a command does that decides about each of some parties, which are given by their IDs or by what the IDs begin with.
func (d *database) decide(done string, decision decision) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		return d.with(command.Context(), func(s *store.Store) error {
			snapshot, err := s.Snapshot(command.Context())
			if err != nil {
				return err
			}
			var ids []string
			for _, arg := range args {
				id, err := find(snapshot.Parties, arg)
				if err != nil {
					return err // Nothing is done before all are found.
				}
				ids = append(ids, id)
			}
			var failed []error
			for _, id := range ids {
				if _, err := decision(s, command.Context(), id); err != nil {
					failed = append(failed, err)
					continue
				}
				fmt.Fprintf(command.OutOrStdout(), "%s %s\n", id, done)
			}
			return errors.Join(failed...)
		})
	}
}

// shortest is how much of an ID is enough, if no other begins with it.
const shortest = 6

// find returns the ID of the one party that is meant.
func find(all []store.Party, begin string) (string, error) {
	var found []string
	for _, p := range all {
		if p.ID == begin {
			return p.ID, nil
		}
		if len(begin) >= shortest && strings.HasPrefix(p.ID, begin) {
			found = append(found, p.ID)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("there is no party %q: registry parties list shows them", begin)
	}
	return "", fmt.Errorf("%d parties begin with %q: give more of the ID", len(found), begin)
}
