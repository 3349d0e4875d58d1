// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
)

// TestUnpack changes a release as the lab needs it: everything is there that is to be changed, and examples stay what they are.
func TestUnpack(t *testing.T) {
	r := &Reader{f: &Federation{root: "../.."}}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := r.unpack("lab-1"); err != nil {
		t.Fatal(err)
	}
	text := func(file string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(r.folder, "deploy", file))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for file, want := range map[string]string{
		"connector/kustomization.yaml": "newTag: lab-1", "chart-connector/Chart.yaml": "\nversion: 0.1.0\nappVersion: lab-1\n",
		"chart-connector/values.yaml": "\nshare: 90\n",
	} {
		if !strings.Contains(text(file), want) {
			t.Errorf("deploy/%s has no %q", file, want)
		}
	}
	offer := &connectorv1alpha1.Offer{}
	if err := yaml.UnmarshalStrict([]byte(text("examples/trade/offer.yaml")), offer); err != nil {
		t.Fatal(err)
	}
	small, elastic := offer.Spec.Plans[0], offer.Spec.Plans[1]
	if cpu := small.Resources["cpu"]; cpu.String() != "250m" || small.Price.Amount != "0.05" {
		t.Errorf("plan small is %+v", small)
	}
	if step := elastic.Range.Step["memory"]; step.String() != "128Mi" {
		t.Errorf("plan elastic is %+v", elastic)
	}
	if err := r.Edit("deploy/examples/trade/offer.yaml", "no such text", ""); err == nil {
		t.Error("what is not there is replaced")
	}
}

// TestReplacedIsInPages holds that what the lab replaces in commands is in the pages.
func TestReplacedIsInPages(t *testing.T) {
	f := &Federation{root: "../.."}
	var all strings.Builder
	for _, page := range []string{"buyer", "provider", "operator"} {
		text, err := os.ReadFile(f.path("docs", "trade", page+".md"))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for i, text := range replaced("lab-1") {
		if i%2 == 0 && !strings.Contains(all.String(), text) {
			t.Errorf("no page says %q", text)
		}
	}
}
