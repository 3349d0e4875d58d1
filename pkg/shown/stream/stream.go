// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stream tells watchers what is shown, and what changes of it, by server-sent events: to a consumer nothing but its own, and
// nothing by which it could count what happens to others.
//
// It does not know who watches, and whether they may: it asks who does.
package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/serving/eventstream"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
)

// The events.
const (
	eventReset   = "reset"   // What the watcher knows is no more: all that there is follows.
	eventSet     = "set"     // Something is new or has changed.
	eventDeleted = "deleted" // Something is gone.
	eventSynced  = "synced"  // The watcher knows all that there is.
)

// Watcher is who watches.
type Watcher struct {
	// Name is other for each whose view is another one.
	Name string
	// Consumer is the ID of the consumer that watches what is its own; empty for people.
	Consumer string
	// Hides is true if the consumer must not learn of the providers.
	Hides bool
}

// sees reports whether the watcher may see what belongs to a consumer.
func (w Watcher) sees(consumer string) bool { return w.Consumer == "" || w.Consumer == consumer }

// Timing is how long what takes of a stream.
type Timing struct {
	// Heartbeat is after how long without an event there is a sign of life, and it is asked whether the watcher still may.
	Heartbeat time.Duration
	// Write is how long a watcher may take to read what is sent at once.
	Write time.Duration
}

// Stream is what one watcher gets.
type Stream struct {
	Feed    *feed.Feed
	Kinds   []feed.Kind
	Watcher Watcher
	// Last is the ID of the last event that the watcher has received; empty for none.
	Last   string
	Timing Timing
	// May reports, with each Heartbeat, whether the watcher still may. Nil if it always may.
	May func(context.Context) bool
	// Same reports, before each change, whether the watcher sees the same of things as when it began. Nil if it always does.
	Same func(context.Context) bool
}

// Run answers a request with the stream, until the context ends, the watcher is too slow, or may not any more: then it calls again, and
// goes on where it was. The error says why nothing was answered.
func (s *Stream) Run(ctx context.Context, w http.ResponseWriter) error {
	// A consumer begins again each time: numbers of changes would tell it how much happens to others.
	last := s.Last
	if s.Watcher.Consumer != "" {
		last = ""
	}
	cursor, all, err := s.Feed.Watch(ctx, s.Kinds, s.Watcher.Name, last)
	if err != nil {
		return err
	}

	// All that there is, unless the watcher goes on.
	out := &writer{to: eventstream.Begin(w, s.Timing.Write), who: s.Watcher, sent: map[string]string{}}
	if all != nil && !out.begin(s.Kinds, all, cursor.ID()) {
		return nil
	}

	// What changes.
	checked, signed := time.Now(), time.Time{}
	for {
		// What is about others alone gives no sign: that would tell when it changes.
		if s.Watcher.Consumer == "" || len(out.buffer) > 0 || time.Since(signed) >= s.Timing.Heartbeat {
			out.sign(cursor.ID())
			if !out.flush() {
				return nil
			}
			signed = time.Now()
		}
		entries, err := cursor.Next(ctx, s.Timing.Heartbeat)
		if err != nil {
			return nil //nolint:nilerr // The watcher calls again, or has gone.
		}
		if s.May != nil && time.Since(checked) >= s.Timing.Heartbeat {
			if !s.May(ctx) {
				return nil
			}
			checked = time.Now()
		}
		if s.Same != nil && !s.Same(ctx) {
			return nil // It calls again, and sees everything as it may now.
		}
		for _, e := range entries {
			out.item(cursor.IDOf(e.Number), e.Kind, e.Item, e.Deleted)
		}
	}
}

// writer writes events for one watcher.
type writer struct {
	to     *eventstream.Writer
	who    Watcher
	buffer []byte
	// failed is why nothing more is written.
	failed error
	// sent is what a consumer knows of each thing, as a tag: nothing is told twice, because what it may not see has changed.
	sent map[string]string
}

// begin writes all that there is; false if the watcher does not read it in time.
func (e *writer) begin(watched []feed.Kind, all []*feed.View, id string) bool {
	e.event("0", eventReset, nil)
	for i, view := range all {
		for _, item := range view.Items {
			e.item("", watched[i], item, false)
		}
		if !e.flush() {
			return false
		}
	}
	e.event(id, eventSynced, nil)
	return true
}

// flushed is how many bytes are sent at once, about.
const flushed = 64 << 10

// named is a value that an event has under a name of its own. It is nobody's, and no consumer sees it.
type named interface{ Field() string }

// item writes that something is there or gone, if the watcher may know of it.
func (e *writer) item(id string, kind feed.Kind, item feed.Item, deleted bool) {
	if e.failed != nil || !e.who.sees(item.Consumer) {
		return
	}
	if value, ok := item.Value.(named); ok && !deleted {
		if e.who.Consumer == "" {
			e.event(id, eventSet, map[string]any{"kind": kind, "key": item.Key, value.Field(): value})
		}
		return
	}
	event := apiv1.Event{Kind: string(kind), Key: item.Key}
	name := eventSet
	if deleted {
		name = eventDeleted
	} else if !event.Fill(item.Value, e.who.Consumer != "", e.who.Hides) {
		return
	}
	if e.who.Consumer != "" && !e.news(event, deleted) {
		return
	}
	e.event(id, name, event)
	if len(e.buffer) > flushed {
		e.flush() // The next one fails as well.
	}
}

// news reports whether an event tells the watcher something, and takes note of it.
func (e *writer) news(event apiv1.Event, deleted bool) bool {
	key := event.Kind + "/" + event.Key
	if deleted {
		delete(e.sent, key)
		return true
	}
	text, err := json.Marshal(event)
	if err != nil {
		return true // Who writes it says so.
	}
	tag := feed.Tag(text)
	known := e.sent[key] == tag
	e.sent[key] = tag
	return !known
}

// event writes an event. Without an ID, the one before counts.
func (e *writer) event(id, name string, data any) {
	text := []byte("{}")
	if data != nil {
		var err error
		if text, err = json.Marshal(data); err != nil {
			e.failed = fmt.Errorf("write an event: %w", err)
			return
		}
	}
	if e.who.Consumer != "" {
		id = ""
	}
	e.buffer = eventstream.Append(e.buffer, eventstream.Event{ID: id, Name: name, Data: text})
}

// sign writes a sign of life, with how far the watcher has come, unless it is a consumer.
func (e *writer) sign(id string) {
	if e.who.Consumer != "" {
		e.buffer = append(e.buffer, ": alive\n\n"...)
		return
	}
	e.buffer = fmt.Appendf(e.buffer, ": alive\nid: %s\n\n", id)
}

// flush sends what is written; false if the watcher does not read it in time.
func (e *writer) flush() bool {
	if e.failed == nil {
		e.failed = e.to.Send(e.buffer)
		e.buffer = e.buffer[:0]
	}
	return e.failed == nil
}
