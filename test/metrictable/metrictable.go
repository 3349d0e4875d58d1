// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrictable writes down which metrics a program has, for docs/reference/metrics.md, and holds them against the conventions of
// Prometheus. It does not know what to do about a value.
package metrictable

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/capacitorset/liqo-broker/test/golden"
)

// File is where each program keeps its table, below testdata.
const File = "metrics.txt"

// own is how the names of our metrics begin; those of libraries are theirs.
const own = "liqo_broker_"

// Check holds the metrics of a program against the conventions, and compares their table with testdata/metrics.txt. Each metric must have a
// value. A line has name, type, labels, unit and help, with tabs between them.
func Check(tb testing.TB, metrics prometheus.Gatherer) {
	tb.Helper()
	all, err := metrics.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	var out strings.Builder
	for _, family := range all {
		if !strings.HasPrefix(family.GetName(), own) {
			continue
		}
		lint(tb, family)
		fmt.Fprintf(&out, "%s\t%s\t%s\t%s\t%s\n", family.GetName(), strings.ToLower(family.GetType().String()),
			strings.Join(labels(family), ", "), unit(family.GetName()), family.GetHelp())
	}
	golden.Check(tb, File, out.String())
}

// lint fails the test if a metric is not as Prometheus asks for.
func lint(tb testing.TB, family *dto.MetricFamily) {
	tb.Helper()
	var text bytes.Buffer
	if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
		tb.Fatal(err)
	}
	problems, err := promlint.New(&text).Lint()
	if err != nil {
		tb.Fatal(err)
	}
	for _, problem := range problems {
		tb.Errorf("%s: %s", problem.Metric, problem.Text)
	}
	if strings.HasSuffix(family.GetName(), "_id") || strings.Contains(family.GetName(), "_id_") {
		tb.Errorf("%s has an ID in its name", family.GetName())
	}
}

// labels returns the names of the labels of a metric.
func labels(family *dto.MetricFamily) []string {
	var names []string
	for _, metric := range family.GetMetric() {
		for _, label := range metric.GetLabel() {
			if !slices.Contains(names, label.GetName()) {
				names = append(names, label.GetName())
			}
		}
	}
	slices.Sort(names)
	return names
}

// unit returns the unit that a name ends with, before _total.
func unit(name string) string {
	name = strings.TrimSuffix(name, "_total")
	for _, unit := range []string{"seconds", "bytes", "cores", "pods"} {
		if strings.HasSuffix(name, "_"+unit) {
			return unit
		}
	}
	return ""
}
