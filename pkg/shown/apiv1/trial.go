// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package apiv1

import (
	"fmt"
	"strings"
)

// PolicyTrial is what a policy would decide that nobody has applied, and what of that is another thing than today.
type PolicyTrial struct {
	Policy    string          `json:"policy" doc:"Its name."`
	Exists    bool            `json:"exists" doc:"There is a policy of this name, in whose place it is tried."`
	Problems  []string        `json:"problems,omitempty" nullable:"false" doc:"What keeps it from deciding well, such as a KPI that no provider has."`
	Notes     []string        `json:"notes,omitempty" nullable:"false" doc:"What the trial cannot say, and which policies go before it."`
	Consumers []TriedDecision `json:"consumers" nullable:"false" doc:"At most 100, those first for which something changes. Without any to which it applies, one without an ID."`
	More      int             `json:"more,omitempty" doc:"How many further consumers it would decide for."`
	Dropped   []Cluster       `json:"dropped,omitempty" nullable:"false" doc:"Consumers for which the policy of this name decides today, and it would not; at most 20."`
	// MoreDropped counts those that are left out of Dropped.
	MoreDropped int `json:"moreDropped,omitempty" doc:"How many further consumers there are of these."`
}

// TriedDecision is what would be decided for one consumer.
type TriedDecision struct {
	Decision   Decision  `json:"decision"`
	Problem    string    `json:"problem,omitempty" doc:"Why nothing can be chosen: what was chosen before stays."`
	Namespaces *int      `json:"namespaces,omitempty" doc:"How many of its namespaces would follow the policy; missing if that is not known."`
	Today      []string  `json:"today,omitempty" nullable:"false" doc:"The policies that decide for these namespaces today; without a namespace, for what it has in general."`
	Free       bool      `json:"free" doc:"Today no policy decides for some of it: all providers that are ready come into question."`
	In         []Cluster `json:"in,omitempty" nullable:"false" doc:"Providers that are chosen and are not today, at most 20."`
	MoreIn     int       `json:"moreIn,omitempty" doc:"How many further providers come in."`
	Out        []Cluster `json:"out,omitempty" nullable:"false" doc:"Providers that are chosen today and would not be, at most 20."`
	MoreOut    int       `json:"moreOut,omitempty" doc:"How many further providers go out."`
	PodsOut    *int      `json:"podsOut,omitempty" doc:"How many pods of these namespaces are on providers that go out; missing if that is not known."`
}

// Fault is what is wrong with a text, and where. Line and Column count from 1, and are 0 if they are not known.
type Fault struct {
	Field        string
	Line, Column int
	Says         string
}

// String says all of it.
func (f *Fault) String() string {
	var parts []string
	switch {
	case f.Column > 0:
		parts = append(parts, fmt.Sprintf("line %d, column %d", f.Line, f.Column))
	case f.Line > 0:
		parts = append(parts, fmt.Sprintf("line %d", f.Line))
	}
	if f.Field != "" {
		parts = append(parts, f.Field)
	}
	return strings.Join(append(parts, f.Says), ": ")
}

// FaultsError are all that is wrong with a text: an error, for errors.As.
type FaultsError []Fault

// Error says all of them.
func (f FaultsError) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].String()
	}
	return strings.Join(lines, "; ")
}
