// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// A TablePrinter prints a table.
type TablePrinter func(*metav1.Table) error

// Print writes an explanation for people, with tables that the printer writes to the same place.
func (e *Explanation) Print(w io.Writer, tables TablePrinter) error {
	for i := range e.Policies {
		if err := e.Policies[i].write(w, tables); err != nil {
			return err
		}
	}
	for i := range e.Namespaces {
		if i+len(e.Policies) > 0 {
			fmt.Fprintln(w)
		}
		if err := e.Namespaces[i].write(w, tables); err != nil {
			return err
		}
	}
	return nil
}

func (p *ExplainedPolicy) write(w io.Writer, tables TablePrinter) error {
	fmt.Fprintf(w, "Policy %s: scope %s, priority %d\n", p.Name, p.Scope, p.Priority)
	for _, c := range p.Conditions {
		fmt.Fprintf(w, "  %s is %s (%s): %s\n", c.Type, c.Status, c.Reason, sheet.Sentence(c.Message))
	}
	if len(p.Decisions) == 0 {
		fmt.Fprintln(w, "It has decided nothing.")
	}
	for i := range p.Decisions {
		d := &p.Decisions[i]
		fmt.Fprintf(w, "\nFor consumer %s:\n", sheet.Plain(d.Consumer.String()))
		if err := tables(candidates(d.Providers)); err != nil {
			return err
		}
		incomplete(w, d.Complete)
	}
	return nil
}

func (n *ExplainedNamespace) write(w io.Writer, tables TablePrinter) error {
	fmt.Fprintf(w, "Namespace %s of consumer %s, which is %s here\n", sheet.Plain(n.Name), sheet.Plain(n.Consumer.String()), n.Twin)
	if n.Policy == "" {
		fmt.Fprintln(w, "It follows no policy: all providers are used that can be.")
	} else {
		fmt.Fprintf(w, "It follows policy %s.\n", n.Policy)
	}
	writeUnheeded(w, n.Unheeded)
	if n.Waiting != "" {
		fmt.Fprintf(w, "New pods wait: %s\n", n.Waiting)
	}
	if len(n.Providers) > 0 {
		fmt.Fprintln(w)
		if err := tables(candidates(n.Providers)); err != nil {
			return err
		}
		incomplete(w, n.Complete)
	}
	if len(n.Pods) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return tables(sheet.Table(n.Pods, []sheet.Column[Explained]{
		{Name: "Pod", Cell: func(p *Explained) string { return p.Pod }},
		{Name: "Provider", Cell: func(p *Explained) string { return p.Provider.called() }},
		{Name: "Status", Cell: func(p *Explained) string { return p.Status }},
		{Name: "Why", Long: true, Cell: func(p *Explained) string { return p.Why }},
	}))
}

// writeUnheeded names some of the policies that pods name in vain.
func writeUnheeded(w io.Writer, policies []string) {
	if len(policies) == 0 {
		return
	}
	fmt.Fprintf(w, "Pods name policies in vain: %s. No policy of the scope OnRequest is called so and is for this consumer.\n",
		sheet.Plain(excerpt.Names(policies, 5)))
}

func incomplete(w io.Writer, complete bool) {
	if !complete {
		fmt.Fprintln(w, "Of further providers the decision says nothing.")
	}
}

func candidates(of []Candidate) *metav1.Table {
	return sheet.Table(of, []sheet.Column[Candidate]{
		{Name: "Provider", Cell: func(c *Candidate) string { return c.called() }},
		{Name: "ID", Cell: func(c *Candidate) string { return c.ID }},
		{Name: "Chosen", Cell: func(c *Candidate) string { return map[bool]string{true: "yes", false: "no"}[c.Chosen] }},
		{Name: "Score", Cell: func(c *Candidate) string { return c.Score }},
		{Name: "Why", Long: true, Cell: func(c *Candidate) string { return strings.Join(c.Why, "; ") }},
	})
}

// String returns the name and the ID.
func (c *Cluster) String() string {
	if c.Name == "" {
		return c.ID
	}
	return c.Name + " (" + c.ID + ")"
}
