// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/program"
)

// TestSorts sorts lists by fields of what they print for programs: amounts by how much they are, texts by their letters, and what has
// nothing first.
func TestSorts(t *testing.T) {
	for line, want := range map[string]string{
		"providers -o name --sort-by=.status.free.cpu":             "cccc bbbb aaaa",
		"providers -o name --sort-by={.status.offered.memory}":     "cccc bbbb aaaa",
		"providers -o name --sort-by=status.clusterName":           "aaaa cccc bbbb",
		"providers -o name --sort-by={.status.kpis[0].value}":      "cccc bbbb aaaa",
		"providers -o name --sort-by={.metadata.name}":             "aaaa bbbb cccc",
		"consumers -o name --sort-by=.spec.scheduling":             "dddd eeee",
		"consumers -o name --sort-by=.metadata.creationTimestamp":  "eeee dddd",
		"consumers -o name -l nobody --sort-by=.spec.scheduling":   "",
		"consumers -o name rome --sort-by=.status.offered.nothing": "",
	} {
		out, _, err := newCLI(t, federation()...).run(t, line)
		var ids []string
		for name := range strings.FieldsSeq(out) {
			ids = append(ids, name[strings.LastIndex(name, "-")+1:])
		}
		if unknown := strings.HasSuffix(line, "nothing"); strings.Join(ids, " ") != want || unknown != (err != nil) {
			t.Errorf("%s: %v, %v, want %s", line, ids, err, want)
		}
	}
	for line, want := range map[string]string{
		"where -A -o jsonpath={[*].pod} --sort-by=.namespace":                     "x web-1 web-2",
		"where -A -o jsonpath={[*].pod} --sort-by=.provider.name":                 "web-2 x web-1",
		"contracts -o jsonpath={[*].name} --sort-by=.name":                        "nightly s-1",
		"contracts -o jsonpath={[*].name} --sort-by=.sold":                        "nightly s-1",
		"offers -o jsonpath={[*].price.amount} --sort-by=.price.amount":           "0.1 0.25",
		"offers -o jsonpath={[*].price.amount} --sort-by=.plan.id":                "0.25 0.1",
		"catalog -o jsonpath={[0].name} --sort-by=.id":                            "self",
		"registry -o jsonpath={.items[*].metadata.name} --sort-by=.metadata.name": "eu",
	} {
		if out, _, err := newCLI(t, append(market(t), workload()...)...).run(t, line); err != nil || out != want {
			t.Errorf("%s: %v, %q, want %q", line, err, out, want)
		}
	}
}

// TestSortsEachList has each command that prints a table sort it, and refuse a field that nothing has, and what is no path.
func TestSortsEachList(t *testing.T) {
	lists := 0
	for _, command := range below(newCLI(t).root(t)) {
		if command.Flags().Lookup("no-headers") == nil {
			continue
		}
		lists++
		line := strings.TrimPrefix(command.CommandPath(), command.Root().CommandPath()+" ")
		for _, line := range []string{line, map[string]string{"offers": "offers --own", "where": "where -A"}[line]} {
			if line == "" {
				continue
			}
			c := newCLI(t, append(market(t), workload()...)...)
			for _, format := range []string{"", " -o json"} {
				if out, _, err := c.run(t, line+format+" --sort-by=.nothing.here"); err == nil || out != "" ||
					!strings.Contains(err.Error(), "--sort-by=.nothing.here: none of these has the field") {
					t.Errorf("%s%s: %q, %v", line, format, out, err)
				}
			}
			if _, _, err := c.run(t, line+" --sort-by={.a[}"); program.ExitCode(err) != program.ExitUsage {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
	if lists < 6 {
		t.Errorf("%d commands print lists", lists)
	}
}
