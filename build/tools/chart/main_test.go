// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../../.."

// TestGenerated holds that the charts are what make generate writes: they cannot differ from the manifests and the values.
func TestGenerated(t *testing.T) {
	for _, c := range charts {
		t.Run(c.folder, func(t *testing.T) {
			want, err := c.generate(root)
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range want {
				if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != text {
					t.Errorf("%s is stale: make generate (%v)", name, err)
				}
			}
			there, err := filepath.Glob(filepath.Join(root, c.generated(), "*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range there {
				if relative, _ := filepath.Rel(root, name); want[relative] == "" {
					t.Errorf("nothing generates %s any more: make generate", relative)
				}
			}
		})
	}
}

// TestComponents holds that the components are what make generate writes, and nothing else.
func TestComponents(t *testing.T) {
	want, err := componentsOf(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != text {
			t.Errorf("%s is stale: make generate (%v)", name, err)
		}
	}
	there := 0
	if err := filepath.WalkDir(filepath.Join(root, componentFolder), func(_ string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			there++
		}
		return err
	}); err != nil || there != len(want) || there != 6 {
		t.Errorf("%d files are there, and %d generated: %v", there, len(want), err)
	}
}

func TestTemplate(t *testing.T) {
	const manifest = `# Why it is there.
metadata:
  name: a
  namespace: liqo
  labels:
    app.kubernetes.io/name: liqo-broker
spec:
  selector:
    app.kubernetes.io/name: liqo-broker
  text: "{{ not for Helm }}"
`
	const want = `{{- /* Generated from deploy/a.yaml by make generate. */}}
{{- if .Values.a.enabled }}
# Why it is there.
metadata:
  name: a
  namespace: {{ .Values.liqo.namespace }}
  labels:
    app.kubernetes.io/name: liqo-broker
    {{- include "liqo-broker.labels" . | nindent 4 }}
spec:
  selector:
    app.kubernetes.io/name: liqo-broker
  text: "{{ "{{" }} not for Helm }}"
{{- end }}
`
	c := chart{labels: "liqo-broker.labels", substitutes: []substitute{inLiqo}}
	if got := c.template(source{when: ".Values.a.enabled"}, "deploy/a.yaml", manifest); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTable(t *testing.T) {
	cases := map[string]struct {
		reason, values, want, err string
	}{
		"Nested": {
			reason: "A value has its path.", values: "a:\n  # -- What it is,\n  # and why.\n  b: 1\n",
			want: "| `a.b` | `1` | What it is, and why. |\n",
		},
		"Whole": {
			reason: "A comment documents all that is below.", values: "# -- Both.\na:\n  b: 1\n  c: x\n",
			want: "| `a` | `{\"b\":1,\"c\":\"x\"}` | Both. |\n",
		},
		"Bar":  {reason: "A bar does not end the cell.", values: "# -- a|b\na: true\n", want: "| `a` | `true` | a\\|b |\n"},
		"Bare": {reason: "Each value is documented.", values: "a:\n  b: 1\n", err: "a.b has no comment"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := table([]byte(tc.values))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s got %v, want %s", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil || !strings.HasSuffix(got, "|---|---|---|\n"+tc.want) {
				t.Errorf("%s got %v\n%s\nwant\n%s", tc.reason, err, got, tc.want)
			}
		})
	}
}
