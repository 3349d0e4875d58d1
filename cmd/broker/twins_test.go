// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

var (
	// twinMeant finds where a manifest speaks of namespaces that name a cluster: a selector, in both styles of YAML, or an expression.
	twinMeant = regexp.MustCompile(`key:\s*liqo\.io/remote-cluster-id\s*,?\s*operator:\s*Exists\b|key == 'liqo\.io/remote-cluster-id'\)`)
	// twinSaid finds where it goes on to leave out tenant namespaces, or most of what is in them.
	twinSaid = regexp.MustCompile(`^[\s,{}-]*key:\s*liqo\.io/tenant-namespace\s*,?\s*operator:\s*DoesNotExist\b|` +
		`^ &&\s+\(?!namespaceObject\.metadata\.\?labels\.orValue\(\{\}\)\.exists\(key, key == 'liqo\.io/tenant-namespace'\)`)
)

// TestTwinsInManifests holds that what deploy/ and the charts say of twin namespaces is not about tenant namespaces of Liqo 1.x, in which
// Liqo's own pods run: no virtual kubelet and no gateway starts that is taken for a pod of a consumer.
func TestTwinsInManifests(t *testing.T) {
	places := map[string]int{}
	err := filepath.WalkDir("../../deploy", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		top, _, _ := strings.Cut(filepath.ToSlash(strings.TrimPrefix(name, filepath.Clean("../../deploy")+"/")), "/")
		for _, at := range twinMeant.FindAllIndex(text, -1) {
			places[top]++
			if !twinSaid.Match(text[at[1]:]) {
				t.Errorf("%s:%d takes tenant namespaces of Liqo 1.x for twins", name, 1+strings.Count(string(text[:at[0]]), "\n"))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// What deploy/ says, the charts say too.
	want := map[string]int{"admission": 2, "broker": 6, "guard": 8, "chart": 17, "chart-connector": 8, "transit": 1}
	if diff := cmp.Diff(want, places); diff != "" {
		t.Errorf("how often each folder speaks of twins: -want +got\n%s", diff)
	}
}

// askedWithin reports whether a selector lets the API server ask about what is in a namespace.
func askedWithin(t *testing.T, selector *metav1.LabelSelector, namespace map[string]string) bool {
	t.Helper()
	if selector == nil {
		return true
	}
	read, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return read.Matches(labels.Set(namespace))
}

// TestTenantNamespacesOfLiqo1 asks the webhooks and policies about the namespaces of a consumer, and of Liqo 1.x for it. In the latter
// pods, their Services and their events are Liqo's own, and pass untouched.
func TestTenantNamespacesOfLiqo1(t *testing.T) {
	twin := map[string]string{"liqo.io/remote-cluster-id": "c", "kubernetes.io/metadata.name": "shop"}
	tenant := map[string]string{
		"liqo.io/remote-cluster-id": "c", "liqo.io/tenant-namespace": "true", "kubernetes.io/metadata.name": "liqo-tenant-c",
	}
	var ofConsumers []string
	// What is about certain accounts alone may be asked about everywhere.
	asked := func(name string, selector *metav1.LabelSelector, ofPods, ofAccount bool) {
		inTwin, inTenant := askedWithin(t, selector, twin), askedWithin(t, selector, tenant)
		if inTenant && ofPods && !ofAccount {
			t.Errorf("%s is asked about Liqo's own pods", name)
		}
		if inTwin && !inTenant {
			ofConsumers = append(ofConsumers, strings.TrimSuffix(name, ".brokering.liqo.io"))
			read, err := metav1.LabelSelectorAsSelector(selector)
			if err != nil || read.String() != liqo.TwinSelector().String() {
				t.Errorf("%s is asked in namespaces with %s, %v: those of consumers have %s", name, read, err, liqo.TwinSelector())
			}
		}
	}
	for _, w := range slices.Concat(webhooksOf(t, "broker"), webhooksOf(t, "guard")) {
		asked(w.Name, w.NamespaceSelector, slices.ContainsFunc(w.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
			return slices.Contains(r.APIGroups, "")
		}), false)
	}
	for name, policy := range policies(t) {
		constraints := policy.MatchConstraints
		ofPods := slices.ContainsFunc(constraints.ResourceRules, func(r admissionregistrationv1beta1.NamedRuleWithOperations) bool {
			return slices.Contains(r.APIGroups, "")
		})
		asked("policy "+name, constraints.NamespaceSelector, ofPods, len(policy.MatchConditions) > 0)
	}
	slices.Sort(ofConsumers)
	want := []string{
		"addresses", "allowance", "confine", "confine-services", "hide", "hide-nodes", "isolate", "place", "policy pod-security", "policy pods",
		"policy services", "policy twins", "relocate", "services",
	}
	if diff := cmp.Diff(want, ofConsumers); diff != "" {
		t.Errorf("what is asked about the namespaces of consumers alone: -want +got\n%s", diff)
	}
}
