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

// TestAlertsWithLiqo1 holds that an alert of a broker is about Liqo 0.9 only if what it watches is: with Liqo 1.x there are neither our
// virtual kubelets nor a remote IPAM, and nobody asks a resource plugin.
func TestAlertsWithLiqo1(t *testing.T) {
	only09 := map[string]string{
		"LiqoBrokerNotAsked":           "the resource plugin",
		"LiqoBrokerRelayRefused":       "the remote IPAM",
		"LiqoBrokerRelayShared":        "the remote IPAM",
		"LiqoBrokerSidecarDown":        "the remote IPAM",
		"LiqoBrokerEndpointsRefused":   "virtual kubelets",
		"LiqoBrokerVirtualKubeletDown": "virtual kubelets",
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/reference/metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	// Who has which metric: the daemon has the same with both lines, but for what asks.
	without := []string{"program=\"network-manager\"", "liqo-broker-network-manager", "liqo-broker-virtual-kubelet"}
	row := regexp.MustCompile("(?m)^\\| `(liqo_broker_\\w+)` \\|.*\\| ([a-z, -]+) \\|[^|]*\\|$")
	for _, found := range row.FindAllStringSubmatch(string(page), -1) {
		if !strings.Contains(found[2], "broker") && !strings.Contains(found[2], "connector") && !strings.Contains(found[2], "registry") {
			without = append(without, found[1])
		}
	}
	if len(without) < 8 {
		t.Fatalf("without Liqo 0.9 only these are missing: %q", without)
	}
	without = append(without, "liqo_broker_resource_plugin_subscribers")
	for name, rule := range alerts(t) {
		names := slices.ContainsFunc(without, func(of string) bool { return strings.Contains(rule.Expr, of) })
		if what := only09[name]; names != (what != "") {
			t.Errorf("%s is about what there is not with Liqo 1.x: %t, want what it is named for, %q\n%s", name, names, what, rule.Expr)
		}
		delete(only09, name)
	}
	if len(only09) > 0 {
		t.Errorf("there are no alerts %v", only09)
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
