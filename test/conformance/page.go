// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// results are what became of tests by name, and by distance.
type results map[string]map[string]spec

// explain returns why a test fails, or nothing.
type explain func(name string) string

func (r results) add(distance string, found specs) {
	for name, one := range found {
		if r[name] == nil {
			r[name] = map[string]spec{}
		}
		r[name][distance] = one
	}
}

// worse are the tests that fail at a distance and pass at a shorter one, and that nobody has explained.
func (r results) worse(shorter, longer string, why explain) []string {
	var names []string
	for name, by := range r {
		near, ranNear := by[shorter]
		far, ranFar := by[longer]
		if ranNear && ranFar && near.Passed && !far.Passed && why(name) == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// judge returns an error that names the tests that pass with pods at home or one hop away, fail through the broker, and are not
// explained.
func (r results) judge(why explain) error {
	unexplained := slices.Concat(r.worse("local", "two-hops", why), r.worse("one-hop", "two-hops", why))
	slices.Sort(unexplained)
	unexplained = slices.Compact(unexplained)
	if len(unexplained) == 0 {
		return nil
	}
	return fmt.Errorf("these tests fail through the broker, and nobody says why:\n  %s", strings.Join(unexplained, "\n  "))
}

// count returns how many tests passed at a distance, and how many failed.
func (r results) count(distance string) (passed, failed int) {
	for _, by := range r {
		if one, ran := by[distance]; ran && one.Passed {
			passed++
		} else if ran {
			failed++
		}
	}
	return passed, failed
}

// summary counts the results.
func (r results) summary() string {
	var out strings.Builder
	for _, d := range distances {
		passed, failed := r.count(d.name)
		fmt.Fprintf(&out, "%s: %d passed, %d failed\n", d.name, passed, failed)
	}
	return out.String()
}

// page is a page of Markdown: the tests that fail somewhere with the reason, those that are not run with the reason, and the
// rest.
func (r results) page(why explain) string {
	var out strings.Builder
	out.WriteString(pageTop)
	out.WriteString("\n| pods | tests passed | failed |\n|---|---|---|\n")
	for _, d := range distances {
		passed, failed := r.count(d.name)
		fmt.Fprintf(&out, "| %s | %d | %d |\n", d.name, passed, failed)
	}
	out.WriteString("\n## What fails, and why\n\n| test | local | one hop | two hops | why |\n|---|---|---|---|---|\n")
	names := slices.Sorted(maps.Keys(r))
	for _, name := range names {
		if r.failsSomewhere(name) {
			fmt.Fprintf(&out, "| %s | %s | %s |\n", short(name), r.row(name), why(name))
		}
	}
	out.WriteString("\n## What is not run, and why\n\n| tests | why |\n|---|---|\n")
	for _, s := range skips {
		fmt.Fprintf(&out, "| %s | %s |\n", s.what, s.why)
	}
	out.WriteString("\n## What passes everywhere\n\n")
	var partly []string
	for _, name := range names {
		switch {
		case r.failsSomewhere(name):
		case len(r[name]) < len(distances):
			partly = append(partly, name)
		default:
			fmt.Fprintf(&out, "* %s\n", short(name))
		}
	}
	if len(partly) > 0 {
		out.WriteString("\n## What passes, and was not run at each distance\n\n| test | local | one hop | two hops |\n|---|---|---|---|\n")
	}
	for _, name := range partly {
		fmt.Fprintf(&out, "| %s | %s |\n", short(name), r.row(name))
	}
	return out.String()
}

// short is the name of a test without what all names have.
func short(name string) string {
	return strings.NewReplacer(" [Conformance]", "", " [NodeConformance]", "", " [LinuxOnly]", "", "|", `\|`).Replace(name)
}

// failsSomewhere reports whether a test failed at a distance.
func (r results) failsSomewhere(name string) bool {
	for _, one := range r[name] {
		if !one.Passed {
			return true
		}
	}
	return false
}

func (r results) row(name string) string {
	var cells []string
	for _, d := range distances {
		one, ran := r[name][d.name]
		switch {
		case !ran:
			cells = append(cells, "not run")
		case one.Passed:
			cells = append(cells, "passes")
		default:
			cells = append(cells, "**fails**")
		}
	}
	return strings.Join(cells, " | ")
}
