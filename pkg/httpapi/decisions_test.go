// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// decided returns a policy and what it has decided for some consumers.
func decided(name string, consumers ...cluster.ID) []client.Object {
	p := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	objects := []client.Object{p}
	for _, c := range consumers {
		d := snapshottest.Decision(p, c, cluster.ID("of "+name))
		d.Explained = []v1alpha1.ExplainedProvider{{ID: "other", Excluded: "it costs too much"}}
		objects = append(objects, d)
	}
	return objects
}

func TestDecisions(t *testing.T) {
	cases := map[string]struct {
		reason string
		token  string
		query  string
		code   int
		want   []string // Policy and consumer.
	}{
		"All":       {reason: "In order.", token: "reader", code: http.StatusOK, want: []string{"a one", "a two", "b one"}},
		"One":       {reason: "Of one consumer.", token: "reader", query: "?consumer=two", code: http.StatusOK, want: []string{"a two"}},
		"Nobody":    {reason: "An unknown consumer has none.", token: "reader", query: "?consumer=three", code: http.StatusOK, want: []string{}},
		"Twice":     {reason: "Which one is meant cannot be known.", token: "reader", query: "?consumer=one&consumer=two", code: http.StatusBadRequest},
		"Empty":     {reason: "Nobody has no ID.", token: "reader", query: "?consumer=", code: http.StatusBadRequest},
		"Anonymous": {reason: "Who may toggle without a name may not read without one.", code: http.StatusUnauthorized},
		"Forbidden": {reason: "Who may toggle may not read for that.", token: "good", code: http.StatusForbidden},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			// What its name or its owner belies is no decision of the policy.
			misnamed, gone := decided("b", "two")[1], decided("gone", "one")[1]
			misnamed.SetName("misnamed")
			c := newClient(t, reviews(), slices.Concat(decided("b", "one"), decided("a", "two", "one"), []client.Object{misnamed, gone})...)
			h := newHandler(t, Config{Client: c, Orchestrator: true, AnonymousToggle: true})
			w := call(t, h, http.MethodGet, "/api/decisions"+tc.query, "Authorization", "Bearer "+tc.token)
			if w.Code != tc.code {
				t.Fatalf("%s\n%d %s, want %d", tc.reason, w.Code, w.Body, tc.code)
			}
			if tc.code != http.StatusOK {
				return
			}
			var answer []decision
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, d := range answer {
				got = append(got, d.Policy+" "+d.Consumer)
				if len(d.Chosen) != 1 || d.Chosen[0].ID != "of "+d.Policy || len(d.Explained) != 1 || d.Explained[0].Excluded == "" {
					t.Errorf("%s\nwithout its reasons: %+v", tc.reason, d)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
		})
	}
	h := newHandler(t, Config{Client: newClient(t, reviews()), Catalog: true})
	if w := call(t, h, http.MethodGet, "/api/decisions", "Authorization", "Bearer reader"); w.Code != http.StatusNotFound {
		t.Errorf("a catalog answers %d %s", w.Code, w.Body)
	}
}
