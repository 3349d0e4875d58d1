// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package binding_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/binding"
)

const consumer = "id-c"

// TestFollows has the policies in any order, as a cache may have them, of namespace shop of the consumer with the label level=secret.
func TestFollows(t *testing.T) {
	byDefault := func(name string) binding.Policy { return binding.Policy{Name: name, Scope: binding.Default} }
	of := func(name string, consumers ...string) binding.Policy {
		return binding.Policy{Name: name, Scope: binding.OfConsumers, Consumers: consumers}
	}
	onRequest := func(name string, consumers ...string) binding.Policy {
		return binding.Policy{Name: name, Scope: binding.OnRequest, Consumers: consumers}
	}
	bound := func(name string, n binding.Namespaces, consumers ...string) binding.Policy {
		return binding.Policy{Name: name, Scope: binding.OfNamespaces, Namespaces: n, Consumers: consumers}
	}
	shop := binding.Namespaces{Names: []string{"other", "shop"}}
	labelled := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"level": value}}
	}
	senseless := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "level", Operator: "Like"}}}
	first := func(p binding.Policy, priority int32) binding.Policy {
		p.Priority = priority
		return p
	}
	for name, tc := range map[string]struct {
		reason   string
		policies []binding.Policy
		wishes   []string
		want     string
	}{
		"None":    {"Nothing applies.", []binding.Policy{of("a", "id-x"), onRequest("s")}, nil, ""},
		"Default": {"Of two defaults the first by name applies.", []binding.Policy{byDefault("z"), byDefault("b"), of("a", "id-x")}, nil, "b"},
		"Named": {
			"Who is named does not follow the default.", []binding.Policy{byDefault("a"), of("z", consumer), of("y", "id-x", consumer)}, nil, "y",
		},
		"Wished": {
			"A wish goes before all, and of two the first by name.",
			[]binding.Policy{of("a", consumer), bound("b", shop), onRequest("s"), onRequest("r", consumer)}, []string{"s", "r"}, "r",
		},
		"NotToBeWished": {
			"Only what is there to be wished is wished.", []binding.Policy{byDefault("a"), of("n", "id-x"), onRequest("o", "id-x")},
			[]string{"n", "o", "x", ""}, "a",
		},
		"Bound": {"A namespace goes before its consumer.", []binding.Policy{of("a", consumer), bound("z", shop)}, nil, "z"},
		"BoundToOthers": {
			"A namespace of that name of another consumer is meant.", []binding.Policy{of("z", consumer), bound("a", shop, "id-x")}, nil, "z",
		},
		"BoundByLabel": {
			"A selector alone is enough.", []binding.Policy{bound("a", binding.Namespaces{Selector: labelled("secret")}), byDefault("d")}, nil, "a",
		},
		"BoundByBoth": {
			"Both must fit.", []binding.Policy{bound("a", binding.Namespaces{Names: shop.Names, Selector: labelled("public")}), byDefault("d")}, nil,
			"d",
		},
		"BoundByNothing": {"What names nothing means nothing.", []binding.Policy{bound("a", binding.Namespaces{}), byDefault("d")}, nil, "d"},
		"Senseless": {
			"A selector that nobody can mean does no harm.",
			[]binding.Policy{bound("a", binding.Namespaces{Names: shop.Names, Selector: senseless}), byDefault("d")}, nil, "d",
		},
		"Prior": {
			"The highest priority goes before the names.",
			[]binding.Policy{of("a", consumer), first(of("z", consumer), 1), first(of("y", consumer), -1)}, nil, "z",
		},
		"PriorWish": {"So it does between two wishes.", []binding.Policy{onRequest("r"), first(onRequest("s"), 1)}, []string{"s", "r"}, "s"},
		"PriorDefault": {
			"A default is not an exception, whatever its priority.", []binding.Policy{of("z", consumer), first(byDefault("a"), 1000)}, nil, "z",
		},
		"Nothing": {
			"What cannot be read applies to nothing.", []binding.Policy{{Name: "a", Consumers: []string{consumer}}, byDefault("d")}, nil, "d",
		},
	} {
		t.Run(name, func(t *testing.T) {
			twin := binding.Twin{Consumer: consumer, OriginalName: "shop", Labels: map[string]string{"level": "secret"}, Wishes: map[string]bool{}}
			for _, wish := range tc.wishes {
				twin.Wishes[wish] = true
			}
			for range 10 {
				rand.Shuffle(len(tc.policies), func(i, j int) { tc.policies[i], tc.policies[j] = tc.policies[j], tc.policies[i] })
				if got := binding.Follows(tc.policies, twin); got != tc.want {
					t.Fatalf("%s\nit follows %q, want %q", tc.reason, got, tc.want)
				}
			}
		})
	}
}

// TestMayApply asks which policies apply to some namespaces of a consumer only.
func TestMayApply(t *testing.T) {
	all := []binding.Policy{
		{Name: "default", Scope: binding.Default},
		{Name: "consumer", Scope: binding.OfConsumers, Consumers: []string{consumer}},
		{Name: "request", Scope: binding.OnRequest},
		{Name: "request-of-others", Scope: binding.OnRequest, Consumers: []string{"id-x"}},
		{Name: "bound", Scope: binding.OfNamespaces, Namespaces: binding.Namespaces{Names: []string{"shop"}}},
		{
			Name: "bound-for-others", Scope: binding.OfNamespaces, Namespaces: binding.Namespaces{Names: []string{"shop"}},
			Consumers: []string{"id-x"},
		},
	}
	var got []string
	for i := range all {
		if all[i].MayApply(consumer) {
			got = append(got, all[i].Name)
		}
	}
	if want := []string{"request", "bound"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestShadowsOf asks for policy m, between those of other names and priorities.
func TestShadowsOf(t *testing.T) {
	of := func(name string, consumers ...string) binding.Policy {
		return binding.Policy{Name: name, Scope: binding.OfConsumers, Consumers: consumers}
	}
	bound := func(name string, n binding.Namespaces, consumers ...string) binding.Policy {
		return binding.Policy{Name: name, Scope: binding.OfNamespaces, Namespaces: n, Consumers: consumers}
	}
	names := func(names ...string) binding.Namespaces { return binding.Namespaces{Names: names} }
	labelled := func(value string, names ...string) binding.Namespaces {
		return binding.Namespaces{Names: names, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"level": value}}}
	}
	byDefault := binding.Policy{Name: "m", Scope: binding.Default}
	for name, tc := range map[string]struct {
		reason string
		policy binding.Policy
		others []binding.Policy
		want   []binding.Shadow
	}{
		"Alone": {"Nothing else is there.", byDefault, nil, nil},
		"Default": {
			"One default is enough; one that is later, or of another scope, takes nothing.", byDefault,
			[]binding.Policy{{Name: "z", Scope: binding.Default}, of("a", "id-1"), {Name: "b", Scope: binding.Default}}, []binding.Shadow{{By: "b"}},
		},
		"Prior": {
			"The priority goes before the name.", byDefault, []binding.Policy{{Name: "z", Scope: binding.Default, Priority: 1},
				{Name: "b", Scope: binding.Default, Priority: -1}}, []binding.Shadow{{By: "z"}},
		},
		"Consumers": {
			"Those that both name follow the first.", of("m", "id-2", "id-1", "id-3"),
			[]binding.Policy{of("b", "id-1", "id-2"), of("c", "id-4"), of("a", "id-3")},
			[]binding.Shadow{{By: "a", Consumers: []string{"id-3"}}, {By: "b", Consumers: []string{"id-2", "id-1"}}},
		},
		"Namespaces": {
			"A name that both have is the same namespace.", bound("m", names("shop", "pay")),
			[]binding.Policy{bound("a", names("pay")), bound("b", names("x"))}, []binding.Shadow{{By: "a", Namespaces: []string{"pay"}}},
		},
		"OfSome": {
			"Of the consumers that the other one means.", bound("m", names("shop")), []binding.Policy{bound("a", names("shop"), "id-1")},
			[]binding.Shadow{{By: "a", Consumers: []string{"id-1"}, Namespaces: []string{"shop"}}},
		},
		"OfOthers": {
			"Namespaces of other consumers are others.", bound("m", names("shop"), "id-2"), []binding.Policy{bound("a", names("shop"), "id-1")}, nil,
		},
		"SomeWithLabel": {
			"Who has all of a name has those with a label.", bound("m", labelled("secret", "shop")), []binding.Policy{bound("a", names("shop"))},
			[]binding.Shadow{{By: "a", Namespaces: []string{"shop"}}},
		},
		"AllWithLabel": {
			"The same labels are the same namespaces.", bound("m", labelled("secret", "shop")), []binding.Policy{bound("a", labelled("secret"))},
			[]binding.Shadow{{By: "a"}},
		},
		"NameWithLabel": {
			"Of those with the same labels it takes the ones of its names.", bound("m", labelled("secret")),
			[]binding.Policy{bound("a", labelled("secret", "shop"))}, []binding.Shadow{{By: "a", Namespaces: []string{"shop"}}},
		},
		"MaybeWithLabel": {
			"What labels are there the policies do not tell.", bound("m", names("shop")),
			[]binding.Policy{bound("a", labelled("secret", "shop")), bound("b", labelled("secret")), bound("c", binding.Namespaces{})}, nil,
		},
		"Request": {
			"Pods say which one they want.", binding.Policy{Name: "m", Scope: binding.OnRequest},
			[]binding.Policy{{Name: "a", Scope: binding.OnRequest}}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, binding.ShadowsOf(&tc.policy, append(tc.others, tc.policy))); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
		})
	}
}
