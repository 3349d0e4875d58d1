// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capacitorset/liqo-broker/pkg/shown/showntest"
	"github.com/capacitorset/liqo-broker/test/apiclient"
)

// TestActivity holds that what has happened is listed newest first, page by page, with its filters, for who has the right, and no consumer.
func TestActivity(t *testing.T) {
	world := showntest.World()
	for i, second := range []int{3, 9, 1, 7, 5} {
		e := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: strconv.Itoa(i), Namespace: metav1.NamespaceDefault, UID: types.UID(strconv.Itoa(i))},
			InvolvedObject: corev1.ObjectReference{APIVersion: "brokering.liqo.io/v1alpha1", Kind: "Provider", Name: string(showntest.Milan.ID)},
			Reason:         "Changed", Message: "ada changed it " + strconv.Itoa(second), Type: corev1.EventTypeNormal,
			LastTimestamp: metav1.NewTime(showntest.Midnight.Add(time.Duration(second) * time.Second)),
		}
		if second == 7 {
			e.Reason, e.Type = "RelayAddressLimit", corev1.EventTypeWarning
			e.InvolvedObject.Kind, e.InvolvedObject.Name = "Consumer", string(showntest.Sees.ID)
		}
		world = append(world, e)
	}
	s, ctx := serve(t, nil, world...), t.Context()
	c := s.as(t, "list/activity", nil)
	seconds := func(p apiclient.ListActivityParams) (all []int) {
		t.Helper()
		for range 10 {
			a := ok(c.ListActivityWithResponse(ctx, &p))
			if a.JSON200 == nil {
				t.Fatalf("%d %s", a.StatusCode(), a.Body)
			}
			for _, item := range a.JSON200.Items {
				all = append(all, item.Time.Second())
			}
			if p.Continue = a.JSON200.Continue; p.Continue == nil {
				break
			}
		}
		return all
	}
	warning := apiclient.ListActivityParamsWarningTrue
	for name, tc := range map[string]struct {
		asked apiclient.ListActivityParams
		want  []int
	}{
		"in one page":         {want: []int{9, 7, 5, 3, 1}},
		"two by two":          {apiclient.ListActivityParams{Limit: new(int64(2))}, []int{9, 7, 5, 3, 1}},
		"problems":            {apiclient.ListActivityParams{Warning: &warning}, []int{7}},
		"by a user":           {apiclient.ListActivityParams{By: new("ada"), Limit: new(int64(1))}, []int{9, 5, 3, 1}},
		"by another":          {apiclient.ListActivityParams{By: new("bob")}, nil},
		"of a kind":           {apiclient.ListActivityParams{Kind: new("Consumer")}, []int{7}},
		"of a cluster's name": {apiclient.ListActivityParams{Name: new(showntest.Milan.Name)}, []int{9, 5, 3, 1}},
	} {
		if got := seconds(tc.asked); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	for token, code := range map[string]int{"list/providers": http.StatusForbidden, "watch/activity": http.StatusForbidden} {
		a, err := s.as(t, token, nil).ListActivityWithResponse(ctx, nil)
		want(t, token+" does not list it.", a, err, code)
	}
	a, err := s.consumer(t, showntest.Sees.ID).WatchEventsWithResponse(ctx, &apiclient.WatchEventsParams{
		Kinds: []apiclient.WatchEventsParamsKinds{apiclient.WatchEventsParamsKindsActivity},
	})
	want(t, "A consumer does not watch it.", a, err, http.StatusForbidden)
}
