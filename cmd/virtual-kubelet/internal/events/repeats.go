// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"slices"
	"sync"
	"time"

	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// repeatPause is how long an event that says only that something succeeded is not counted up: far longer than it takes a
	// pod to start, while Liqo says so at each of its statuses.
	repeatPause = time.Minute
	// rememberedRepeats bounds the memory; an event that is forgotten is counted up at once.
	rememberedRepeats = 4096
)

// successes are the reasons of the events with which Liqo counts how often it reflected an object.
var successes = []string{forge.EventSuccessfulReflection, forge.EventSuccessfulSATokensReflection}

// rareRepeats is a sink of events that counts up those of successes at most once in a pause: the first is written at once,
// and what is written after the pause has the count of all. All other events are written at once, each time.
type rareRepeats struct {
	record.EventSink
	clock clock.PassiveClock

	mu sync.Mutex
	// written is when each event was written last, by its namespace and name.
	written *lru.Cache
}

func newRareRepeats(sink record.EventSink, clock clock.PassiveClock) *rareRepeats {
	return &rareRepeats{EventSink: sink, clock: clock, written: lru.New(rememberedRepeats)}
}

// Create writes an event.
func (r *rareRepeats) Create(event *corev1.Event) (*corev1.Event, error) {
	created, err := r.EventSink.Create(event)
	if err == nil && isSuccess(event.Type, event.Reason) {
		r.note(created)
	}
	return created, err
}

// Patch counts an event up. One that is left out is answered as if it were written, so that the next one has its count too.
func (r *rareRepeats) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	if isSuccess(event.Type, event.Reason) && r.recent(event) {
		return event, nil
	}
	patched, err := r.EventSink.Patch(event, data)
	if err == nil && isSuccess(event.Type, event.Reason) {
		r.note(patched)
	}
	return patched, err
}

// isSuccess reports whether an event says only that something was reflected.
func isSuccess(eventType, reason string) bool {
	return eventType == corev1.EventTypeNormal && slices.Contains(successes, reason)
}

// note notes that an event was written.
func (r *rareRepeats) note(event *corev1.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written.Add(event.Namespace+"/"+event.Name, r.clock.Now())
}

// recent reports whether an event was written a moment ago.
func (r *rareRepeats) recent(event *corev1.Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.written.Get(event.Namespace + "/" + event.Name)
	return known && r.clock.Since(last.(time.Time)) < repeatPause
}
