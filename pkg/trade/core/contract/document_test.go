// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

var update = flag.Bool("update", false, "write the table of states and events into doc.go and docs/trade/contract.md")

// name is a state for people.
func name(state contract.State) string {
	if state == contract.None {
		return "None"
	}
	return string(state)
}

// words says what a cell of the table means.
func words(cell contract.Cell) string {
	var all []string
	for _, to := range cell.To {
		all = append(all, "-> "+name(to))
	}
	if cell.Same {
		all = append(all, "same")
	}
	sentinels := map[error]string{
		contract.ErrUnknown: "unknown", contract.ErrEarly: "early", contract.ErrLate: "late", contract.ErrRevision: "revision",
	}
	for _, err := range cell.Errs {
		all = append(all, sentinels[err])
	}
	return strings.Join(all, ", ")
}

// rows groups the events of each state that have the same outcome.
func rows(state contract.State) (outcomes []string, events map[string][]string) {
	events = map[string][]string{}
	for _, event := range contract.Events() {
		outcome := words(contract.Lookup(state, event))
		if !slices.Contains(outcomes, outcome) {
			outcomes = append(outcomes, outcome)
		}
		events[outcome] = append(events[outcome], string(event))
	}
	return outcomes, events
}

// comment is the table as part of a doc comment.
func comment() string {
	var out strings.Builder
	for _, state := range contract.States() {
		fmt.Fprintf(&out, "//\t%s\n", name(state))
		outcomes, events := rows(state)
		for _, outcome := range outcomes {
			fmt.Fprintf(&out, "//\t  %-40s %s\n", outcome, strings.Join(events[outcome], " "))
		}
	}
	return out.String()
}

// page is the picture and the table for docs.
func page() string {
	var out strings.Builder
	out.WriteString("```mermaid\nstateDiagram-v2\n")
	for _, from := range contract.States() {
		var next []contract.State
		events := map[contract.State][]string{}
		for _, event := range contract.Events() {
			for _, to := range contract.Lookup(from, event).To {
				if to == from {
					continue
				}
				if !slices.Contains(next, to) {
					next = append(next, to)
				}
				events[to] = append(events[to], string(event))
			}
		}
		id := name(from)
		if from == contract.None {
			id = "[*]"
		}
		for _, to := range next {
			fmt.Fprintf(&out, "  %s --> %s: %s\n", id, to, strings.Join(events[to], ", "))
		}
		if from.Final() {
			fmt.Fprintf(&out, "  %s --> [*]\n", from)
		}
	}
	out.WriteString("```\n\n| state | outcome | events |\n|---|---|---|\n")
	for _, state := range contract.States() {
		outcomes, events := rows(state)
		for _, outcome := range outcomes {
			fmt.Fprintf(&out, "| %s | %s | %s |\n", name(state), strings.ReplaceAll(outcome, "->", "→"), strings.Join(events[outcome], ", "))
		}
	}
	return out.String()
}

// stands is how a buyer stands, for people.
func stands(standing contract.Standing) string {
	if standing == contract.Heard {
		return "Heard"
	}
	return string(standing)
}

// outcomes says what a buyer does that stands so and hears its seller to be so.
func outcomes(standing contract.Standing, heard contract.Doubt) string {
	var all []string
	for _, turn := range contract.Turns(standing, heard) {
		text := "-> " + stands(turn.To)
		if turn.To == standing {
			text = "same"
		}
		for i, condition := range turn.If {
			text += []string{" if ", " and "}[min(i, 1)] + string(condition)
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// turns groups what a seller can be heard to be that has the same outcome for a buyer that stands so.
func turns(standing contract.Standing) (all []string, heards map[string][]string) {
	heards = map[string][]string{}
	for _, heard := range contract.Doubts() {
		outcome := outcomes(standing, heard)
		if !slices.Contains(all, outcome) {
			all = append(all, outcome)
		}
		heards[outcome] = append(heards[outcome], cmp.Or(string(heard), "Right"))
	}
	return all, heards
}

// leavingComment and leavingPage are the table of how a buyer stands to its seller, as part of a doc comment and for docs.
func leavingComment() string {
	var out strings.Builder
	for _, standing := range contract.Standings() {
		fmt.Fprintf(&out, "//\t%s\n", stands(standing))
		all, heards := turns(standing)
		for _, outcome := range all {
			heard := strings.Join(heards[outcome], " ")
			for turn := range strings.SplitSeq(outcome, "; ") {
				fmt.Fprintf(&out, "//\t  %-35s %s\n", heard, turn)
				heard = ""
			}
		}
	}
	return out.String()
}

func leavingPage() string {
	var out strings.Builder
	out.WriteString("| the buyer | its seller is | outcome, the first that holds |\n|---|---|---|\n")
	for _, standing := range contract.Standings() {
		all, heards := turns(standing)
		for _, outcome := range all {
			fmt.Fprintf(&out, "| %s | %s | %s |\n", stands(standing), strings.Join(heards[outcome], ", "), strings.ReplaceAll(outcome, "->", "→"))
		}
	}
	return out.String()
}

// TestDocuments compares the tables in the documents with the data. Run it with -update to write it again.
func TestDocuments(t *testing.T) {
	cases := map[string]struct{ file, begin, end, want string }{
		"doc comment":        {"doc.go", "// The table (same: it is so already):\n", "//\n// The buyer's table", "//\n" + comment()},
		"doc comment, buyer": {"doc.go", "also when its clusters have parted:\n", "package contract\n", "//\n" + leavingComment()},
		"page": {
			"../../../../docs/trade/contract.md", "<!-- states: go test ./pkg/trade/core/contract -run Documents -update -->\n",
			"<!-- end of states -->\n", page(),
		},
		"page, buyer": {
			"../../../../docs/trade/contract.md", "<!-- leaving: go test ./pkg/trade/core/contract -run Documents -update -->\n",
			"<!-- end of leaving -->\n", leavingPage(),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(c.file)
			if err != nil {
				t.Fatal(err)
			}
			before, rest, found := strings.Cut(string(text), c.begin)
			now, after, ended := strings.Cut(rest, c.end)
			if !found || !ended {
				t.Fatalf("%s has no place for the table, between %q and %q", c.file, c.begin, c.end)
			}
			if *update {
				if err := os.WriteFile(c.file, []byte(before+c.begin+c.want+c.end+after), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if now != c.want {
				t.Errorf("the table in %s is not that of the package: run go test ./pkg/trade/core/contract -run Documents -update", c.file)
			}
		})
	}
}
