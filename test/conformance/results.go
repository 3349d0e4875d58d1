// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// A spec is what became of one test.
type spec struct {
	Passed bool `json:"passed"`
	// Failure is the first line of what a test said that failed.
	Failure string `json:"failure,omitempty"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
}

// specs are tests by name.
type specs map[string]spec

func (s specs) failed() []string {
	var names []string
	for name, one := range s {
		if !one.Passed {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// replace replaces the results of tests that were looked at again.
func (s specs) replace(second specs) {
	for name, one := range second {
		if _, known := s[name]; known {
			s[name] = one
		}
	}
}

// without leaves out the tests whose name matches: those that were run once, and are skipped by now, do not count.
func (s specs) without(names *regexp.Regexp) specs {
	maps.DeleteFunc(s, func(name string, _ spec) bool { return names.MatchString(name) })
	return s
}

func (s specs) write(path string) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

func readResults(path string) (specs, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var s specs
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("read results of %s: %w", path, err)
	}
	return s, nil
}

// ginkgoSuite is the part of a report of Ginkgo that counts.
// https://github.com/onsi/ginkgo/blob/v2.21.0/types/types.go
type ginkgoSuite struct {
	SpecReports []struct {
		ContainerHierarchyTexts []string `json:"ContainerHierarchyTexts"`
		LeafNodeType            string   `json:"LeafNodeType"`
		LeafNodeText            string   `json:"LeafNodeText"`
		State                   string   `json:"State"`
		RunTime                 int64    `json:"RunTime"` // Nanoseconds.
		Failure                 *struct {
			Message string `json:"Message"`
		} `json:"Failure"`
	} `json:"SpecReports"`
}

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
			one := spec{Passed: report.State == "passed", Seconds: float64(report.RunTime/1e8) / 10}
			if !one.Passed && report.Failure != nil {
				one.Failure, _, _ = strings.Cut(strings.TrimSpace(report.Failure.Message), "\n")
			}
			found[strings.Join(append(report.ContainerHierarchyTexts, report.LeafNodeText), " ")] = one
		}
	}
	return found, nil
}
