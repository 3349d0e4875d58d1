// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store"
)

// offerLine is an offer, as it is printed.
type offerLine struct {
	Party      string          `json:"party"`
	ID         string          `json:"id"`
	Revision   int64           `json:"revision"`
	ValidUntil time.Time       `json:"validUntil"`
	Document   json.RawMessage `json:"document,omitempty"`

	offer offer.Offer
}

func newOffers(d *database) *cobra.Command {
	command := &cobra.Command{Use: "offers", Short: "List what parties offer"}
	o, of := &output{}, ""
	lister := &cobra.Command{
		Use:   "list",
		Short: "List the offers in the registry",
		Args:  program.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return d.read(command.Context(), func(snapshot store.Snapshot) (err error) {
				if of != "" {
					if of, err = find(snapshot.Parties, of); err != nil {
						return err
					}
				}
				now := time.Now()
				return list(o, command.OutOrStdout(), offerLines(snapshot, of),
					[]string{"PARTY", "ID", "NAME", "KIND", "REGION", "PLANS", "REVISION", "EXPIRES"},
					func(l offerLine) []string {
						return []string{
							l.Party, l.ID, l.offer.Name, string(l.offer.Kind), l.offer.Region, strconv.Itoa(len(l.offer.Plans)),
							strconv.FormatInt(l.Revision, 10), ago(l.ValidUntil, now),
						}
					})
			})
		},
	}
	o.addFlags(lister)
	lister.Flags().StringVar(&of, "party", "", "only those of a party: its ID, or what it begins with")
	command.AddCommand(lister)
	return command
}

// offerLines returns the offers of a party, or all. One that cannot be read is shown without what it says.
func offerLines(snapshot store.Snapshot, of string) []offerLine {
	var lines []offerLine
	for _, o := range snapshot.Offers {
		if of != "" && o.Party != of {
			continue
		}
		line := offerLine{Party: o.Party, ID: o.ID, Revision: o.Revision, ValidUntil: o.ValidUntil}
		if payload, err := party.Payload(o.JWS); err == nil {
			if read, err := offer.Parse(payload); err == nil {
				line.offer, line.Document = read, payload
			}
		}
		lines = append(lines, line)
	}
	return lines
}
