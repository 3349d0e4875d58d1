// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/worlds"
)

func TestDecisionName(t *testing.T) {
	id := "5f0e8c7a-1b2c-4d3e-8f90-000000000001"
	long := strings.Repeat("n", 253)
	hash := "." + strings.Repeat("0123456789abcdef", 2)
	for name, tc := range map[string]struct {
		reason           string
		policy, consumer string
		want             string // Empty if it has a hash.
	}{
		"Plain":   {"People can read it.", "cheapest", id, "cheapest." + id},
		"Points":  {"An ID may have points.", "a", "b.c", "a.b.c"},
		"Fits":    {"The longest that fits.", "a", strings.Repeat("n", 251), "a." + strings.Repeat("n", 251)},
		"Policy":  {"A policy with a point could be another one.", "a.b", "c", ""},
		"Long":    {"One more is too long.", "a", strings.Repeat("n", 252), ""},
		"Longest": {"So are the longest names.", long, long, ""},
		"Dashes":  {"It is cut where no name may end.", strings.Repeat("n", 219) + "--.--" + "n", id, ""},
		"Hash":    {"What looks like a hash could be one.", "a", "b" + hash, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := v1alpha1.DecisionName(tc.policy, tc.consumer)
			if errs := validation.IsDNS1123Subdomain(got); len(errs) > 0 {
				t.Errorf("%s\n%s: %v", tc.reason, got, errs)
			}
			if tc.want != "" && got != tc.want || tc.want == "" && (got == tc.policy+"."+tc.consumer || !strings.HasPrefix(got, tc.policy[:1])) {
				t.Errorf("%s\nDecisionName(%q, %q) = %q, want %q", tc.reason, tc.policy, tc.consumer, got, tc.want)
			}
		})
	}
}

// TestAnyDecisionName holds that the names of different pairs differ and are names, for names that are all much alike.
func TestAnyDecisionName(t *testing.T) {
	worlds.Run(t, func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		name := func() string {
			parts := []string{"a"}
			for range r.IntN(6) {
				parts = append(parts, []string{".a", "-a", "a", "." + strings.Repeat("a", 32), strings.Repeat("a", 70),
					strings.Repeat("-", 30) + "a"}[r.IntN(6)])
			}
			text := strings.Join(parts, "")
			return strings.TrimRight(text[:min(len(text), 253)], "-.")
		}
		seen := map[string][2]string{}
		for range 100 {
			pair := [2]string{name(), name()}
			got := v1alpha1.DecisionName(pair[0], pair[1])
			if errs := validation.IsDNS1123Subdomain(got); len(errs) > 0 {
				t.Fatalf("DecisionName(%q, %q) = %q: %v", pair[0], pair[1], got, errs)
			}
			if other, is := seen[got]; is && other != pair {
				t.Fatalf("%q is the name for %q and for %q", got, pair, other)
			}
			seen[got] = pair
			// A name that was made does not lead to one for another pair either.
			if policy, consumer, found := strings.Cut(got, "."); found && [2]string{policy, consumer} != pair &&
				v1alpha1.DecisionName(policy, consumer) == got {
				t.Fatalf("%q is the name for %q, and for %q and %q", got, pair, policy, consumer)
			}
		}
	})
}

func TestIsOf(t *testing.T) {
	policy := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "1"}}
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.PlacementDecision)
		want   bool
	}{
		"Its":      {reason: "All is as it is to be.", change: func(*v1alpha1.PlacementDecision) {}, want: true},
		"Name":     {reason: "Another name.", change: func(d *v1alpha1.PlacementDecision) { d.Name = "p.d" }},
		"Policy":   {reason: "Another policy.", change: func(d *v1alpha1.PlacementDecision) { d.Policy = "q" }},
		"Consumer": {reason: "Another consumer.", change: func(d *v1alpha1.PlacementDecision) { d.Consumer = "d" }},
		"Owner":    {reason: "An earlier policy.", change: func(d *v1alpha1.PlacementDecision) { d.OwnerReferences[0].UID = "0" }},
		"Orphan":   {reason: "No policy.", change: func(d *v1alpha1.PlacementDecision) { d.OwnerReferences = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			d := &v1alpha1.PlacementDecision{Policy: "p"}
			d.Name, d.Consumer = v1alpha1.DecisionName("p", "c"), "c"
			d.OwnerReferences = []metav1.OwnerReference{{Kind: "PlacementPolicy", Name: "p", UID: "1", Controller: new(true)}}
			tc.change(d)
			if got := d.IsOf(policy, "c"); got != tc.want {
				t.Errorf("%s\nIsOf() = %t", tc.reason, got)
			}
		})
	}
}
