// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// explain returns why a test fails at a place, or nothing.
type explain func(at place, name string) string

// summary counts the results of each place where tests ran.
func (r results) summary() string {
	var out strings.Builder
	for _, at := range r.places() {
		passed, failed := r.count(at)
		fmt.Fprintf(&out, "Liqo %s, %s: %d passed, %d failed\n", at.liqo, at.distance, passed, failed)
	}
	return out.String()
}

// places are where tests ran.
func (r results) places() []place {
	var all []place
	for _, with := range releases {
		for _, d := range distances {
			if at := (place{with.version, d.name}); len(r.ran(at)) > 0 {
				all = append(all, at)
			}
		}
	}
	return all
}

// later are the releases after the first one with which tests ran.
func (r results) later() []release {
	return slices.DeleteFunc(slices.Clone(releases[1:]), func(with release) bool {
		return !slices.ContainsFunc(r.places(), func(at place) bool { return at.liqo == with.version })
	})
}

// page is a page of Markdown: the tests that fail somewhere with the reasons, those that are not run with the reason, and the rest. The
// columns of a later release of Liqo stand after those of the first one, and only if tests ran with it.
func (r results) page(why explain) string {
	var out strings.Builder
	out.WriteString(pageTop)
	later := r.later()
	for _, with := range later {
		out.WriteString("\n" + with.about)
	}
	r.writeCounts(&out, later)
	r.writeFailures(&out, later, why)
	out.WriteString("\n## What is not run, and why\n\n| tests | why |\n|---|---|\n")
	for _, s := range skips {
		fmt.Fprintf(&out, "| %s | %s |\n", s.what, s.why)
	}
	r.writePassed(&out, later)
	return out.String()
}

// writeCounts writes how many tests passed and failed, a row for each distance.
func (r results) writeCounts(out *strings.Builder, later []release) {
	head, dashes := "| pods | tests passed | failed |", "|---|---|---|"
	for _, with := range later {
		head += fmt.Sprintf(" %s: passed | failed |", with.version)
		dashes += "---|---|"
	}
	fmt.Fprintf(out, "\n%s\n%s\n", head, dashes)
	for _, d := range distances {
		fmt.Fprintf(out, "| %s |", d.name)
		for _, with := range append([]release{releases[0]}, later...) {
			if passed, failed := r.count(place{with.version, d.name}); passed+failed > 0 {
				fmt.Fprintf(out, " %d | %d |", passed, failed)
			} else {
				out.WriteString(" not run | |")
			}
		}
		out.WriteString("\n")
	}
}

// columns returns the head of a table of tests with what becomes of them, and the line below it; last are the heads after each release.
func columns(later []release, last string) string {
	head, dashes := "| test | local | one hop | two hops |"+last, "|---|---|---|---|"
	for _, with := range later {
		head += fmt.Sprintf(" %s: local, one hop, two hops |%s", with.version, last)
		dashes += "---|"
	}
	dashes += strings.Repeat("---|", strings.Count(last, "|")*(1+len(later)))
	return head + "\n" + dashes + "\n"
}

// writeFailures writes what fails somewhere.
func (r results) writeFailures(out *strings.Builder, later []release, why explain) {
	out.WriteString("\n## What fails, and why\n\n" + columns(later, " why |"))
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if !r.failsSomewhere(name) {
			continue
		}
		first := r.whyWith(releases[0], name, why)
		fmt.Fprintf(out, "| %s | %s | %s |", short(name), r.row(releases[0], name, " | "), first)
		for _, with := range later {
			then := r.whyWith(with, name, why)
			if then != "" && then == first {
				then = "as with " + releases[0].version
			}
			fmt.Fprintf(out, " %s | %s |", r.row(with, name, ", "), then)
		}
		out.WriteString("\n")
	}
}

// writePassed writes what fails nowhere: what ran in all places where tests ran, and what did not.
func (r results) writePassed(out *strings.Builder, later []release) {
	out.WriteString("\n## What passes everywhere\n\n")
	var partly []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		switch {
		case r.failsSomewhere(name):
		case len(r[name]) < len(r.places()):
			partly = append(partly, name)
		default:
			fmt.Fprintf(out, "* %s\n", short(name))
		}
	}
	if len(partly) == 0 {
		return
	}
	out.WriteString("\n## What passes, and was not run everywhere\n\n" + columns(later, ""))
	for _, name := range partly {
		fmt.Fprintf(out, "| %s | %s |", short(name), r.row(releases[0], name, " | "))
		for _, with := range later {
			fmt.Fprintf(out, " %s |", r.row(with, name, ", "))
		}
		out.WriteString("\n")
	}
}

// short is the name of a test without what all names have.
func short(name string) string {
	return strings.NewReplacer(" [Conformance]", "", " [NodeConformance]", "", " [LinuxOnly]", "", "|", `\|`).Replace(name)
}

// failsSomewhere reports whether a test failed at a place.
func (r results) failsSomewhere(name string) bool {
	for _, passed := range r[name] {
		if !passed {
			return true
		}
	}
	return false
}

// whyWith returns why a test fails with a release of Liqo, each reason once; nothing if it does not.
func (r results) whyWith(with release, name string, why explain) string {
	var all []string
	for _, d := range distances {
		at := place{with.version, d.name}
		if passed, ran := r[name][at]; ran && !passed && why(at, name) != "" && !slices.Contains(all, why(at, name)) {
			all = append(all, why(at, name))
		}
	}
	return strings.Join(all, " ")
}

// row returns what becomes of a test with a release of Liqo, at one distance after the other.
func (r results) row(with release, name, separator string) string {
	var cells []string
	for _, letter := range r.letters(name, with) {
		cells = append(cells, map[rune]string{letterNotRun: "not run", letterPasses: "passes", letterFails: "**fails**"}[letter])
	}
	return strings.Join(cells, separator)
}
