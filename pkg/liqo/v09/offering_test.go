// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"os"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// TestProtect matches virtual nodes of this project's virtual kubelet and of Liqo's own, as Liqo does.
func TestProtect(t *testing.T) {
	virtual := corev1.NodeSelectorRequirement{
		Key: liqo.LabelNodeType, Operator: corev1.NodeSelectorOpIn, Values: []string{liqo.NodeTypeVirtual},
	}
	one := corev1.NodeSelectorRequirement{Key: liqo.LabelRemoteClusterID, Operator: corev1.NodeSelectorOpIn, Values: []string{"one"}}
	other := corev1.NodeSelectorRequirement{Key: liqo.LabelRemoteClusterID, Operator: corev1.NodeSelectorOpIn, Values: []string{"other"}}
	term := func(all ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: all}
	}
	byName := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"node"}},
	}}
	cases := map[string]struct {
		reason  string
		terms   []corev1.NodeSelectorTerm
		changed bool
		ours    bool // Whether a node of our virtual kubelet is selected.
	}{
		"All":     {reason: "Without a selector Liqo takes all clusters.", changed: true, ours: true},
		"Virtual": {reason: "All virtual nodes are too many.", terms: []corev1.NodeSelectorTerm{term(virtual)}, changed: true, ours: true},
		"Two": {
			reason: "Each alternative is one.", terms: []corev1.NodeSelectorTerm{term(other), term(virtual)}, changed: true, ours: true,
		},
		"Name":      {reason: "A node may be selected by its name.", terms: []corev1.NodeSelectorTerm{byName}, changed: true, ours: true},
		"Narrow":    {reason: "What was not selected is not selected.", terms: []corev1.NodeSelectorTerm{term(other)}, changed: true},
		"None":      {reason: "An alternative that selects nothing goes on to.", terms: []corev1.NodeSelectorTerm{{}}},
		"Protected": {reason: "What is protected stays.", terms: []corev1.NodeSelectorTerm{term(one, signed)}, ours: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &NamespaceOffloading{}
			o.Spec.ClusterSelector.NodeSelectorTerms = tc.terms
			if got := Protect(o); got != tc.changed {
				t.Errorf("%s\nProtect() = %t, want %t", tc.reason, got, tc.changed)
			}
			if Protect(o) {
				t.Errorf("%s\nProtect() changes what it has changed", tc.reason)
			}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
				Name: "node", Labels: map[string]string{liqo.LabelNodeType: liqo.NodeTypeVirtual, liqo.LabelRemoteClusterID: "one"},
			}}
			if selects(o, node) {
				t.Errorf("%s\na node of Liqo's virtual kubelet is selected", tc.reason)
			}
			node.Labels[liqo.LabelVirtualKubelet] = "v1"
			if got := selects(o, node); got != tc.ours {
				t.Errorf("%s\na node of ours is selected: %t, want %t", tc.reason, got, tc.ours)
			}
		})
	}
}

// selects matches a node as Liqo does, for the operators that the cases use.
func selects(o *NamespaceOffloading, node *corev1.Node) bool {
	meets := func(e corev1.NodeSelectorRequirement, value string, has bool) bool {
		return has && (e.Operator == corev1.NodeSelectorOpExists || slices.Contains(e.Values, value))
	}
	return len(o.Spec.ClusterSelector.NodeSelectorTerms) == 0 ||
		slices.ContainsFunc(o.Spec.ClusterSelector.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
			for _, e := range term.MatchExpressions {
				if value, has := node.Labels[e.Key]; !meets(e, value, has) {
					return false
				}
			}
			for _, e := range term.MatchFields {
				if !meets(e, node.Name, true) {
					return false
				}
			}
			return len(term.MatchExpressions)+len(term.MatchFields) > 0
		})
}

// TestDeployedOffering reads what the README tells people to apply.
func TestDeployedOffering(t *testing.T) {
	manifest, err := os.ReadFile("../../../deploy/liqo/namespaceoffloading.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var o NamespaceOffloading
	if err := yaml.UnmarshalStrict(manifest, &o); err != nil {
		t.Fatal(err)
	}
	if o.Namespace != liqo.DefaultNamespace || o.Name != liqo.OffloadingName || Protect(&o) {
		t.Errorf("NamespaceOffloading %s/%s selects virtual nodes of Liqo's virtual kubelet", o.Namespace, o.Name)
	}
}
