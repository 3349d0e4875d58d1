// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/transit"
)

// TestRareRepeats writes events as Liqo's reflectors do, and counts what the API server gets.
func TestRareRepeats(t *testing.T) {
	cases := map[string]struct {
		reason    string
		eventType string
		event     string
		rare      bool
	}{
		"status":  {"each status of a pod that starts is a success", corev1.EventTypeNormal, forge.EventSuccessfulReflection, true},
		"tokens":  {"so is each look at its tokens", corev1.EventTypeNormal, forge.EventSuccessfulSATokensReflection, true},
		"failure": {"why something fails is told each time", corev1.EventTypeWarning, forge.EventFailedReflection, false},
		"warning": {"a warning is no success, whatever its reason", corev1.EventTypeWarning, forge.EventSuccessfulReflection, false},
		"other":   {"our own reasons are for the consumer", corev1.EventTypeNormal, transit.ReasonNoAPIServer, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Now())
			client := fake.NewSimpleClientset()
			events := record.NewBroadcaster()
			defer events.Shutdown()
			recordAt(events, client, transit.ToldReasons(), clock)
			recorder := events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "liqo-pod-reflection"})
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1"}}
			last := 0
			// say says the same some times, and returns the count that can be read when something else was said and read.
			say := func(times int) int32 {
				for range times {
					recorder.Event(pod, tc.eventType, tc.event, "a message")
				}
				last++
				recorder.Event(pod, corev1.EventTypeWarning, "Marker", fmt.Sprint(last))
				var count int32
				eventually(t, func() bool {
					list, err := client.CoreV1().Events("shop").List(t.Context(), metav1.ListOptions{})
					if err != nil {
						t.Fatal(err)
					}
					marked := false
					for i := range list.Items {
						marked = marked || list.Items[i].Message == fmt.Sprint(last)
						if list.Items[i].Reason == tc.event {
							count = list.Items[i].Count
						}
					}
					return marked
				})
				return count
			}
			want := map[bool][]int32{true: {1, 1, 4, 4}, false: {1, 3, 4, 5}}[tc.rare]
			got := []int32{say(1), say(2)}
			clock.SetTime(clock.Now().Add(repeatPause))
			got = append(got, say(1), say(1))
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%s: the counts are %d, want %d", tc.reason, got, want)
				}
			}
		})
	}
}

// TestFailedRepeatIsTriedAgain lets the API server fail when a success is to be counted up: it must not count as written.
func TestFailedRepeatIsTriedAgain(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	client := fake.NewSimpleClientset()
	fails := true
	client.PrependReactor("patch", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		return fails, nil, errors.New("not now")
	})
	sink := newRareRepeats(eventSink(client), clock)
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web.1"}, Type: corev1.EventTypeNormal, Reason: forge.EventSuccessfulReflection,
	}
	if _, err := sink.Create(event); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(clock.Now().Add(repeatPause))
	if _, err := sink.Patch(event, []byte(`{"count":2}`)); err == nil {
		t.Fatal("the failure is hidden")
	}
	fails = false
	if got, err := sink.Patch(event, []byte(`{"count":2}`)); err != nil || got.Count != 2 {
		t.Errorf("the second try writes %v, %v", got, err)
	}
}
