// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package virtualkubelet

import (
	"maps"
	"slices"

	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
)

// recordEvents has the events of the virtual kubelet written with a client of this cluster.
func recordEvents(events record.EventBroadcaster, client kubernetes.Interface) {
	recordEventsAt(events, client, clock.RealClock{})
}

func recordEventsAt(events record.EventBroadcaster, client kubernetes.Interface, clock clock.PassiveClock) {
	events.StartRecordingToSink(newRareRepeats(ownEvents{eventSink(client)}, clock))
}

func eventSink(client kubernetes.Interface) record.EventSink {
	return &typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events(corev1.NamespaceAll)}
}

// ownEvents is a sink of events that keeps those of the virtual kubelet in this cluster.
//
// They name the foreign cluster. In a twin namespace the cluster that the namespace came
// from has its virtual kubelet copy all events, unless they are marked
// (liqo/pkg/virtualKubelet/reflection/event and generic/namespaced.go@v0.9.4): a consumer
// would read there which providers its pods are on. In other namespaces nobody looks at
// the mark.
type ownEvents struct{ record.EventSink }

// told are the reasons of events that are for the cluster that a pod came from. They
// name no cluster.
var told = []string{reasonNoAPIServer, reasonTooMany}

// Create writes an event.
func (o ownEvents) Create(event *corev1.Event) (*corev1.Event, error) {
	return o.EventSink.Create(marked(event))
}

// Update replaces an event.
func (o ownEvents) Update(event *corev1.Event) (*corev1.Event, error) {
	return o.EventSink.Update(marked(event))
}

// marked returns the event with the mark, if it needs one.
func marked(event *corev1.Event) *corev1.Event {
	if slices.Contains(told, event.Reason) {
		return event
	}
	// Others read it too, so that it stays as it is.
	copied := *event
	copied.Annotations = maps.Clone(event.Annotations)
	if copied.Annotations == nil {
		copied.Annotations = map[string]string{}
	}
	copied.Annotations[consts.SkipReflectionAnnotationKey] = "true"
	return &copied
}
