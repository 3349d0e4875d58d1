// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/trade/account"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/bill"
	"github.com/capacitorset/liqo-broker/pkg/trade/desk"
)

// formatFOCUS is rows in the columns of FOCUS, as comma-separated values.
const formatFOCUS = "focus-csv"

// exporting is the flags of the command that exports what is owed.
type exporting struct {
	month, format string
	sold, bought  bool
}

func (r *reading) exportCommand() *cobra.Command {
	var o exporting
	command := &cobra.Command{
		Use:   "export",
		Short: "Print what is owed for contracts, for each day of a month",
		Long: "Print what is owed for contracts in a month, in UTC: a row for each contract and day, in the columns of FOCUS 1.2. Of a month " +
			"that is not over, it is what is owed until now.",
		Example: "  kubectl liqo-broker contracts export --month 2026-11 --sold > sold.csv\n" +
			"  kubectl liqo-broker contracts export --month 2026-11 --bought --format json",
		Args: usage(cobra.NoArgs),
		RunE: func(command *cobra.Command, _ []string) error {
			from, to, err := account.Month(o.month)
			switch {
			case o.month == "":
				return program.Usage(errors.New("--month is needed, such as --month=2026-11"))
			case err != nil:
				return program.Usage(fmt.Errorf("--month: %w", err))
			case o.format != formatFOCUS && o.format != formatJSON:
				return program.Usage(fmt.Errorf("--format=%.20s is none of %s, %s", o.format, formatFOCUS, formatJSON))
			case from.After(r.now()):
				return program.Usage(fmt.Errorf("--month=%s has not begun", o.month))
			}
			c, err := r.open()
			if err != nil {
				return err
			}
			return r.exportRows(command.Context(), c, o, from, to)
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.month, "month", "", "the month, in UTC, such as 2026-11; it is needed")
	flags.BoolVar(&o.sold, "sold", false, "only what this cluster has sold")
	flags.BoolVar(&o.bought, "bought", false, "only what this cluster has bought")
	flags.StringVar(&o.format, "format", formatFOCUS, "how the rows are printed: one of "+formatFOCUS+", "+formatJSON)
	return command
}

// exportRows prints what is owed. What cannot be said of a contract is an error, after the rows of the others: a bill that lacks something
// says so.
func (r *reading) exportRows(ctx context.Context, c client.Client, o exporting, from, to time.Time) error {
	all, err := desk.Contracts(ctx, c)
	if err != nil {
		return r.trades(err)
	}
	var rows []account.Row
	var failed []error
	for i := range all {
		if one := &all[i]; one.Sold && o.bought && !o.sold || !one.Sold && o.sold && !o.bought {
			continue
		}
		entry, err := all[i].Entry()
		if err == nil {
			var more []account.Row
			more, err = entry.Rows(from, to, r.now())
			rows = append(rows, more...)
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	write := account.WriteCSV
	if o.format == formatJSON {
		write = account.WriteJSON
	}
	if err := write(r.Out, rows); err != nil {
		return err
	}
	if r.now().Before(to) {
		fmt.Fprintf(r.ErrOut, "The month is not over: this is what is owed until %s.\n", r.now().UTC().Format(time.RFC3339))
	}
	return errors.Join(failed...)
}

// printTotals says what is owed for contracts in the month that it is, until now; nothing if nothing is.
func printTotals(w io.Writer, now time.Time, all []desk.Contract) {
	sides := map[bool]bill.Sums{}
	unknown := 0
	from, _ := account.Now(now)
	for i := range all {
		entry, err := all[i].Entry()
		if err == nil {
			err = entry.Knows(from)
		}
		if err != nil {
			unknown++
			continue
		}
		sides[all[i].Sold] = sides[all[i].Sold].Plus(entry.Bill.Cost(from, now))
	}
	// What was bought comes first, as in the table.
	var said []string
	for _, side := range []struct {
		sold bool
		verb string
	}{{false, "bought"}, {true, "sold"}} {
		sums := slices.Clone(sides[side.sold])
		slices.SortFunc(sums, func(a, b bill.Sum) int { return strings.Compare(a.Currency, b.Currency) })
		if len(sums) > 0 {
			said = append(said, side.verb+" for "+sums.String())
		}
	}
	if unknown > 0 {
		said = append(said, fmt.Sprintf("%d contracts cannot be counted; see: kubectl liqo-broker contracts export", unknown))
	}
	if len(said) > 0 {
		fmt.Fprintf(w, "\nSince %s: %s.\n", from.Format("2006-01-02"), strings.Join(said, "; "))
	}
}
