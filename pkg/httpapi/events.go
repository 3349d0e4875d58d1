// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/capacitorset/liqo-broker/pkg/serving/eventstream"
	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
)

const eventsPath = "/events"

// Bounds of the watchers in all, and of each caller: each holds a connection.
const maxWatchers, maxWatchersEach = 64, 4

// timing is how long what takes of a stream of events.
type timing struct {
	// heartbeat is after how long without an event there is a sign of life, and the caller's rights are looked at again.
	heartbeat time.Duration
	// write is how long a watcher may take to read what is sent at once.
	write time.Duration
	// life is how long a stream is: then the watcher calls again, and goes on where it was.
	life time.Duration
}

var defaultTiming = timing{heartbeat: 15 * time.Second, write: 10 * time.Second, life: time.Hour}

// The events.
const (
	eventReset   = "reset"   // What the watcher knows is no more: all that there is follows.
	eventSet     = "set"     // Something is new or has changed.
	eventDeleted = "deleted" // Something is gone.
	eventSynced  = "synced"  // The watcher knows all that there is.
)

// Event is what an event is about: one of the things is there, but with an event deleted only their key.
type Event struct {
	Kind     string          `json:"kind" enum:"providers,consumers,offers,policies,decisions,workloads,links,advice"`
	Key      string          `json:"key" doc:"What the thing is known by in the stream."`
	Provider *apiv1.Provider `json:"provider,omitempty"`
	Consumer *apiv1.Consumer `json:"consumer,omitempty"`
	Offer    *apiv1.Offer    `json:"offer,omitempty"`
	Policy   *apiv1.Policy   `json:"policy,omitempty"`
	Decision *apiv1.Decision `json:"decision,omitempty"`
	Workload *apiv1.Workload `json:"workload,omitempty"`
	Link     *apiv1.Link     `json:"link,omitempty"`
	Flow     *apiv1.Flow     `json:"flow,omitempty"`
	Advice   *apiv1.Advice   `json:"advice,omitempty"`
	Status   *apiv1.Status   `json:"status,omitempty"`
}

type eventsInput struct {
	Kinds       []string `query:"kinds" required:"true" minItems:"1" maxItems:"10" uniqueItems:"true" enum:"providers,consumers,offers,policies,decisions,workloads,links,flows,advice,status" doc:"What is watched, with commas between."`
	LastEventID string   `header:"Last-Event-ID" maxLength:"256" doc:"The ID of the last event that was received: the stream goes on from there."`
}

// events registers the stream of events.
func (v *v1) events() {
	op := v.describeOperation(v.api.Operation("watchEvents", http.MethodGet, eventsPath, "Watch what changes, by server-sent events",
		rest.Door(v.api, v.admitWatcher)), access{own: true})
	op.Description = "Needs the right to watch what is asked for: the resources in brokering.liqo.io are providers, consumers (also for " +
		"offers), placementpolicies, placementdecisions, workloads (also for flows), links, advice and status. A consumer watches " +
		"consumers, offers, workloads and advice that are its own, by its certificate.\n\nAt first there is an event reset, an event set for " +
		"each thing that there is, and an event synced. Then there are events set and deleted. The data of set and deleted is an Event as " +
		"JSON. A watcher that calls again with the last ID goes on where it was; if that is too long ago, all begins again. A watcher that " +
		"does not read fast enough is dropped."
	v.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Event](), true, "Event")
	rest.Stream(v.api, op, func(_ context.Context, in *eventsInput) (func(huma.Context), error) {
		return func(ctx huma.Context) { v.stream(ctx, in) }, nil //nolint:contextcheck // Huma's has the other one.
	})
}

// needs returns what it takes to watch some kinds.
func needs(of []string) (found []feed.Kind, needed []access) {
	readers := readers()
	for _, kind := range shown.Kinds() {
		if slices.Contains(of, string(kind)) {
			need := readers[kind]
			need.verb = "watch"
			found, needed = append(found, kind), append(needed, need)
		}
	}
	return found, needed
}

// admitWatcher admits those who may watch what they ask for.
func (v *v1) admitWatcher(ctx huma.Context, r *http.Request) (caller, error) {
	_, needed := needs(strings.Split(ctx.Query("kinds"), ","))
	if len(needed) == 0 {
		needed = []access{named()} // Who it is, before it is told what is wrong.
	}
	return v.identify(ctx.Context(), r, needed...)
}

// stream sends a watcher what it watches, until it goes away, is too slow, loses its rights, or has watched for long.
func (v *v1) stream(ctx huma.Context, in *eventsInput) {
	request, w := humago.Unwrap(ctx)
	who := callerOf(ctx.Context())
	watched, needed := needs(in.Kinds)

	// A place among the watchers.
	leave, ok := v.watchers.Enter(source.Caller(who.called()))
	if !ok {
		v.api.RefuseIn(ctx, rest.Later(http.StatusTooManyRequests, fmt.Sprintf(messageTooManyStreams, maxWatchersEach, maxWatchers), "10"))
		return
	}
	defer leave()
	living, cancel := context.WithTimeout(ctx.Context(), v.timing.life)
	defer cancel()
	// A consumer begins again each time: numbers of changes would tell it how much happens to others. So does who sees something else since.
	hides := v.hides(living, who)
	last := in.LastEventID
	if who.consumer != "" {
		last = ""
	}
	cursor, all, err := v.feed.Watch(living, watched, who.called(), last)
	if err != nil {
		v.api.RefuseIn(ctx, err)
		return
	}

	// All that there is, unless the watcher goes on.
	out := &eventWriter{v: v, to: eventstream.Begin(w, v.timing.write), who: who, hides: hides, sent: map[string]string{}}
	if all != nil && out.begin(watched, all, cursor.ID()) != nil {
		return
	}

	// What changes.
	checked, signed := time.Now(), time.Time{}
	for {
		// What is about others alone gives no sign: that would tell when it changes.
		if who.consumer == "" || len(out.buffer) > 0 || time.Since(signed) >= v.timing.heartbeat {
			out.sign(cursor.ID())
			if out.flush() != nil {
				return
			}
			signed = time.Now()
		}
		entries, err := cursor.Next(living, v.timing.heartbeat)
		if err != nil {
			return // It calls again, or has gone.
		}
		if time.Since(checked) >= v.timing.heartbeat {
			if again, err := v.identify(living, request, needed...); err != nil || again != who {
				return
			}
			checked = time.Now()
		}
		if v.hides(living, who) != hides {
			return // It calls again, and sees everything as it may now.
		}
		for _, e := range entries {
			out.item(cursor.IDOf(e.Number), e.Kind, e.Item, e.Deleted)
		}
	}
}

// eventWriter writes events for one watcher.
type eventWriter struct {
	v      *v1
	to     *eventstream.Writer
	who    caller
	hides  bool
	buffer []byte
	// failed is why nothing more is written.
	failed error
	// sent is what a consumer knows of each thing, as a tag: nothing is told twice, because what it may not see has changed.
	sent map[string]string
}

// begin writes all that there is.
func (e *eventWriter) begin(watched []feed.Kind, all []*feed.View, id string) error {
	e.event("0", eventReset, nil)
	for i, view := range all {
		for _, item := range view.Items {
			e.item("", watched[i], item, false)
		}
		if err := e.flush(); err != nil {
			return err
		}
	}
	e.event(id, eventSynced, nil)
	return nil
}

// flushed is how many bytes are sent at once, about.
const flushed = 64 << 10

// item writes that something is there or gone, if the watcher may know of it.
func (e *eventWriter) item(id string, kind feed.Kind, item feed.Item, deleted bool) {
	if e.failed != nil || !e.who.sees(item.Consumer) {
		return
	}
	event := Event{Kind: string(kind), Key: item.Key}
	name := eventSet
	if deleted {
		name = eventDeleted
	} else if !event.fill(item.Value, e.who.consumer != "", e.hides) {
		return
	}
	if e.who.consumer != "" && !e.news(event, deleted) {
		return
	}
	e.event(id, name, event)
	if len(e.buffer) > flushed {
		_ = e.flush() // The next one fails as well.
	}
}

// news reports whether an event tells the watcher something, and takes note of it.
func (e *eventWriter) news(event Event, deleted bool) bool {
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

// fill adds the value; false if a consumer sees nothing of it.
func (e *Event) fill(value any, own, hides bool) bool {
	switch value := value.(type) {
	case apiv1.Consumer:
		e.Consumer = pointerTo(value, own, hides)
		return true
	case apiv1.Offer:
		e.Offer = pointerTo(value, own, hides)
		return true
	case apiv1.Workload:
		e.Workload = pointerTo(value, own, hides)
		return true
	case apiv1.Advice:
		e.Advice = pointerTo(value, own, hides)
		return true
	case apiv1.Provider:
		e.Provider = &value
	case apiv1.Policy:
		e.Policy = &value
	case apiv1.Decision:
		e.Decision = &value
	case apiv1.Link:
		e.Link = &value
	case apiv1.Flow:
		e.Flow = &value
	case apiv1.Status:
		e.Status = &value
	}
	return !own
}

func pointerTo[T owned[T]](value T, own, hides bool) *T {
	if own {
		value = value.Own(hides)
	}
	return &value
}

// event writes an event. Without an ID, the one before counts.
func (e *eventWriter) event(id, name string, data any) {
	text := []byte("{}")
	if data != nil {
		var err error
		if text, err = json.Marshal(data); err != nil {
			e.v.cfg.Log.Error(err, "Cannot write an event")
			return
		}
	}
	if e.who.consumer != "" {
		id = ""
	}
	e.buffer = eventstream.Append(e.buffer, eventstream.Event{ID: id, Name: name, Data: text})
}

// sign writes a sign of life, with how far the watcher has come, unless it is a consumer.
func (e *eventWriter) sign(id string) {
	if e.who.consumer != "" {
		e.buffer = append(e.buffer, ": alive\n\n"...)
		return
	}
	e.buffer = fmt.Appendf(e.buffer, ": alive\nid: %s\n\n", id)
}

// flush sends what is written. It fails if the watcher does not read it in time.
func (e *eventWriter) flush() error {
	if e.failed == nil {
		e.failed = e.to.Send(e.buffer)
		e.buffer = e.buffer[:0]
	}
	return e.failed
}

// endless reports whether a request is for a stream.
func endless(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == base+eventsPath
}
