// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"testing"

	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/event"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/reflectiontest"
)

// TestTransitEvents reflects an event of the provider with Liqo's own reflector.
func TestTransitEvents(t *testing.T) {
	reflectiontest.BeBroker()
	about := func(kind, name string) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: "v1", Kind: kind, Namespace: "twin-broker", Name: name}
	}
	cases := map[string]struct {
		reason    string
		origin    string
		about     corev1.ObjectReference
		eventType string
		event     string
		copied    bool
	}{
		"Bound": {
			"The consumer does not know the nodes there.", "consumer", about("Pod", "web"), corev1.EventTypeNormal, reasonScheduled, false,
		},
		"OwnBound":      {"Whose pod it is reads it as in stock Liqo.", "", about("Pod", "web"), corev1.EventTypeNormal, reasonScheduled, true},
		"Unschedulable": {"Why a pod waits is told.", "consumer", about("Pod", "web"), corev1.EventTypeWarning, "FailedScheduling", true},
		"Warning": {
			"A warning is told, whatever its reason.", "consumer", about("Pod", "web"), corev1.EventTypeWarning, reasonScheduled, true,
		},
		"Started":   {"How the pod does is told.", "consumer", about("Pod", "web"), corev1.EventTypeNormal, "Started", true},
		"Killing":   {"So is its end.", "consumer", about("Pod", "web"), corev1.EventTypeNormal, "Killing", true},
		"OtherKind": {"Only pods are bound to nodes.", "consumer", about("Service", "web"), corev1.EventTypeNormal, reasonScheduled, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{
				reflectiontest.PodOf(tc.origin, func(*corev1.Pod) {}), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "twin", Name: "web"}},
			}
			events := event.NewEventReflector(&generic.ReflectorConfig{NumWorkers: 1, Type: consts.DenyList})
			c := reflectiontest.Start(t, transitEvents{reflectiontest.Unstarted(events)}, event.NewNamespacedEventReflector, objects...)
			if _, err := c.Remote.CoreV1().Events("twin-broker").Create(t.Context(), &corev1.Event{
				ObjectMeta: metav1.ObjectMeta{Name: "web"}, InvolvedObject: tc.about, Type: tc.eventType, Reason: tc.event, Message: "a message",
			}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			reflectiontest.Eventually(t, func() bool {
				_, err := c.Seen.Core().V1().Events().Lister().Events("twin-broker").Get("web")
				return err == nil
			})
			if err := c.Handle(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, err := c.Local.CoreV1().Events("twin").Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			if copied := err == nil; copied != tc.copied {
				t.Errorf("%s: copied: %t", tc.reason, copied)
			}
		})
	}
}
