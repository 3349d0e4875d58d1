// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conditions writes the conditions of objects in one form, and tells people when one has changed: by an event about the object and
// a line of the log.
//
// It does not know what a condition means: who writes it says which change is a warning.
package conditions

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
)

// Set sets a condition of an object of a generation. It cuts the message to what a status takes. A condition without a time has changed
// now, if its status differs.
func Set(conditions *[]metav1.Condition, generation int64, c metav1.Condition) {
	c.Message, c.ObservedGeneration = excerpt.Of(c.Message, v1alpha1.MaxMessage), generation
	meta.SetStatusCondition(conditions, c)
}

// A Change is a condition that has another status or another reason than before.
type Change struct {
	// Was is nil if there was no such condition.
	Was *metav1.Condition
	Is  metav1.Condition
}

// Changes returns what differs between the conditions before and after, in the order of those after.
func Changes(before, after []metav1.Condition) []Change {
	var all []Change
	for _, is := range after {
		if was := meta.FindStatusCondition(before, is.Type); was == nil || was.Status != is.Status || was.Reason != is.Reason {
			all = append(all, Change{was, is})
		}
	}
	return all
}

// Events writes events about objects: a record.EventRecorder. It is called concurrently.
type Events interface {
	Event(object runtime.Object, kind, reason, message string)
}

// Recorder tells people which conditions have changed. It can be used concurrently.
type Recorder struct {
	// Events writes the events; nil writes none.
	Events Events
	// Kind returns the type of the event of a change, corev1.EventTypeNormal or corev1.EventTypeWarning; none is written if it is empty.
	Kind func(Change) string
}

// Tell writes a line of the log, and one event about the object, for each condition of it that differs from before. It is called when the
// conditions are written: who is killed before has not said what is not so.
func (r Recorder) Tell(ctx context.Context, object client.Object, before, after []metav1.Condition) {
	for _, change := range Changes(before, after) {
		is := change.Is
		log.FromContext(ctx).Info("Condition", "of", object.GetName(), "condition", is.Type, "status", is.Status, "reason", is.Reason,
			"message", is.Message)
		if kind := r.Kind(change); kind != "" && r.Events != nil {
			r.Events.Event(object, kind, is.Reason, is.Message)
		}
	}
}
