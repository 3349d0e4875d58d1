// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"testing"
	"time"

	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/transit"
)

// eventually waits until a condition is true.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not become true")
		}
	}
}

func TestOwnEventsStayHere(t *testing.T) {
	client, events := fake.NewSimpleClientset(), record.NewBroadcaster()
	defer events.Shutdown()
	clock := clocktesting.NewFakePassiveClock(time.Now())
	recordAt(events, client, transit.ToldReasons(), clock)
	recorder := events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "liqo-pod-reflection"})
	// What the consumer's virtual kubelet does with an event of the twin namespace.
	reflector := generic.NewNamespacedReflector(options.NewNamespaced().WithEventBroadcaster(events).WithReflectionType(consts.DenyList),
		"Event")

	cases := map[string]struct {
		reason string
		event  string
		hidden bool
	}{
		"reflected": {"it names the provider", forge.EventSuccessfulReflection, true},
		"failed":    {"it names the provider, and the namespace there", forge.EventFailedReflection, true},
		"noaccess":  {"the consumer is to know why its pod does not reach its API server", transit.ReasonNoAPIServer, false},
		"nohost":    {"which addresses are those of other peers is not for the consumer to find out", "HostNotReachable", true},
		"toomany":   {"the consumer is to know why its Service lacks endpoints", transit.ReasonTooMany, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "twin", Name: name}}
			var written *corev1.Event
			for count := range int32(2) {
				clock.SetTime(clock.Now().Add(repeatPause))
				recorder.Event(pod, corev1.EventTypeNormal, tc.event, "a message")
				eventually(t, func() bool {
					list, err := client.CoreV1().Events("twin").List(t.Context(), metav1.ListOptions{})
					if err != nil {
						t.Fatal(err)
					}
					for i := range list.Items {
						if event := &list.Items[i]; event.InvolvedObject.Name == name && event.Count == count+1 {
							written = event
						}
					}
					return written != nil && written.Count == count+1
				})
			}
			hidden, err := reflector.ShouldSkipReflection(written)
			if err != nil {
				t.Fatal(err)
			}
			if hidden != tc.hidden {
				t.Errorf("%s: Liqo leaves the event out: %t, want %t", tc.reason, hidden, tc.hidden)
			}
		})
	}
}
