// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placementpolicy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

// TestBoundToNamespaces decides for everybody who may have such a namespace.
func TestBoundToNamespaces(t *testing.T) {
	bound := func(consumers ...string) *v1alpha1.PlacementPolicy {
		p := cheapest()
		p.Spec.AppliesTo = v1alpha1.AppliesTo{
			Scope: v1alpha1.ScopeNamespaces, Consumers: consumers, Namespaces: &v1alpha1.NamespaceBinding{Names: []string{"shop"}},
		}
		return p
	}
	objects := []client.Object{consumer("c"), consumer("d"), provider("a", "1")}
	for _, tc := range []struct {
		policy *v1alpha1.PlacementPolicy
		want   map[string]string
	}{
		{bound(), map[string]string{"c": "a", "d": "a"}},
		{bound("d"), map[string]string{"d": "a"}},
	} {
		h := begin(t, append(objects, tc.policy)...)
		h.decide(0)
		if diff := cmp.Diff(tc.want, h.chosen()); diff != "" {
			t.Errorf("with the consumers %v: -want +got\n%s", tc.policy.Spec.AppliesTo.Consumers, diff)
		}
	}

	senseless := bound()
	senseless.Spec.AppliesTo.Namespaces.Selector = &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "level", Operator: "Like"}},
	}
	if p, _ := begin(t, append(objects, senseless)...).decide(0); condition(p) != "False InvalidCriteria" {
		t.Errorf("a selector that nobody can mean: condition %s", condition(p))
	}
}
