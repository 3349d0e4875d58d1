// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package events decides which events of the virtual kubelet are written, and who is to read
// them. It does not know why an event is recorded.
package events

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

// Record has the events of the virtual kubelet written with a client of this cluster, until the broadcaster is shut down.
// They stay in this cluster but for those of the reasons in told, which are for the cluster that a pod came from; they must name
// no cluster.
func Record(events record.EventBroadcaster, client kubernetes.Interface, told ...string) {
	recordAt(events, client, told, clock.RealClock{})
}

func recordAt(events record.EventBroadcaster, client kubernetes.Interface, told []string, clock clock.PassiveClock) {
	events.StartRecordingToSink(newRareRepeats(ownEvents{eventSink(client), told}, clock))
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
type ownEvents struct {
	record.EventSink
	// told are the reasons of events that are for the cluster that a pod came from. They
	// name no cluster.
	told []string
}

// Create writes an event.
func (o ownEvents) Create(event *corev1.Event) (*corev1.Event, error) {
	return o.EventSink.Create(o.marked(event))
}

// Update replaces an event.
func (o ownEvents) Update(event *corev1.Event) (*corev1.Event, error) {
	return o.EventSink.Update(o.marked(event))
}

// marked returns the event with the mark, if it needs one.
func (o ownEvents) marked(event *corev1.Event) *corev1.Event {
	if slices.Contains(o.told, event.Reason) {
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
