// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// TestGroups chooses regions instead of providers.
func TestGroups(t *testing.T) {
	criteria := Criteria{Weights: map[string]int{"price": -1}, Max: 1, Group: "region", Margin: 20, Lasting: time.Minute}
	c, err := New(criteria)
	if err != nil {
		t.Fatalf("New(): %v", err)
	}
	price := func(id cluster.ID, region string, value float64) Provider {
		return provider(id, region, map[string]float64{"price": value})
	}
	nowhere := price("0", "", 0)
	delete(nowhere.Labels, "region")
	providers := []Provider{nowhere, price("a", "north", 5), price("b", "south", 1), price("c", "south", 9), price("d", "west", 3)}
	got, err := c.Choose(now, providers, Memory{})
	if err != nil || !slices.Equal(got.Chosen, []cluster.ID{"b", "c"}) {
		t.Errorf("chosen %v, %v: want the region of the cheapest", got.Chosen, err)
	}
	if chosen, passed := c.Count(got.Ranking, got.Chosen); chosen != 1 || passed != 3 {
		t.Errorf("%d regions of %d are chosen, want 1 of 3", chosen, passed)
	}
	if last := got.Ranking[4]; last.ID != "0" || last.Excluded != "no label region" {
		t.Errorf("without a region: %+v", last)
	}
	if got, err = c.Limited(2).Choose(now, providers, got.Memory); err != nil || !slices.Equal(got.Chosen, []cluster.ID{"b", "c", "d"}) {
		t.Errorf("two regions: chosen %v, %v", got.Chosen, err)
	}
	providers = append(providers, price("e", "west", 9))
	if got, err = c.Limited(2).Choose(now, providers, got.Memory); err != nil || !slices.Equal(got.Chosen, []cluster.ID{"b", "c", "d", "e"}) {
		t.Errorf("one more in a chosen region: chosen %v, %v", got.Chosen, err)
	}
	if got, err = c.Choose(now, providers, got.Memory); err != nil || !slices.Equal(got.Chosen, []cluster.ID{"b", "c"}) {
		t.Errorf("one region again: chosen %v, %v", got.Chosen, err)
	}
	for i := range providers {
		providers[i].Labels = nil
	}
	if _, err = c.Choose(now, providers, got.Memory); err == nil {
		t.Error("something was chosen where nobody has a region")
	}
	if _, err := New(Criteria{Group: "region", Spread: []Spread{{Label: "zone", Distinct: 2}}}); err == nil ||
		!strings.Contains(err.Error(), "spread") {
		t.Errorf("groups that are spread: %v", err)
	}
}

// TestResize changes how many providers are chosen while others are better, but
// not yet for long enough to take a place.
func TestResize(t *testing.T) {
	c, err := New(Criteria{Weights: map[string]int{"price": -1}, Max: 1, Margin: 10, Lasting: 5 * time.Minute})
	if err != nil {
		t.Fatalf("New(): %v", err)
	}
	got, err := c.Limited(2).Choose(now, prices(1, 5, 6, 100), Memory{})
	if len(got.Chosen) != 2 || err != nil {
		t.Fatalf("Choose(): %v", err)
	}
	if got, err = c.Choose(now, prices(1, 5, 6, 100), got.Memory); err != nil || len(got.Better) > 0 || got.Wait != 0 {
		t.Errorf("nobody is better, but since %v, to wait for %s, %v", got.Better, got.Wait, err)
	}
	for i, step := range []struct {
		reason string
		prices []float64
		most   int
		want   []cluster.ID
	}{
		{"The first one.", []float64{1, 5, 6, 100}, 1, []cluster.ID{"a"}},
		{"The next best joins it.", []float64{1, 5, 6, 100}, 2, []cluster.ID{"a", "b"}},
		{"Others would be better.", []float64{90, 80, 6, 1}, 2, []cluster.ID{"a", "b"}},
		{"The best of them joins, and nobody goes.", []float64{90, 80, 6, 1}, 3, []cluster.ID{"a", "b", "d"}},
		{"The worst goes.", []float64{90, 80, 6, 1}, 2, []cluster.ID{"b", "d"}},
	} {
		if got, err = c.Limited(step.most).Choose(now, prices(step.prices...), got.Memory); err != nil || !slices.Equal(got.Chosen, step.want) {
			t.Errorf("%d: %s\nchosen %v, %v: want %v", i, step.reason, got.Chosen, err, step.want)
		}
	}
	if len(got.Better) == 0 {
		t.Error("the others have not begun to be better")
	}
	got, err = c.Limited(2).Choose(now.Add(5*time.Minute), prices(90, 80, 6, 1), got.Memory)
	if diff := cmp.Diff([]cluster.ID{"c", "d"}, got.Chosen); diff != "" || err != nil {
		t.Errorf("they were better for long enough: %v, -want +got\n%s", err, diff)
	}
}
