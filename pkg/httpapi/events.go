// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
	"github.com/capacitorset/liqo-broker/pkg/shown/stream"
)

const eventsPath = "/events"

// Bounds of the watchers in all, and of each caller: each holds a connection.
const maxWatchers, maxWatchersEach = 64, 4

// timing is how long what takes of a stream of events. With each heartbeat the caller's rights are looked at again.
type timing struct {
	stream.Timing

	// life is how long a stream is: then the watcher calls again, and goes on where it was.
	life time.Duration
}

var defaultTiming = timing{stream.Timing{Heartbeat: 15 * time.Second, Write: 10 * time.Second}, time.Hour}

type eventsInput struct {
	Kinds       []string `query:"kinds" required:"true" minItems:"1" maxItems:"11" uniqueItems:"true" enum:"providers,consumers,offers,policies,decisions,workloads,links,flows,advice,status,activity" doc:"What is watched, with commas between."`
	LastEventID string   `header:"Last-Event-ID" maxLength:"256" doc:"The ID of the last event that was received: the stream goes on from there."`
}

// events registers the stream of events.
func (v *v1) events() {
	op := v.describeOperation(v.api.Operation("watchEvents", http.MethodGet, eventsPath, "Watch what changes, by server-sent events",
		rest.Door(v.api, v.admitWatcher)), access{own: true})
	op.Description = "Needs the right to watch what is asked for: the resources in brokering.liqo.io are providers, consumers (also for " +
		"offers), placementpolicies, placementdecisions, workloads (also for flows), links, advice, status and activity. A consumer " +
		"watches consumers, offers, workloads and advice that are its own, by its certificate.\n\nAt first there is an event reset, an " +
		"event set for each thing that there is, and an event synced. Then there are events set and deleted. The data of set and deleted " +
		"is an Event as JSON. A watcher that calls again with the last ID goes on where it was; if that is too long ago, all begins " +
		"again. A watcher that does not read fast enough is dropped."
	v.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[apiv1.Event](), true, "Event")
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
	hides := v.hides(living, who)
	watch := stream.Stream{
		Feed: v.feed, Kinds: watched, Last: in.LastEventID, Timing: v.timing.Timing,
		Watcher: stream.Watcher{Name: who.called(), Consumer: string(who.consumer), Hides: hides},
		May: func(ctx context.Context) bool {
			again, err := v.identify(ctx, request, needed...)
			return err == nil && again == who
		},
		Same: func(ctx context.Context) bool { return v.hides(ctx, who) == hides },
	}
	if err := watch.Run(living, w); err != nil {
		v.api.RefuseIn(ctx, err)
	}
}

// endless reports whether a request is for a stream.
func endless(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == base+eventsPath
}
