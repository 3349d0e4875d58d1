// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// AmbiguousError says that a text can mean several clusters.
type AmbiguousError struct {
	Text       string
	Candidates []cluster.Identity
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q can mean several clusters: %s", e.Text, list(e.Candidates))
}

// UnknownError says that a text means no cluster of those that there are.
type UnknownError struct {
	Text  string
	Known []cluster.Identity
}

func (e *UnknownError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("no cluster is called %q: there is none", e.Text)
	}
	return fmt.Sprintf("no cluster is called %q: there are %s", e.Text, list(e.Known))
}

// maxListed is how many clusters an error names.
const maxListed = 10

func list(clusters []cluster.Identity) string {
	var names []string
	for _, c := range clusters[:min(len(clusters), maxListed)] {
		names = append(names, sheet.Plain(c.String()))
	}
	if more := len(clusters) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// Find returns the cluster that a text means: its ID, else its name, else the beginning of one of both. It returns an
// AmbiguousError or an UnknownError if that is not exactly one.
func Find(clusters []cluster.Identity, text string) (cluster.Identity, error) {
	for _, means := range []func(cluster.Identity) bool{
		func(c cluster.Identity) bool { return string(c.ID) == text },
		func(c cluster.Identity) bool { return c.Name == text },
		func(c cluster.Identity) bool { return hasPrefix(c, text) },
	} {
		var found []cluster.Identity
		for _, c := range clusters {
			if text != "" && means(c) {
				found = append(found, c)
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return cluster.Identity{}, &AmbiguousError{Text: text, Candidates: sorted(found)}
		}
	}
	return cluster.Identity{}, &UnknownError{Text: text, Known: sorted(clusters)}
}

func hasPrefix(c cluster.Identity, text string) bool {
	return strings.HasPrefix(string(c.ID), text) || strings.HasPrefix(c.Name, text)
}

// Completions returns what a shell offers for the beginning of a name or an ID: names where they are distinct, and IDs where they
// are not or where an ID was begun, each with a description after a tab.
func Completions(clusters []cluster.Identity, begun string) []string {
	count := map[string]int{}
	for _, c := range clusters {
		count[c.Name]++
	}
	var offered []string
	for _, c := range sorted(clusters) {
		switch usable := c.Name != "" && sheet.Plain(c.Name) == c.Name && !strings.ContainsAny(c.Name, " :") && count[c.Name] == 1; {
		case usable && strings.HasPrefix(c.Name, begun):
			offered = append(offered, c.Name+"\t"+string(c.ID))
		case strings.HasPrefix(string(c.ID), begun):
			offered = append(offered, string(c.ID)+"\t"+sheet.Plain(c.Name))
		}
	}
	return offered
}

func sorted(clusters []cluster.Identity) []cluster.Identity {
	return slices.SortedFunc(slices.Values(clusters), func(a, b cluster.Identity) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
}
