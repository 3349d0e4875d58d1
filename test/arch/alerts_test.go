// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

// alert is a rule of deploy/monitoring.
type alert struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

// alerts reads the alerts, by name.
func alerts(t *testing.T) map[string]alert {
	t.Helper()
	byName := map[string]alert{}
	for _, program := range []string{"broker", "connector", "registry"} {
		var rules struct{ Groups []struct{ Rules []alert } }
		file := "deploy/monitoring/rules-" + program + ".yaml"
		read(t, file, &rules)
		before := len(byName)
		for _, group := range rules.Groups {
			for _, rule := range group.Rules {
				byName[rule.Alert] = rule
			}
		}
		if len(byName) == before {
			t.Fatalf("%s has no alerts", file)
		}
	}
	return byName
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// TestAlerts lets Prometheus' own tool decide when the alerts fire, and holds that each has a case in which it does, and one in which
// it does not.
func TestAlerts(t *testing.T) {
	out, err := exec.Command("promtool", "test", "rules", filepath.Join(root, "deploy/monitoring/tests.yaml")).CombinedOutput()
	if err != nil {
		t.Errorf("promtool (of Debian's package prometheus: make deps): %v\n%s", err, out)
	}
	var tests struct {
		Tests []struct {
			AlertRuleTest []struct {
				AlertName string `json:"alertname"`
				ExpAlerts []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	read(t, "deploy/monitoring/tests.yaml", &tests)
	fires, stays := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		for _, tc := range test.AlertRuleTest {
			if len(tc.ExpAlerts) > 0 {
				fires[tc.AlertName] = true
			} else {
				stays[tc.AlertName] = true
			}
		}
	}
	for name := range alerts(t) {
		if !fires[name] || !stays[name] {
			t.Errorf("%s has a case in which it fires: %t, and one in which it does not: %t", name, fires[name], stays[name])
		}
	}
}

// TestAlertsAreAboutStates holds that the alerts are about states that a Provider can have. That they are about metrics which programs
// have, test/reference holds.
func TestAlertsAreAboutStates(t *testing.T) {
	state := regexp.MustCompile(`state=~? ?"([A-Za-z|]+)"`)
	for name, rule := range alerts(t) {
		for _, found := range state.FindAllStringSubmatch(rule.Expr, -1) {
			for reason := range strings.SplitSeq(found[1], "|") {
				if !slices.Contains(v1alpha1.ProviderStates(), reason) {
					t.Errorf("%s is about the state %s, which no Provider has", name, reason)
				}
			}
		}
	}
}

// TestAlertsHaveRunbooks holds that whoever is woken up finds what to do.
func TestAlertsHaveRunbooks(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/runbooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^## (LiqoBroker\w+)$`).FindAllStringSubmatch(string(page), -1) {
		described[found[1]] = true
	}
	all := alerts(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(described))); diff != "" {
		t.Errorf("docs/runbooks.md: -alerts +paragraphs\n%s", diff)
	}
	for name, rule := range all {
		if !strings.HasSuffix(rule.Annotations["runbook_url"], "/docs/runbooks.md#"+strings.ToLower(name)) {
			t.Errorf("%s leads to %q", name, rule.Annotations["runbook_url"])
		}
		if severity := rule.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s has the severity %q", name, severity)
		}
		if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("%s does not say what is wrong", name)
		}
	}
}
