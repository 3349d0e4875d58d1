// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package roundtrips_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/roundtrips"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

func TestRecord(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(1_800_000_000, 0))
	writes := 0
	c := snapshottest.NewClient(t, snapshottest.OnPatch(func(client.Object) { writes++ }),
		&v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "id-c"}}, &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "id-d"}})
	r := roundtrips.New(c, clock)
	for _, step := range []struct {
		reason string
		after  time.Duration
		took   map[cluster.ID]time.Duration
		writes int
		want   map[string]string
	}{
		{
			reason: "What is told first is written.", took: map[cluster.ID]time.Duration{"b": 12500 * time.Microsecond, "a": time.Millisecond},
			writes: 1, want: map[string]string{"a": "1 ms", "b": "12.5 ms"},
		},
		{
			reason: "What is as good as written is not.", after: time.Minute,
			took: map[cluster.ID]time.Duration{"b": 13 * time.Millisecond, "a": time.Millisecond}, writes: 1,
			want: map[string]string{"a": "1 ms", "b": "12.5 ms"},
		},
		{
			reason: "After a while it is.", after: time.Minute,
			took: map[cluster.ID]time.Duration{"b": 13 * time.Millisecond, "a": time.Millisecond}, writes: 2,
			want: map[string]string{"a": "1 ms", "b": "13 ms"},
		},
		{
			reason: "A provider that is much farther is written at once.", after: time.Second,
			took: map[cluster.ID]time.Duration{"b": 20 * time.Millisecond, "a": time.Millisecond}, writes: 3,
			want: map[string]string{"a": "1 ms", "b": "20 ms"},
		},
		{
			reason: "So is one that was replaced.", after: time.Second,
			took: map[cluster.ID]time.Duration{"b": 20 * time.Millisecond, "c": time.Millisecond}, writes: 4,
			want: map[string]string{"b": "20 ms", "c": "1 ms"},
		},
		{
			reason: "A clock that was set back keeps nothing from being written.", after: -time.Hour,
			took: map[cluster.ID]time.Duration{"b": 20 * time.Millisecond, "c": time.Millisecond}, writes: 5,
			want: map[string]string{"b": "20 ms", "c": "1 ms"},
		},
		{reason: "Nothing is something, too.", after: time.Second, writes: 6, want: map[string]string{}},
	} {
		clock.Step(step.after)
		if err := r.Record(t.Context(), "id-c", step.took); err != nil {
			t.Fatalf("Record(): %v", err)
		}
		got := map[string]string{}
		for _, trip := range read(t, c, "id-c") {
			got[trip.Provider] = string(trip.Value) + " " + trip.Unit
			if trip.ExpirationTime.Sub(trip.MeasuredTime.Time) != 5*time.Minute || trip.MeasuredTime.After(clock.Now()) {
				t.Errorf("%s\nmeasured %s, expires %s", step.reason, trip.MeasuredTime, trip.ExpirationTime)
			}
		}
		if diff := cmp.Diff(step.want, got); diff != "" || writes != step.writes {
			t.Errorf("%s\n%d writes, want %d, -want +got\n%s", step.reason, writes, step.writes, diff)
		}
	}
	for i := range 100 {
		clock.Step(time.Second)
		if err := r.Record(t.Context(), "id-c", map[cluster.ID]time.Duration{"a": time.Duration(1+i%2) * time.Second}); err != nil {
			t.Fatalf("Record(): %v", err)
		}
	}
	if most := 6 + 100/10 + 6; writes > most {
		t.Errorf("%d writes for a consumer whose times jump each second, want %d at most", writes, most)
	}
	if others := read(t, c, "id-d"); len(others) > 0 {
		t.Errorf("what one consumer told is with another: %v", others)
	}
	if err := r.Record(t.Context(), "id-x", nil); err == nil {
		t.Error("a consumer that is gone has told something")
	}
}

// TestForget holds that nothing is left of a consumer that is gone, nor taken away of another one.
func TestForget(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(1_800_000_000, 0))
	c := snapshottest.NewClient(t, interceptor.Funcs{},
		&v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "id-c"}}, &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "id-d"}})
	r := roundtrips.New(c, clock)
	jumps := 0
	written := func(consumer cluster.ID) bool {
		t.Helper()
		jumps++
		took := time.Duration(jumps) * time.Second
		if err := r.Record(t.Context(), consumer, map[cluster.ID]time.Duration{"a": took}); err != nil {
			t.Fatal(err)
		}
		trips := read(t, c, string(consumer))
		return len(trips) == 1 && string(trips[0].Value) == strconv.Itoa(jumps*1000)
	}
	for _, consumer := range []cluster.ID{"id-c", "id-d"} {
		for range 100 {
			written(consumer)
		}
		if written(consumer) {
			t.Fatalf("the times of %s jump, and each is written", consumer)
		}
	}
	r.Forget("id-c")
	if !written("id-c") || written("id-d") {
		t.Error("the pace of the one that is gone is kept, or that of the other one is not")
	}
}

func read(t *testing.T, c client.Client, consumer string) []v1alpha1.RoundTrip {
	t.Helper()
	var got v1alpha1.Consumer
	if err := c.Get(t.Context(), client.ObjectKey{Name: consumer}, &got); err != nil {
		t.Fatal(err)
	}
	return got.Status.RoundTrips
}
