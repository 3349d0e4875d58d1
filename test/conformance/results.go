// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// A spec is what became of one test in one run.
type spec struct {
	passed bool
	// failure is the first line of what a test said that failed.
	failure string
}

// specs are tests by name.
type specs map[string]spec

func (s specs) failed() []string {
	var names []string
	for name, one := range s {
		if !one.passed {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// replace replaces the results of tests that were to be looked at again. One of them at which nobody has looked again has no result.
func (s specs) replace(again []string, second specs) {
	for _, name := range again {
		delete(s, name)
		if one, looked := second[name]; looked {
			s[name] = one
		}
	}
}

// ginkgoSuite is the part of a report of Ginkgo that counts.
// https://github.com/onsi/ginkgo/blob/v2.21.0/types/types.go
type ginkgoSuite struct {
	SpecReports []struct {
		ContainerHierarchyTexts []string `json:"ContainerHierarchyTexts"`
		LeafNodeType            string   `json:"LeafNodeType"`
		LeafNodeText            string   `json:"LeafNodeText"`
		State                   string   `json:"State"`
		Failure                 *struct {
			Message string `json:"Message"`
		} `json:"Failure"`
	} `json:"SpecReports"`
}

// outOfTime is how the message of a test begins that Ginkgo ended because the time of all tests was over.
const outOfTime = "A suite timeout occurred"

// readReport reads what became of the tests that ran.
func readReport(path string) (specs, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseReport(data)
}

func parseReport(data []byte) (specs, error) {
	var suites []ginkgoSuite
	if err := json.Unmarshal(data, &suites); err != nil {
		return nil, fmt.Errorf("read the report of the tests: %w", err)
	}
	found := specs{}
	for _, s := range suites {
		for _, report := range s.SpecReports {
			if report.LeafNodeType != "It" || report.State == "skipped" || report.State == "pending" {
				continue
			}
			one := spec{passed: report.State == "passed"}
			if !one.passed && report.Failure != nil {
				one.failure, _, _ = strings.Cut(strings.TrimSpace(report.Failure.Message), "\n")
			}
			if strings.HasPrefix(one.failure, outOfTime) {
				continue
			}
			found[strings.Join(append(report.ContainerHierarchyTexts, report.LeafNodeText), " ")] = one
		}
	}
	return found, nil
}

// A place is where the pods of tests run: with which release of Liqo, and at which distance.
type place struct{ liqo, distance string }

// results are whether tests passed, by name, and by the places where they ran.
type results map[string]map[place]bool

// add adds what was found at a place to what is known of it.
func (r results) add(at place, found specs) {
	for name, one := range found {
		if r[name] == nil {
			r[name] = map[place]bool{}
		}
		r[name][at] = one.passed
	}
}

// forget forgets what is known of a place.
func (r results) forget(at place) {
	for _, by := range r {
		delete(by, at)
	}
	maps.DeleteFunc(r, func(_ string, by map[place]bool) bool { return len(by) == 0 })
}

// ran returns the names of the tests that ran at a place.
func (r results) ran(at place) []string {
	var names []string
	for name, by := range r {
		if _, ran := by[at]; ran {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// count returns how many tests passed at a place, and how many failed.
func (r results) count(at place) (passed, failed int) {
	for _, by := range r {
		if yes, ran := by[at]; ran && yes {
			passed++
		} else if ran {
			failed++
		}
	}
	return passed, failed
}

// leaveOut leaves out the tests whose name matches: those that were run once, and are skipped by now, do not count.
func (r results) leaveOut(matches func(name string) bool) {
	maps.DeleteFunc(r, func(name string, _ map[place]bool) bool { return matches(name) })
}

// unexplained returns the tests that fail somewhere for no reason that is known, and pass less far away or with an earlier release of Liqo:
// each with where it fails, in order.
func (r results) unexplained(why explain) []string {
	var all []string
	for name, by := range r {
		for i, with := range releases {
			for j, d := range distances {
				at := place{with.version, d.name}
				if passed, ran := by[at]; !ran || passed || why(at, name) != "" {
					continue
				}
				nearer := slices.ContainsFunc(distances[:j], func(d distance) bool { return by[place{with.version, d.name}] })
				earlier := slices.ContainsFunc(releases[:i], func(l release) bool { return by[place{l.version, d.name}] })
				if nearer || earlier {
					all = append(all, fmt.Sprintf("%s (%s, Liqo %s)", name, d.name, with.version))
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// judge returns an error that names what is unexplained.
func (r results) judge(why explain) error {
	if all := r.unexplained(why); len(all) > 0 {
		return fmt.Errorf("these tests fail, pass less far away or with an earlier Liqo, and nobody says why:\n  %s", strings.Join(all, "\n  "))
	}
	return nil
}
