// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package apiv1

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestActivityOf(t *testing.T) {
	early := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	late := early.Add(time.Hour)
	of := func(kind, name string) corev1.ObjectReference { return corev1.ObjectReference{Kind: kind, Name: name} }
	long := strings.Repeat("é\u202e", 1<<20)
	const drained = "ada@example.com changed spec.scheduling: Active → Drained"
	for name, tc := range map[string]struct {
		reason string
		event  corev1.Event
		want   Activity
	}{
		"Changed": {
			reason: "Who has changed something is told.", event: corev1.Event{
				InvolvedObject: of("Provider", "p1"), Reason: "Changed", Message: drained, Type: "Normal",
				Source: corev1.EventSource{Component: "liqo-broker"}, Count: 1,
				FirstTimestamp: metav1.NewTime(early), LastTimestamp: metav1.NewTime(early),
			}, want: Activity{
				Time: early, Count: 1, Kind: "Provider", Name: "p1", Provider: &Cluster{"p1", "milan"}, Reason: "Changed",
				Message: drained, By: "ada@example.com", Source: "liqo-broker",
			},
		},
		"Repeated": {
			reason: "What happened again is told once, with its number.", event: corev1.Event{
				InvolvedObject: of("Consumer", "c1"), Reason: "RelayAddressLimit", Message: "ada has none", Type: "Warning",
				ReportingController: "remote-ipam", FirstTimestamp: metav1.NewTime(early), LastTimestamp: metav1.NewTime(late), Count: 12,
			}, want: Activity{
				Time: late, First: early, Count: 12, Kind: "Consumer", Name: "c1", Consumer: &Cluster{ID: "c1"}, Reason: "RelayAddressLimit",
				Message: "ada has none", Warning: true, Source: "remote-ipam",
			},
		},
		"Series": {
			reason: "The newer API has other fields.", event: corev1.Event{
				InvolvedObject: of("PlacementPolicy", "c1"), EventTime: metav1.NewMicroTime(early),
				Series: &corev1.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(late)},
			}, want: Activity{Time: late, First: early, Count: 3, Kind: "PlacementPolicy", Name: "c1"},
		},
		"Bare": {
			reason: "What says nothing of its time was written then, and a number may be anything.",
			event:  corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(early)}, Count: -1},
			want:   Activity{Time: early, Count: 1},
		},
		"Hostile": {
			reason: "Whatever is written, it is plain and short.", event: corev1.Event{
				InvolvedObject: of(long, "a\u0007\nb"), Reason: "Changed", Message: `"a` + "\u202e" + ` b" deleted it` + long,
				LastTimestamp: metav1.NewTime(early), Source: corev1.EventSource{Component: long},
			}, want: Activity{
				Time: early, Count: 1, Kind: strings.Repeat("é?", 25) + "...", Name: "a? b", Reason: "Changed", By: "a? b",
				Message: `"a? b" deleted it` + strings.Repeat("é?", 200) + "é...", Source: strings.Repeat("é?", 25) + "...",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ActivityOf(&tc.event, map[string]string{"p1": "milan"}, nil)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
			if text, err := json.Marshal(got); err != nil || len(text) > 4<<10 {
				t.Errorf("%s\n%d bytes (%v)", tc.reason, len(text), err)
			}
		})
	}
}

func TestUserIn(t *testing.T) {
	for message, want := range map[string]string{
		"ada changed it": "ada", `"a b" deleted it`: "a b", "somebody who is not known deleted it": "", `"a b`: "", "ada": "", "": "",
		"system:serviceaccount:a:b changed it 3 times since 10:00:00 UTC, and at last deleted it": "system:serviceaccount:a:b",
	} {
		if got := userIn(message); got != want {
			t.Errorf("userIn(%q) = %q, want %q", message, got, want)
		}
	}
}
