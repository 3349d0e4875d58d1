// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
	"github.com/capacitorset/liqo-broker/pkg/shown/showntest"
	"github.com/capacitorset/liqo-broker/test/apiclient"
)

func operationID(op *huma.Operation) *string {
	if op == nil {
		return nil
	}
	return &op.OperationID
}

// event is an event as a browser would have it.
type event struct{ id, name, data string }

// events is a stream of events.
type events struct {
	lines  *bufio.Reader
	last   string // The last ID.
	status int
	header http.Header
	leave  func()
}

// next reads some events.
func (s *events) next(t *testing.T, count int) []event {
	t.Helper()
	var all []event
	var e event
	for len(all) < count {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			t.Fatalf("after %d of %d events: %v", len(all), count, err)
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			s.last = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "":
			if e.name != "" {
				e.id = s.last
				all = append(all, e)
			}
			e = event{}
		}
	}
	return all
}

// ends waits until the stream ends as it should.
func (s *events) ends(t *testing.T) {
	t.Helper()
	if _, err := io.Copy(io.Discard, s.lines); err != nil {
		t.Errorf("the stream ends with %v", err)
	}
}

// watch begins to watch some kinds, or providers, after an event.
func (s *served) watch(
	t *testing.T, ctx context.Context, as *apiclient.ClientWithResponses, id string, kinds ...apiclient.WatchEventsParamsKinds,
) *events {
	t.Helper()
	params := &apiclient.WatchEventsParams{Kinds: append(kinds, "providers")[:max(1, len(kinds))]}
	if id != "" {
		params.LastEventID = &id
	}
	answer, err := as.WatchEvents(ctx, params)
	if err != nil {
		t.Fatal(err)
	}
	leave := func() { _ = answer.Body.Close() }
	t.Cleanup(leave)
	return &events{lines: bufio.NewReader(answer.Body), status: answer.StatusCode, header: answer.Header, leave: leave}
}

// schedule changes a provider behind the API's back.
func (s *served) schedule(t *testing.T, id cluster.ID, to v1alpha1.Scheduling) {
	t.Helper()
	var p v1alpha1.Provider
	if err := s.client.Get(t.Context(), client.ObjectKey{Name: string(id)}, &p); err != nil {
		t.Fatal(err)
	}
	p.Spec.Scheduling = to
	if err := s.client.Update(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	s.changed(t)
}

// TestWatch watches, goes away, comes back, and comes back too late.
func TestWatch(t *testing.T) {
	s := serve(t, nil, showntest.World()...)
	c := s.as(t, "operator", nil)
	ctx, cancel := context.WithCancel(t.Context())
	stream := s.watch(t, ctx, c, "")
	if stream.status != http.StatusOK || stream.header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %s", stream.status, stream.header)
	}
	begin := stream.next(t, 4)
	if begin[0].name != "reset" || begin[1].name != "set" || begin[2].name != "set" || begin[3].name != "synced" {
		t.Fatalf("the stream begins with %v", begin)
	}
	s.schedule(t, milan.ID, v1alpha1.SchedulingDrained)
	changed := stream.next(t, 1)[0]
	if changed.name != "set" || !strings.Contains(changed.data, `"key":"hidden-milan"`) || !strings.Contains(changed.data, `"Drained"`) {
		t.Fatalf("after a change: %v", changed)
	}

	// It goes away, and misses something.
	cancel()
	s.schedule(t, turin.ID, v1alpha1.SchedulingCordoned)
	if err := s.client.Delete(t.Context(), showntest.NewProvider(milan)); err != nil {
		t.Fatal(err)
	}
	s.changed(t)
	stream = s.watch(t, t.Context(), c, changed.id)
	missed := stream.next(t, 2)
	if !strings.Contains(missed[0].data, "Cordoned") || missed[0].name != "set" || missed[1].name != "deleted" ||
		!strings.Contains(missed[1].data, "hidden-milan") {
		t.Errorf("what it missed: %v", missed)
	}

	// What is not remembered begins again, and so does what somebody else has seen.
	for _, id := range []string{"0", "junk", "a.b.c", strings.Replace(changed.id, ".", ".9", 1), begin[0].id} {
		stream = s.watch(t, t.Context(), s.as(t, "watch/providers", nil), id)
		if again := stream.next(t, 3); again[0].name != "reset" || again[2].name != "synced" {
			t.Errorf("after %q: %v", id, again)
		}
		stream.leave()
	}
}

// TestHeartbeat waits without events: there are signs of life with an ID.
func TestHeartbeat(t *testing.T) {
	s := serve(t, nil)
	stream := s.watch(t, t.Context(), s.as(t, "operator", nil), "")
	id := stream.next(t, 2)[1].id
	for range 3 {
		for {
			line, err := stream.lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if line == "id: "+id+"\n" {
				break
			}
		}
	}
}

// TestWatchersLoseTheirRights takes the right away from somebody who watches.
func TestWatchersLoseTheirRights(t *testing.T) {
	var gone atomic.Bool
	s := serve(t, func(cfg *Config) {
		cfg.Identify = func(context.Context, *tls.ConnectionState) (cluster.ID, error) {
			if gone.Load() {
				return "", ErrNoConsumer
			}
			return sees.ID, nil
		}
	}, showntest.World()...)
	stream := s.watch(t, t.Context(), s.consumer(t, sees.ID), "", "workloads")
	stream.next(t, 3)
	gone.Store(true)
	stream.ends(t)
}

// TestFloodOfWatchers opens more streams than there may be.
func TestFloodOfWatchers(t *testing.T) {
	s := serve(t, nil, showntest.World()...)
	c := s.as(t, "operator", nil)
	for range maxWatchersEach {
		stream := s.watch(t, t.Context(), c, "")
		stream.next(t, 1)
	}
	refused := s.watch(t, t.Context(), c, "")
	if refused.status != http.StatusTooManyRequests || refused.header.Get("Retry-After") == "" ||
		refused.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("one too many: %d %s", refused.status, refused.header)
	}
	stream := s.watch(t, t.Context(), s.as(t, "watch/providers", nil), "")
	if stream.status != http.StatusOK {
		t.Fatalf("somebody else: %d", stream.status)
	}
	stream.next(t, 4)
}

// TestSlowWatchersAreDropped has one that reads nothing, while much changes.
func TestSlowWatchersAreDropped(t *testing.T) {
	s := serve(t, nil, showntest.World()...)
	s.v1.timing.Write = 100 * time.Millisecond
	stream := s.watch(t, t.Context(), s.as(t, "operator", nil), "")
	stream.next(t, 4)
	deadline := time.Now().Add(20 * time.Second)
	left := func() bool { // All places are free.
		for range maxWatchersEach {
			leave, ok := s.v1.watchers.Enter(source.Caller("user operator"))
			if !ok {
				return false
			}
			defer leave()
		}
		return true
	}
	for i := 0; !left(); i++ {
		if time.Now().After(deadline) {
			t.Fatal("it holds its place though it does not read")
		}
		var p v1alpha1.Provider
		if err := s.client.Get(t.Context(), client.ObjectKey{Name: string(milan.ID)}, &p); err != nil {
			t.Fatal(err)
		}
		p.Status.ClusterName = strings.Repeat("x", 3<<20) + string(rune('a'+i%26))
		if err := s.client.Status().Update(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
		s.changed(t)
	}
	stream.leave()
}

// TestStreamsEndWithTheMode has a consumer watch while its mode changes: what it sees from then on begins again.
func TestStreamsEndWithTheMode(t *testing.T) {
	s := serve(t, nil, showntest.World()...)
	stream := s.watch(t, t.Context(), s.consumer(t, sees.ID), "", "workloads")
	stream.next(t, 3)
	var consumer v1alpha1.Consumer
	if err := s.client.Get(t.Context(), client.ObjectKey{Name: string(sees.ID)}, &consumer); err != nil {
		t.Fatal(err)
	}
	consumer.Spec.Mode, consumer.Status.Mode = v1alpha1.ModeAggregated, v1alpha1.ModeAggregated
	if err := s.client.Update(t.Context(), &consumer); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Status().Update(t.Context(), &consumer); err != nil {
		t.Fatal(err)
	}
	stream.ends(t)
}
