// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// policy returns a policy.
func policy(name string, change func(*v1alpha1.PlacementPolicySpec)) *v1alpha1.PlacementPolicy {
	p := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	change(&p.Spec)
	return p
}

// decided returns objects, with what each policy among them has decided: provider b for the consumer.
func decided(objects ...client.Object) []client.Object {
	for _, o := range objects {
		if p, is := o.(*v1alpha1.PlacementPolicy); is {
			objects = append(objects, snapshottest.Decision(p, "id-c", "id-b"))
		}
	}
	return objects
}

// TestPolicy finds the policy of a namespace.
func TestPolicy(t *testing.T) {
	const namespace = "web-consumer"
	consumer := cluster.Identity{ID: "id-c", Name: "consumer"}
	byDefault := func(s *v1alpha1.PlacementPolicySpec) { s.AppliesTo.Scope = v1alpha1.ScopeDefault }
	named := func(s *v1alpha1.PlacementPolicySpec) {
		s.AppliesTo = v1alpha1.AppliesTo{Scope: v1alpha1.ScopeConsumers, Consumers: []string{"id-x", "id-c"}}
	}
	other := func(s *v1alpha1.PlacementPolicySpec) {
		s.AppliesTo = v1alpha1.AppliesTo{Scope: v1alpha1.ScopeConsumers, Consumers: []string{"id-x"}}
	}
	onRequest := func(s *v1alpha1.PlacementPolicySpec) { s.AppliesTo.Scope = v1alpha1.ScopeOnRequest }
	onRequestOfOthers := func(s *v1alpha1.PlacementPolicySpec) {
		s.AppliesTo = v1alpha1.AppliesTo{Scope: v1alpha1.ScopeOnRequest, Consumers: []string{"id-x"}}
	}
	onRequestOfOurs := func(s *v1alpha1.PlacementPolicySpec) {
		s.AppliesTo = v1alpha1.AppliesTo{Scope: v1alpha1.ScopeOnRequest, Consumers: []string{"id-c"}}
	}
	wish := func(name string) client.Object {
		return liqotest.ShadowPod(namespace, "pod-"+name, map[string]string{liqo.LabelPolicy: name})
	}
	// Decisions of policy a that are not what their name says, and one that bars.
	a := policy("a", byDefault)
	a.UID = "new"
	of := func(change func(*v1alpha1.PlacementDecision)) []client.Object {
		d := snapshottest.Decision(a, "id-c", "id-b")
		change(d)
		return []client.Object{a, d}
	}
	cases := map[string]struct {
		reason    string
		objects   []client.Object
		want      string
		undecided bool
		barred    bool
	}{
		"None": {reason: "Without a policy all providers are used.", objects: decided(policy("a", other), policy("s", onRequest))},
		"Default": {
			reason:  "The default applies, and of two the first.",
			objects: decided(policy("z", byDefault), policy("b", byDefault), policy("a", other)), want: "b",
		},
		"Named": {
			reason: "Who is named does not follow the default.", objects: decided(policy("a", byDefault), policy("z", named), policy("y", named)),
			want: "y",
		},
		"NamedLast": {
			reason: "The order of the names does not matter for that.", objects: decided(policy("a", named), policy("z", byDefault)), want: "a",
		},
		"Wished": {
			reason:  "A wish goes before what applies, and of two the first.",
			objects: decided(policy("a", named), policy("s", onRequest), policy("r", onRequestOfOurs), wish("s"), wish("r")), want: "r",
		},
		"NotToWish": {
			reason:  "Only what is there to wish can be wished.",
			objects: decided(policy("a", byDefault), policy("n", other), policy("o", onRequestOfOthers), wish("n"), wish("o"), wish("x")), want: "a",
		},
		"Undecided": {reason: "A policy may not have chosen yet.", objects: []client.Object{a}, want: "a", undecided: true},
		"Earlier": {
			reason: "An earlier policy of the name has chosen.", objects: of(func(d *v1alpha1.PlacementDecision) {
				d.OwnerReferences[0].UID = "old"
			}), want: "a", undecided: true,
		},
		"Policy": {
			reason: "Another policy has chosen, whatever the name of the " +
				"object says.", objects: of(func(d *v1alpha1.PlacementDecision) { d.Policy = "z" }), want: "a", undecided: true,
		},
		"Consumer": {
			reason: "It was chosen for another consumer.", objects: of(func(d *v1alpha1.PlacementDecision) { d.Consumer = "id-x" }), want: "a",
			undecided: true,
		},
		"Barred": {
			reason: "A policy that cannot decide may exclude " +
				"what it chose.", objects: of(func(d *v1alpha1.PlacementDecision) { d.Chosen[0].Barred = true }), want: "a", barred: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := slices.Concat(tc.objects, []client.Object{
				&v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "id-a"}}, &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "id-b"}},
			})
			r := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{}, objects...), "")
			n, err := r.Twin(t.Context(), liqotest.TwinNamespace(namespace, consumer))
			if err != nil {
				t.Fatalf("Twin(): %v", err)
			}
			got := ""
			if n.Policy != nil {
				got = n.Policy.Name
			}
			if got != tc.want || n.Snapshot.Undecided != tc.undecided {
				t.Errorf("%s\npolicy %q, undecided %t: want %q, %t", tc.reason, got, n.Snapshot.Undecided, tc.want, tc.undecided)
			}
			for _, p := range n.Snapshot.Providers {
				if want := tc.want != "" && (p.ID == "id-a" || tc.undecided); (p.Choice == placement.Unchosen) != want {
					t.Errorf("%s\nprovider %s: choice %v", tc.reason, p.ID, p.Choice)
				}
				if want := tc.barred && p.ID == "id-b"; (p.Choice == placement.Barred) != want {
					t.Errorf("%s\nprovider %s: choice %v", tc.reason, p.ID, p.Choice)
				}
			}
		})
	}
}

// TestBinding binds policies to the namespace that its consumer calls shop.
func TestBinding(t *testing.T) {
	ns := liqotest.TwinNamespace("shop-consumer-c0ffee", cluster.Identity{ID: "id-c", Name: "consumer"})
	ns.Annotations["liqo.io/original-name"] = "shop"
	ns.Labels["level"] = "secret"
	bind := func(name string, b v1alpha1.NamespaceBinding, consumers ...string) *v1alpha1.PlacementPolicy {
		return policy(name, func(s *v1alpha1.PlacementPolicySpec) {
			s.AppliesTo = v1alpha1.AppliesTo{Scope: v1alpha1.ScopeNamespaces, Namespaces: &b, Consumers: consumers}
		})
	}
	named := func(names ...string) v1alpha1.NamespaceBinding { return v1alpha1.NamespaceBinding{Names: names} }
	labelled := func(value string) v1alpha1.NamespaceBinding {
		return v1alpha1.NamespaceBinding{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"level": value}}}
	}
	both := labelled("public")
	both.Names = []string{"shop"}
	senseless := v1alpha1.NamespaceBinding{Names: []string{"shop"}, Selector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "level", Operator: "Like", Values: []string{"s"}}},
	}}
	consumers := policy("a-consumer", func(s *v1alpha1.PlacementPolicySpec) {
		s.AppliesTo = v1alpha1.AppliesTo{Scope: v1alpha1.ScopeConsumers, Consumers: []string{"id-c"}}
	})
	cases := map[string]struct {
		reason   string
		policies []client.Object
		want     string
	}{
		"Name": {
			reason: "A namespace goes before its consumer.", policies: []client.Object{consumers, bind("z", named("other", "shop"))}, want: "z",
		},
		"TwinName": {
			reason: "What the broker calls the namespace is not its name.", policies: []client.Object{consumers, bind("z", named(ns.Name))},
			want: "a-consumer",
		},
		"Label": {
			reason: "People may label the namespace on the broker.", policies: []client.Object{consumers, bind("z", labelled("secret"))}, want: "z",
		},
		"Other": {
			reason: "Another label is not meant.", policies: []client.Object{consumers, bind("z", labelled("public"))}, want: "a-consumer",
		},
		"Both": {reason: "Name and label must both fit.", policies: []client.Object{consumers, bind("z", both)}, want: "a-consumer"},
		"Stranger": {
			reason:   "A namespace of another consumer may be called the same.",
			policies: []client.Object{consumers, bind("z", named("shop"), "id-x")}, want: "a-consumer",
		},
		"Ours": {
			reason: "A list of consumers bounds the binding.", policies: []client.Object{consumers, bind("z", named("shop"), "id-c")}, want: "z",
		},
		"NotUsual": {
			reason: "What is bound to one namespace does not apply to the others.", policies: []client.Object{bind("a", named("other"), "id-c")},
		},
		"First": {
			reason: "Of two the first by name.", policies: []client.Object{bind("z", named("shop")), bind("y", labelled("secret"))}, want: "y",
		},
		"Wish": {
			reason: "A wish of the pods goes before.", policies: []client.Object{bind("a", named("shop")),
				policy("s", func(s *v1alpha1.PlacementPolicySpec) { s.AppliesTo.Scope = v1alpha1.ScopeOnRequest }),
				liqotest.ShadowPod(ns.Name, "pod", map[string]string{liqo.LabelPolicy: "s"})}, want: "s",
		},
		"Senseless": {
			reason: "A selector that nobody can mean means nothing.", policies: []client.Object{consumers, bind("b", senseless)}, want: "a-consumer",
		},
		"Empty": {
			reason: "So does a binding without names and selector.", policies: []client.Object{consumers, bind("b", v1alpha1.NamespaceBinding{})},
			want: "a-consumer",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n, err := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{}, decided(tc.policies...)...), "").Twin(t.Context(), ns)
			if err != nil {
				t.Fatalf("Twin(): %v", err)
			}
			got := ""
			if n.Policy != nil {
				got = n.Policy.Name
			}
			if got != tc.want {
				t.Errorf("%s\npolicy %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestHides asks from whose namespaces the providers are hidden.
func TestHides(t *testing.T) {
	twin := liqotest.TwinNamespace("twin", cluster.Identity{ID: "c", Name: "consumer"})
	of := func(mode v1alpha1.Mode) *v1alpha1.Consumer {
		c := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
		c.Status.Mode = mode
		return c
	}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		want    bool
	}{
		"Orchestrated": {"Who chooses providers may know them.", []client.Object{twin, of(v1alpha1.ModeOrchestrated)}, false},
		"Aggregated":   {"An aggregated consumer may not.", []client.Object{twin, of(v1alpha1.ModeAggregated)}, true},
		"NoMode":       {"Nor one that is not served yet.", []client.Object{twin, of("")}, true},
		"NoConsumer":   {"Nor one that nobody knows.", []client.Object{twin}, true},
		"NoNamespace":  {"Nor whoever has a namespace that nobody knows.", nil, true},
		"NoTwin":       {"Nor who is no consumer.", []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "twin"}}}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{}, tc.objects...), "")
			if got, err := r.Hides(t.Context(), "twin"); got != tc.want || err != nil {
				t.Errorf("%s\nHides() = %t, %v", tc.reason, got, err)
			}
		})
	}
}
