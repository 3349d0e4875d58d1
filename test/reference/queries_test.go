// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// others are metrics of the libraries, of Prometheus itself and of kube-state-metrics for which alerts and dashboards ask, with their
// labels.
var others = map[string]metric{
	"up":                            {kind: "gauge"},
	"leader_election_master_status": {kind: "gauge", labels: []string{"name"}},
	"controller_runtime_reconcile_errors_total": {kind: "counter", labels: []string{"controller"}},
	"kube_deployment_status_replicas_available": {kind: "gauge", labels: []string{"namespace", "deployment"}},
}

// added are the labels that Prometheus adds to what it reads from a pod.
var added = []string{"instance", "job", "namespace", "pod"}

// query is what an alert or a panel asks a Prometheus.
type query struct{ of, expression string }

// dashboard is what of a dashboard is checked.
type dashboard struct {
	UID           string
	SchemaVersion int
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []struct {
		ID         int
		Title      string
		Type       string
		Datasource struct{ Type, UID string }
		GridPos    struct{ H, W, X, Y int }
		Targets    []struct{ RefID, Expr, LegendFormat string }
	}
}

func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "deploy/monitoring/dashboards/*.json"))
	if err != nil || len(files) < 3 {
		t.Fatalf("only %d dashboards are found: %v", len(files), err)
	}
	all := map[string]dashboard{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil { //nolint:musttag // Names differ in case only.
			t.Fatalf("%s: %v", file, err)
		}
		all[filepath.Base(file)] = d
	}
	return all
}

// ruleFiles returns the files with alerts, one for each chart.
func ruleFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "deploy/monitoring/rules-*.yaml"))
	if err != nil || len(files) != 3 {
		t.Fatalf("there are %d files with rules, %v", len(files), err)
	}
	return files
}

// queries are those of all alerts and panels.
func queries(t *testing.T) (all []query) {
	t.Helper()
	for _, file := range ruleFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var rules struct {
			Groups []struct {
				Rules []struct{ Alert, Expr string }
			}
		}
		if err := yaml.Unmarshal(text, &rules); err != nil {
			t.Fatal(err)
		}
		for _, group := range rules.Groups {
			for _, rule := range group.Rules {
				all = append(all, query{"alert " + rule.Alert, rule.Expr})
			}
		}
	}
	for name, d := range dashboards(t) {
		for _, panel := range d.Panels {
			for _, target := range panel.Targets {
				all = append(all, query{name + ": " + panel.Title, target.Expr})
			}
		}
		for _, variable := range d.Templating.List {
			if variable.Definition != "" {
				inner := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(variable.Definition)
				if inner == nil {
					t.Fatalf("%s: the variable %s asks for %q", name, variable.Name, variable.Definition)
				}
				all = append(all, query{name + ": variable " + variable.Name, "count by (" + inner[2] + ") (" + inner[1] + ")"})
			}
		}
	}
	return all
}

// TestQueriesParse lets Prometheus' own tool parse each query, as a rule that records it.
func TestQueriesParse(t *testing.T) {
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	all := queries(t)
	for i, q := range all {
		rules = append(rules, rule{"recorded:" + string(rune('a'+i/26)) + string(rune('a'+i%26)), q.expression})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "queries", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(ruleFiles(t), file) {
		if out, err := exec.Command("promtool", "check", "rules", name).CombinedOutput(); err != nil {
			t.Errorf("promtool (of Debian's package prometheus: make deps): %v\n%s", err, out)
		}
	}
}

var (
	quoted   = regexp.MustCompile(`"[^"]*"`)
	asked    = regexp.MustCompile(`\b(?:liqo_broker|leader_election|controller_runtime|kube)_\w+|\bup\b`)
	matched  = regexp.MustCompile(`(\w+)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	grouping = regexp.MustCompile(`\b(?:by|on|group_left)\s*\(([^)]*)\)`)
	parts    = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// TestQueriesAreAboutMetrics holds that alerts and dashboards ask only for metrics and labels that programs have.
func TestQueriesAreAboutMetrics(t *testing.T) {
	known := metrics(t)
	of := func(name string) (metric, bool) {
		if m, found := others[name]; found {
			return m, true
		}
		if m, found := known[name]; found && m.kind != "histogram" {
			return m, true
		}
		m, found := known[parts.ReplaceAllString(name, "")]
		m.labels = append(slices.Clone(m.labels), "le")
		return m, found && m.kind == "histogram" && parts.MatchString(name)
	}
	for _, q := range queries(t) {
		bare := quoted.ReplaceAllString(q.expression, `""`)
		labels, names := slices.Clone(added), asked.FindAllString(bare, -1)
		if len(names) == 0 {
			t.Errorf("%s asks for no metric", q.of)
		}
		for _, name := range names {
			m, found := of(name)
			if !found {
				t.Errorf("%s asks for %s, which no program has", q.of, name)
			}
			labels = append(labels, m.labels...)
		}
		for _, found := range matched.FindAllStringSubmatch(bare, -1) {
			m, _ := of(found[1])
			for _, label := range matcher.FindAllStringSubmatch(found[2], -1) {
				if !slices.Contains(m.labels, label[1]) && !slices.Contains(added, label[1]) {
					t.Errorf("%s asks for the label %s, which %s has not", q.of, label[1], found[1])
				}
			}
		}
		for _, found := range grouping.FindAllStringSubmatch(bare, -1) {
			for label := range strings.SplitSeq(found[1], ",") {
				if label = strings.TrimSpace(label); label != "" && !slices.Contains(labels, label) {
					t.Errorf("%s groups by %s, which none of its metrics has", q.of, label)
				}
			}
		}
	}
}

// TestDashboards holds that each dashboard can be imported into Grafana 10 and later, has no panel upon another one, and leaves the
// Prometheus to its user.
func TestDashboards(t *testing.T) {
	legend := regexp.MustCompile(`\{\{(\w+)\}\}`)
	for name, d := range dashboards(t) {
		if d.SchemaVersion != 39 || d.UID != "liqo-broker-"+strings.TrimSuffix(name, ".json") {
			t.Errorf("%s: version %d of the schema, and the UID %q", name, d.SchemaVersion, d.UID)
		}
		if len(d.Templating.List) == 0 || d.Templating.List[0].Name != "datasource" || d.Templating.List[0].Type != "datasource" {
			t.Errorf("%s has no variable for the datasource", name)
		}
		taken, ids := map[[2]int]string{}, map[int]bool{}
		for _, panel := range d.Panels {
			if panel.Datasource.UID != "${datasource}" || ids[panel.ID] || panel.GridPos.X+panel.GridPos.W > 24 ||
				panel.GridPos.W*panel.GridPos.H == 0 {
				t.Errorf("%s: %s has the datasource %q, the ID %d, and the place %+v", name, panel.Title, panel.Datasource.UID, panel.ID, panel.GridPos)
			}
			ids[panel.ID] = true
			for x := range panel.GridPos.W {
				for y := range panel.GridPos.H {
					at := [2]int{panel.GridPos.X + x, panel.GridPos.Y + y}
					if other, is := taken[at]; is {
						t.Fatalf("%s: %s is upon %s", name, panel.Title, other)
					}
					taken[at] = panel.Title
				}
			}
			for _, target := range panel.Targets {
				for _, label := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
					if !strings.Contains(target.Expr, label[1]) {
						t.Errorf("%s: %s names %s in its legend, which the query does not keep", name, panel.Title, label[1])
					}
				}
			}
		}
	}
}
