// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/shown/showntest"
	"github.com/capacitorset/liqo-broker/test/apiclient"
)

// TestRescheduled holds that who has something changed is told of by the name that the token gave, and nobody of what was so before.
func TestRescheduled(t *testing.T) {
	cases := map[string]struct {
		reason string
		token  string
		was    v1alpha1.Scheduling
		want   string
		times  int
	}{
		"Token":  {reason: "A token has a name.", token: "good", want: "good: Active → Drained", times: 1},
		"Nobody": {reason: "Who shows none has none.", want: ": Active → Drained", times: 1},
		"Cordon": {
			reason: "What was so before is told.", token: "good", was: v1alpha1.SchedulingCordoned, want: "good: Cordoned → Drained", times: 1,
		},
		"Drained": {reason: "What was drained before has not changed.", token: "good", was: v1alpha1.SchedulingDrained},
		"Refused": {reason: "Nor has what was refused.", token: "lister"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: providerID}, Spec: v1alpha1.ProviderSpec{Scheduling: tc.was}}
			got, times := "", 0
			h := newHandler(t, Config{
				Client: newClient(t, reviews(), p), Orchestrator: true, AnonymousToggle: true, Changed: func(change Rescheduled) {
					times++
					got = change.By + ": " + change.From + " → " + change.To
					if o, is := change.Object.(*v1alpha1.Provider); !is || o.Name != providerID {
						t.Errorf("%s\nchanged %v", tc.reason, change.Object)
					}
				},
			})
			var header []string
			if tc.token != "" {
				header = []string{"Authorization", "Bearer " + tc.token}
			}
			call(t, h, http.MethodPost, "/api/toggle?id="+providerID+"&enable=false", header...)
			if got != tc.want || times != tc.times {
				t.Errorf("%s\n%q, %d times; want %q, %d times", tc.reason, got, times, tc.want, tc.times)
			}
		})
	}
}

// TestRescheduledByVersion1 does the same by version 1, for providers and consumers.
func TestRescheduledByVersion1(t *testing.T) {
	told := make(chan string, 2)
	s := serve(t, func(cfg *Config) {
		cfg.Changed = func(change Rescheduled) {
			told <- fmt.Sprintf("%s %T %s: %s → %s", change.By, change.Object, change.Object.GetName(), change.From, change.To)
		}
	}, showntest.World()...)
	c := s.as(t, "operator", nil)
	of := func(id cluster.ID, kind, from, to string) string {
		return fmt.Sprintf("operator *v1alpha1.%s %s: %s → %s", kind, id, from, to)
	}
	if a := ok(c.SetSchedulingWithResponse(t.Context(), string(milan.ID), apiclient.Scheduling{Scheduling: "Cordoned"})); a.JSON200 == nil {
		t.Fatalf("%s", a.Body)
	}
	if got, want := <-told, of(milan.ID, "Provider", "Active", "Cordoned"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	a := ok(c.SetConsumerSchedulingWithResponse(t.Context(), string(sees.ID), apiclient.SchedulingOfConsumer{Scheduling: "Suspended"}))
	if a.JSON200 == nil {
		t.Fatalf("%s", a.Body)
	}
	if got, want := <-told, of(sees.ID, "Consumer", "Active", "Suspended"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
