// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package binding_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/binding"
)

const consumer = "id-c"

// TestFollows has the policies in any order, as a cache may have them, of namespace shop of the consumer with the label level=secret.
func TestFollows(t *testing.T) {
	byDefault := func(name string) binding.Policy { return binding.Policy{Name: name, Default: true} }
	of := func(name string, consumers ...string) binding.Policy {
		return binding.Policy{Name: name, Consumers: consumers}
	}
	selectable := func(name string, consumers ...string) binding.Policy {
		return binding.Policy{Name: name, Selectable: true, Consumers: consumers}
	}
	bound := func(name string, n binding.Namespaces, consumers ...string) binding.Policy {
		return binding.Policy{Name: name, Namespaces: &n, Consumers: consumers}
	}
	shop := binding.Namespaces{Names: []string{"other", "shop"}}
	labelled := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"level": value}}
	}
	senseless := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "level", Operator: "Like"}}}
	both := selectable("s")
	both.Default = true
	for name, tc := range map[string]struct {
		reason   string
		policies []binding.Policy
		wishes   []string
		want     string
	}{
		"None":           {"Nothing applies.", []binding.Policy{of("a", "id-x"), selectable("s")}, nil, ""},
		"Default":        {"Of two defaults the first by name applies.", []binding.Policy{byDefault("z"), byDefault("b"), of("a", "id-x")}, nil, "b"},
		"Named":          {"Who is named does not follow the default.", []binding.Policy{byDefault("a"), of("z", consumer), of("y", "id-x", consumer)}, nil, "y"},
		"Wished":         {"A wish goes before all, and of two the first by name.", []binding.Policy{of("a", consumer), bound("b", shop), selectable("s"), selectable("r", consumer)}, []string{"s", "r"}, "r"},
		"NotToBeWished":  {"Only what is there to be wished is wished.", []binding.Policy{byDefault("a"), of("n", "id-x"), selectable("o", "id-x")}, []string{"n", "o", "x", ""}, "a"},
		"Bound":          {"A namespace goes before its consumer.", []binding.Policy{of("a", consumer), bound("z", shop)}, nil, "z"},
		"BoundToOthers":  {"A namespace of that name of another consumer is meant.", []binding.Policy{of("z", consumer), bound("a", shop, "id-x")}, nil, "z"},
		"BoundByLabel":   {"A selector alone is enough.", []binding.Policy{bound("a", binding.Namespaces{Selector: labelled("secret")}), byDefault("d")}, nil, "a"},
		"BoundByBoth":    {"Both must fit.", []binding.Policy{bound("a", binding.Namespaces{Names: shop.Names, Selector: labelled("public")}), byDefault("d")}, nil, "d"},
		"BoundByNothing": {"What names nothing means nothing.", []binding.Policy{bound("a", binding.Namespaces{}), byDefault("d")}, nil, "d"},
		"Senseless":      {"A selector that nobody can mean does no harm.", []binding.Policy{bound("a", binding.Namespaces{Names: shop.Names, Selector: senseless}), byDefault("d")}, nil, "d"},
		"BoundDefault":   {"A binding is not a default for the rest.", []binding.Policy{{Name: "a", Default: true, Namespaces: &binding.Namespaces{Names: []string{"other"}}}}, nil, ""},
		"Both":           {"A default that may be wished is a default.", []binding.Policy{both}, nil, "s"},
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
		{Name: "default", Default: true},
		{Name: "consumer", Consumers: []string{consumer}},
		{Name: "selectable", Selectable: true},
		{Name: "selectable-by-others", Selectable: true, Consumers: []string{"id-x"}},
		{Name: "bound", Namespaces: &binding.Namespaces{Names: []string{"shop"}}},
		{Name: "bound-for-others", Namespaces: &binding.Namespaces{Names: []string{"shop"}}, Consumers: []string{"id-x"}},
	}
	var got []string
	for i := range all {
		if all[i].MayApply(consumer) {
			got = append(got, all[i].Name)
		}
	}
	if want := []string{"selectable", "bound"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
