// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"io"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// PolicyCheck is what was found of a policy that may not be applied yet.
type PolicyCheck struct {
	Name string `json:"name"`
	// Good is true if there are no problems.
	Good     bool     `json:"good"`
	Problems []string `json:"problems,omitempty"`
	Notes    []string `json:"notes,omitempty"`
	// Decisions are what it would choose now; of a consumer without an ID if it applies to none.
	Decisions []ExplainedDecision `json:"decisions,omitempty"`
}

// Add adds what would be decided for a consumer, or why that is nothing.
func (c *PolicyCheck) Add(now time.Time, d *v1alpha1.ConsumerDecision, err error) {
	explained := Decided(now, d)
	c.Decisions = append(c.Decisions, explained)
	if err != nil {
		c.Problems = append(c.Problems, fmt.Sprintf("For %s: %s", forWhom(explained.Consumer), err))
	}
}

func forWhom(c Cluster) string {
	if c.ID == "" {
		return "any consumer, while there is none to which it applies"
	}
	return "consumer " + c.String()
}

// Print writes what was found for people, with tables that the printer writes to the same place.
func (c *PolicyCheck) Print(w io.Writer, tables TablePrinter) error {
	verdict := "is good"
	if !c.Good {
		verdict = "has problems"
	}
	fmt.Fprintf(w, "Policy %s %s\n", sheet.Plain(c.Name), verdict)
	for _, text := range c.Problems {
		fmt.Fprintf(w, "! %s\n", sheet.Sentence(text))
	}
	for _, text := range c.Notes {
		fmt.Fprintf(w, "* %s\n", sheet.Sentence(text))
	}
	for i := range c.Decisions {
		d := &c.Decisions[i]
		fmt.Fprintf(w, "\nIt would choose for %s:\n", sheet.Plain(forWhom(d.Consumer)))
		if err := tables(candidates(d.Providers)); err != nil {
			return err
		}
		incomplete(w, d.Complete)
	}
	return nil
}
