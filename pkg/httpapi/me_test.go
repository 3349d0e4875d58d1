// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
	"github.com/capacitorset/liqo-broker/pkg/shown/showntest"
)

// kindNames are all kinds but some.
func kindNames(but ...string) []string {
	var names []string
	for _, kind := range shown.Kinds() {
		if !slices.Contains(but, string(kind)) {
			names = append(names, string(kind))
		}
	}
	return names
}

// TestMe asks who callers are, and what they may do.
func TestMe(t *testing.T) {
	s, ctx := serve(t, nil, showntest.World()...), t.Context()
	for token, tc := range map[string]struct {
		may   []string // Nil for all.
		lacks []string // The kinds.
	}{
		"operator":         {},
		"somebody":         {may: []string{}, lacks: kindNames()},
		"update/providers": {may: []string{"update providers"}, lacks: kindNames()},
		"list/consumers":   {may: []string{"list consumers"}, lacks: kindNames()},
		"watch/workloads":  {may: []string{"watch workloads"}, lacks: kindNames("workloads", "flows")},
		"watch/consumers":  {may: []string{"watch consumers"}, lacks: kindNames("consumers", "offers")},
	} {
		a := ok(s.as(t, token, nil).GetMeWithResponse(ctx))
		if a.JSON200 == nil {
			t.Fatalf("%s: %d %s", token, a.StatusCode(), a.Body)
		}
		if tc.may == nil {
			for _, right := range told() {
				tc.may = append(tc.may, may(right))
			}
		}
		var lacks []string
		for _, kind := range a.JSON200.Kinds {
			if kind.Missing == nil {
				continue
			}
			if want := "watch " + readers()[feed.Kind(kind.Kind)].resource; !slices.Equal(*kind.Missing, []string{want}) {
				t.Errorf("%s: to watch %s lack %q, want %q", token, kind.Kind, *kind.Missing, want)
			}
			lacks = append(lacks, kind.Kind)
		}
		if a.JSON200.Name != token || len(a.JSON200.Kinds) != len(shown.Kinds()) || a.JSON200.Version == nil || a.JSON200.ReadOnly != nil {
			t.Errorf("%s: %s", token, a.Body)
		}
		if diff := cmp.Diff(tc.may, a.JSON200.May); diff != "" {
			t.Errorf("%s may (-want +got):\n%s", token, diff)
		}
		if diff := cmp.Diff(tc.lacks, lacks); diff != "" {
			t.Errorf("%s cannot watch (-want +got):\n%s", token, diff)
		}
	}
	for token, code := range map[string]int{"": http.StatusUnauthorized, "unknown": http.StatusUnauthorized} {
		a, err := s.as(t, token, nil).GetMeWithResponse(ctx)
		want(t, "Nobody has no rights.", a, err, code)
	}
}
