// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/capacitorset/liqo-broker/pkg/serving/eventstream"
	"github.com/capacitorset/liqo-broker/pkg/serving/httpserver"
	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// Timing is how long what takes of a watch. Zero fields have the defaults.
type Timing struct {
	// Heartbeat is after how long without an event there is a sign of life; 15 s.
	Heartbeat time.Duration
	// Write is how long a watcher may take to read what is sent at once, about 64 KiB; 10 s.
	Write time.Duration
	// Life is how long a watch is: then the watcher calls again, and goes on where it was; an hour.
	Life time.Duration
}

func (t Timing) orDefault() Timing {
	return Timing{
		Heartbeat: cmp.Or(t.Heartbeat, 15*time.Second),
		Write:     cmp.Or(t.Write, 10*time.Second),
		Life:      cmp.Or(t.Life, time.Hour),
	}
}

type watchInput struct {
	Filters

	After       string `doc:"The ID of the last event that was received: the watch goes on from there. The header Last-Event-ID says the same, and counts more." maxLength:"128"        query:"after"`
	LastEventID string `doc:"As the parameter after; browsers send it."                                                                                          header:"Last-Event-ID" maxLength:"128"`
}

// watching registers the watch.
func (s *Server) watching() {
	op := s.operation("watch", http.MethodGet, registryv1.PathWatch, reads, "Watch what is offered, by server-sent events")
	op.Description = "At first there is an event snapshot, an event upsert for each party and offer that there is, and an event bookmark. " +
		"Then there are events upsert and delete, and a bookmark after some of them; and a heartbeat when nothing happens. A watcher that " +
		"calls again with the last ID goes on where it was, and gets a heartbeat at once if nothing has happened since. If too much has " +
		"happened since, or the registry has another history, all begins again with a snapshot. A filter is about offers: parties come in any " +
		"case. One with an expression that costs much makes the watch slow. A watcher that does not read fast enough is cut off."
	op.Errors = append(op.Errors, http.StatusServiceUnavailable)
	schemas := s.api.OpenAPI().Components.Schemas
	schemas.Schema(reflect.TypeFor[registryv1.Upsert](), true, "Upsert")
	schemas.Schema(reflect.TypeFor[registryv1.Delete](), true, "Delete")
	schemas.Schema(reflect.TypeFor[registryv1.Bookmark](), true, "Bookmark")
	rest.Stream(s.api, op, func(ctx context.Context, in *watchInput) (func(huma.Context), error) {
		filter, end, err := s.filtering(ctx, &in.Filters)
		if err != nil {
			return nil, err
		}
		end()
		return func(ctx huma.Context) { s.watch(ctx, filter, cmp.Or(in.LastEventID, in.After)) }, nil //nolint:contextcheck // Huma's has the other one.
	})
}

// watch sends a watcher what it watches, until it goes away, is too slow, loses its rights, or has watched for long.
func (s *Server) watch(ctx huma.Context, filter *filter, id string) {
	_, w := humago.Unwrap(ctx)
	who := callerFrom(ctx.Context())

	// A place among the watchers. Who has one is bounded by it, and not by the connections.
	leave, ok := s.watchers.Enter(who.source())
	if !ok {
		s.metrics.watches.WithLabelValues("refused").Inc()
		s.api.RefuseIn(
			ctx, rest.Later(http.StatusTooManyRequests, fmt.Sprintf(messageTooManyWatches, s.cfg.Limits.WatchersEach, s.cfg.Limits.Watchers), "10"),
		)
		return
	}
	defer leave()
	if c, ok := ctx.Context().Value(connectionKey{}).(net.Conn); ok && who.party != nil {
		httpserver.Known(c)
	}
	living, cancel := context.WithTimeout(ctx.Context(), s.timing.Life)
	defer cancel()

	// Who goes on from what this replica has not come to waits for it: what there was before is no news.
	if err := s.catchUp(living, id); err != nil {
		s.cfg.Log.Error(err, "Cannot let a watch go on", "caller", who.called())
		s.api.RefuseIn(ctx, rest.Later(http.StatusServiceUnavailable, messageBehind, "1"))
		return
	}

	// The stream.
	watcher := s.journal.Watch(s.wants(living, who, filter), id)
	s.metrics.watches.WithLabelValues(map[bool]string{true: "resumed", false: "snapshot"}[watcher.Resumes()]).Inc()
	s.metrics.watching.Inc()
	defer s.metrics.watching.Dec()
	s.attached.Add(1)
	defer s.attached.Add(-1)
	out := eventstream.Begin(w, s.timing.Write)
	wait := s.timing.Heartbeat
	if watcher.Resumes() {
		wait = 0 // It learns at once that nothing has happened since it was here.
	}
	for ; ; wait = s.timing.Heartbeat {
		err := watcher.Next(living, wait, func(events []byte) error {
			if err := s.may(s.callerOf(who, who.fingerprint), reads, ""); err != nil {
				return err
			}
			if err := out.Send(events); err != nil {
				s.metrics.cutOff.Inc()
				return err
			}
			s.metrics.sent.Add(float64(len(events)))
			return nil
		})
		if err != nil {
			return // It calls again, or has gone.
		}
	}
}

// catchUp waits until the journal is as the store is now, if it has not come to the ID of an event.
func (s *Server) catchUp(ctx context.Context, id string) error {
	if id == "" || s.journal.View().Covers(id) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	revision, err := s.cfg.Store.Revision(ctx)
	if err != nil {
		return err
	}
	_, err = s.journal.At(ctx, revision)
	return err
}

// endless reports whether a request is for a stream.
func endless(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == registryv1.Base+registryv1.PathWatch
}
