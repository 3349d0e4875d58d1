// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

func TestParseMapping(t *testing.T) {
	for _, known := range []Mapping{MappingDefault, MappingSame} {
		if got, err := ParseMapping(string(known)); err != nil || got != known {
			t.Errorf("ParseMapping(%s) = %q, %v", known, got, err)
		}
	}
	for _, unknown := range []string{"Any", "", "defaultname", "SelectedName"} {
		if got, err := ParseMapping(unknown); err == nil || got != "" {
			t.Errorf("ParseMapping(%q) = %q, %v, want an error", unknown, got, err)
		}
	}
}

func TestFittingMapping(t *testing.T) {
	const called = "broker-123456"
	const appended = len("-" + called)
	cases := map[string]struct {
		reason    string
		length    int
		preferred Mapping
		want      Mapping
	}{
		"Short":    {"What fits gets a name that nobody else uses.", 20, MappingDefault, MappingDefault},
		"Longest":  {"A name of 63 characters is legal.", 63 - appended, MappingDefault, MappingDefault},
		"TooLong":  {"A name of 64 characters is not.", 64 - appended, MappingDefault, MappingSame},
		"Full":     {"The longest namespace that a consumer can have here keeps its name.", 63, MappingDefault, MappingSame},
		"Enforced": {"What the operator asked for fits always.", 20, MappingSame, MappingSame},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := FittingMapping(tc.preferred, strings.Repeat("n", tc.length), called); got != tc.want {
				t.Errorf("%s\nFittingMapping() = %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestSelectedBy(t *testing.T) {
	of := func(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	forged := ForgeSelector([]cluster.ID{"b", "a"})
	cases := map[string]struct {
		reason   string
		selector corev1.NodeSelector
		want     []cluster.ID
	}{
		"Forged": {"What the broker writes it reads, in order.", forged, []cluster.ID{"a", "b"}},
		"Empty":  {"It names nobody, though Liqo takes all.", corev1.NodeSelector{}, nil},
		"Others": {"Other labels, and those that are not to be there, name nobody.", corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				of("zone", corev1.NodeSelectorOpIn, "a"), of(LabelRemoteClusterID, corev1.NodeSelectorOpNotIn, "a"),
			}}},
		}, nil},
		"Twice": {"Each counts once.", corev1.NodeSelector{NodeSelectorTerms: append(slices.Clone(forged.NodeSelectorTerms),
			forged.NodeSelectorTerms...)}, []cluster.ID{"a", "b"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := SelectedBy(&tc.selector); !slices.Equal(got, tc.want) {
				t.Errorf("%s\nSelectedBy() = %v, want %v", tc.reason, got, tc.want)
			}
			for _, id := range []cluster.ID{"a", "b", "c", ""} {
				if got := Selects(&tc.selector, id); got != slices.Contains(tc.want, id) {
					t.Errorf("%s\nSelects(%q) = %t", tc.reason, id, got)
				}
			}
		})
	}
}

// TestPlacing notes on which clusters new pods are placed, beside what others note.
func TestPlacing(t *testing.T) {
	both := []cluster.ID{"a", "b"}
	o := &metav1.ObjectMeta{Annotations: map[string]string{"example.com/note": "kept"}}
	for _, tc := range []struct{ set, want []cluster.ID }{
		{both, both},
		{[]cluster.ID{"b"}, []cluster.ID{"b"}},
		{[]cluster.ID{"a", "z"}, []cluster.ID{"a"}}, // One that is not selected is none.
		{nil, nil},
		{both, both},
	} {
		before := o.Annotations
		_, noted := before[AnnotationPlacing]
		NotePlacing(o, both, tc.set)
		if got := NotedPlacing(o, both); !slices.Equal(got, tc.want) {
			t.Errorf("NotedPlacing() = %v after NotePlacing(%v), want %v", got, tc.set, tc.want)
		}
		if _, still := before[AnnotationPlacing]; still != noted {
			t.Error("NotePlacing() changes what others may share")
		}
	}
	if len(o.Annotations) != 1 || !slices.Equal(both, []cluster.ID{"a", "b"}) {
		t.Errorf("annotations %v of %v, though there is nothing to note", o.Annotations, both)
	}
}
