// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"fmt"
	"strings"
)

// Row is an attempt where Liqo 1.x runs, which lets it succeed.
type Row struct {
	Attempt

	// Legal does what honest people do there, which succeeds also where the attempt is refused. It is nil where they do nothing like it.
	Legal func(context.Context) error

	by, away rule
}

// Attempts are those of rows. Away tells that daemon and guard do not run: who refuses then may be somebody else.
func Attempts(rows []Row, away bool) []Attempt {
	attempts := make([]Attempt, len(rows))
	for i := range rows {
		attempts[i] = rows[i].Attempt
		if away {
			attempts[i].Got = rows[i].away.answer()
		}
	}
	return attempts
}

// Open are the names of the rows that nobody refuses while daemon and guard do not run.
func Open(rows []Row) []string {
	var open []string
	for i := range rows {
		if rows[i].away == (rule{}) {
			open = append(open, rows[i].Name)
		}
	}
	return open
}

// refusedBy returns a row that is refused by a rule, and by another one while daemon and guard do not run.
func refusedBy(by, away rule, name, gain string, try, legal func(context.Context) error) Row {
	return Row{Attempt: Attempt{Name: name, Gain: gain, Got: by.answer(), Try: try}, Legal: legal, by: by, away: away}
}

// rule is who of this project refuses something, and what it says of it. The zero value is nobody.
type rule struct {
	// policy and webhook are the one that refuses; one of them is empty.
	policy, webhook string
	// or is another webhook that cannot be asked either: of both the API server names one.
	or string
	// message is what it says: nothing of a webhook that cannot be asked.
	message string
	// changes tells that it refuses nothing: it changes what is written.
	changes bool
}

const rulesGroup = ".brokering.liqo.io"

// answer is part of what is answered to who is refused.
func (r rule) answer() string {
	switch {
	case r == rule{}:
		return ""
	case r.policy != "":
		name := r.policy + rulesGroup
		return fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", name, name, r.message)
	case r.changes:
		return r.message
	case r.or != "":
		return "failed calling webhook"
	case r.message == "":
		return fmt.Sprintf("failed calling webhook %q", r.webhook+rulesGroup)
	default:
		return fmt.Sprintf("admission webhook %q denied the request: %s", r.webhook+rulesGroup, r.message)
	}
}

// String is how people call it.
func (r rule) String() string {
	switch {
	case r == rule{}:
		return "nobody"
	case r.policy != "":
		return "policy `" + r.policy + "`"
	case r.changes:
		return "webhook `" + r.webhook + "`, which changes it"
	case r.or != "":
		return "webhook `" + r.webhook + "` or `" + r.or + "`, which are not there"
	case r.message == "":
		return "webhook `" + r.webhook + "`, which is not there"
	default:
		return "webhook `" + r.webhook + "`"
	}
}

// ReportRows is a table of rows and of who refuses them, in Markdown.
func ReportRows(rows []Row) string {
	var table strings.Builder
	table.WriteString("| what was tried | to get | refused by | while daemon and guard do not run |\n|---|---|---|---|\n")
	for i := range rows {
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", rows[i].Name, rows[i].Gain, rows[i].by, rows[i].away)
	}
	return table.String()
}
