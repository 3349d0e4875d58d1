// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sink keeps events, as an API server does that takes some time for each, or does not take them.
type sink struct {
	client.Writer

	takes time.Duration
	fails bool

	mu     sync.Mutex
	events []corev1.Event
}

func (s *sink) Create(ctx context.Context, o client.Object, _ ...client.CreateOption) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.takes):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails {
		return errors.New("boom")
	}
	s.events = append(s.events, *o.(*corev1.Event))
	return nil
}

// messages returns those of all events.
func (s *sink) messages() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for i := range s.events {
		all = append(all, s.events[i].Message)
	}
	return all
}

// quietLog is a Log that writes to a sink.
func quietLog(to *sink) *Log {
	return NewLog(Config{Client: to, Component: "liqo-broker", Changes: NewMetrics(), Clock: clock.RealClock{}, Log: logr.Discard()})
}

// outcomes returns what became of changes.
func outcomes(l *Log) map[string]int {
	all := map[string]int{}
	for _, outcome := range []string{outcomeWritten, outcomeCombined, outcomeRepeated, outcomeDropped, outcomeFailed} {
		if n := testutil.ToFloat64(l.cfg.Changes.WithLabelValues(outcome)); n > 0 {
			all[outcome] = int(n)
		}
	}
	return all
}

// scheduled is a change of the scheduling of an object, which was changed so many times before.
func scheduled(by, object, from, to string, generation int) Change {
	return Change{
		User: by, Object: corev1.ObjectReference{Kind: "Provider", Name: object, UID: types.UID(object)}, Deed: Changed,
		Fields: []Field{{"spec.scheduling", from, to}}, generation: int64(generation),
	}
}

// running has a Log run in the time of a bubble while something is done, and returns it when it has ended.
func running(t *testing.T, to *sink, do func(*testing.T, *Log)) (l *Log) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		l = quietLog(to)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		do(t, l)
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestWrite(t *testing.T) {
	to := &sink{}
	l := running(t, to, func(t *testing.T, l *Log) {
		t.Helper()
		l.Tell(scheduled("alice@example.com", "a", "Active", "Drained", 1))
		l.Tell(scheduled("alice@example.com", "a", "Active", "Drained", 1)) // The API server tries it again.
		l.Tell(scheduled("alice@example.com", "a", "Drained", "Active", 2))
		l.Tell(scheduled("alice@example.com", "a", "Active", "Drained", 3))
		l.Tell(scheduled("mallory\u202e\n"+strings.Repeat("x", 1<<20), "a", "Drained", "Active", 4))
		l.Tell(scheduled("", "b", "Active", "Cordoned", 1))
		l.Tell(Change{User: "bob", Deed: Deleted, Object: corev1.ObjectReference{Kind: "Consumer", Name: strings.Repeat("c", 253)}})
		l.Tell(Change{User: "bob", Deed: Created, Object: corev1.ObjectReference{Kind: "Consumer", Name: "d"}, Fields: []Field{
			{"spec.mode", none, "Aggregated"}, {"spec.nodes", none, "PerProvider"},
		}, More: 3})
	})
	want := []string{
		"alice@example.com changed spec.scheduling: Active → Drained",
		"alice@example.com changed spec.scheduling: Drained → Active",
		"alice@example.com changed spec.scheduling: Active → Drained",
		`"mallory? ` + strings.Repeat("x", maxUser-len("mallory? ...")) + `..." changed spec.scheduling: Drained → Active`,
		"somebody who is not known changed spec.scheduling: Active → Cordoned",
		"bob deleted it",
		"bob created it with spec.mode: Aggregated, spec.nodes: PerProvider, 3 more",
	}
	if diff := cmp.Diff(want, to.messages()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{outcomeWritten: 7, outcomeRepeated: 1}, outcomes(l)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	first := to.events[0]
	if first.Namespace != "default" || first.Reason != ReasonChanged || first.Type != corev1.EventTypeNormal || first.Count != 1 ||
		first.Source.Component != "liqo-broker" || first.InvolvedObject.UID != "a" || first.FirstTimestamp.IsZero() {
		t.Errorf("%+v", first)
	}
	for i := range to.events {
		if len(to.events[i].Name) > 253 {
			t.Errorf("an event is called %s", to.events[i].Name)
		}
	}
}

// TestFlood changes one object all the time: few events are written, the last of which says how it is in the end, and those of others are
// written nevertheless.
func TestFlood(t *testing.T) {
	const changes = 20_000
	to := &sink{takes: time.Millisecond}
	l := running(t, to, func(t *testing.T, l *Log) {
		t.Helper()
		for i := range changes {
			from, into := "Active", "Drained"
			if i%2 == 1 {
				from, into = into, from
			}
			l.Tell(scheduled("mallory", "a", from, into, i+1))
			if i%10_000 == 5_000 {
				l.Tell(scheduled("alice", "a", from, into, i+1))
			}
			time.Sleep(10 * time.Millisecond) // 200 seconds in all.
		}
		time.Sleep(2 * pairEvery)
	})
	all := to.messages()
	of := func(user string) (found []string) {
		for _, message := range all {
			if strings.HasPrefix(message, user+" ") {
				found = append(found, message)
			}
		}
		return found
	}
	if n := len(of("mallory")); n < pairBurst || n > pairBurst+6 {
		t.Errorf("%d events about a flood: %q", n, all)
	}
	if n := len(of("alice")); n != 2 {
		t.Errorf("%d events about what another one did", n)
	}
	last := all[len(all)-1]
	if !strings.Contains(last, " times since ") || !strings.HasSuffix(last, " UTC, and at last changed spec.scheduling: Drained → Active") {
		t.Errorf("the last event says %q", last)
	}
	told := 0
	for i := range to.events {
		told += int(to.events[i].Count)
	}
	if got := outcomes(l); told != changes+2 || got[outcomeWritten]+got[outcomeCombined] != changes+2 || got[outcomeDropped] > 0 {
		t.Errorf("%d of %d changes are counted in events, %v", told, changes+2, got)
	}
}

// TestFloodOfObjects has somebody change ever more objects: neither events nor memory grow without bound, and another one is heard.
func TestFloodOfObjects(t *testing.T) {
	const objects = 50_000
	to := &sink{}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l := running(t, to, func(t *testing.T, l *Log) {
		t.Helper()
		for i := range objects {
			l.Tell(scheduled("mallory", fmt.Sprint(i), "Active", "Drained", 1))
			time.Sleep(time.Millisecond) // 50 seconds in all.
		}
		l.Tell(scheduled("alice", "a", "Active", "Drained", 1))
	})
	if n := len(to.events); n > userBurst+51+maxPairsEach+1 {
		t.Errorf("%d events", n)
	}
	if !slices.Contains(to.messages(), "alice changed spec.scheduling: Active → Drained") {
		t.Error("another user is not heard")
	}
	if got := outcomes(l); got[outcomeDropped] == 0 || got[outcomeDropped]+got[outcomeWritten] != objects+1 {
		t.Errorf("%v of %d", got, objects+1)
	}
	if len(l.pairs) > maxPairsEach+1 || len(l.users) > 2 {
		t.Errorf("%d pairs of %d users are remembered", len(l.pairs), len(l.users))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("%d bytes are held", grown)
	}
}

// TestFloodOfUsers has ever more users.
func TestFloodOfUsers(t *testing.T) {
	const users = 5_000
	to := &sink{}
	l := running(t, to, func(t *testing.T, l *Log) {
		t.Helper()
		for i := range users {
			l.Tell(scheduled(fmt.Sprint("user", i), "a", "Active", "Drained", i+1))
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if len(l.pairs) > maxPairs || len(l.users) > maxPairs {
			t.Errorf("%d pairs of %d users are remembered", len(l.pairs), len(l.users))
		}
		if n := len(to.events); n > allBurst+25 {
			t.Errorf("%d events", n)
		}
		time.Sleep(idle + maxPairs*allEvery)
	})
	if len(l.pairs) != 0 || len(l.users) != 0 {
		t.Errorf("%d pairs of %d users are not forgotten", len(l.pairs), len(l.users))
	}
}

// TestTellDoesNotWait holds that nobody waits for an API server that does not answer.
func TestTellDoesNotWait(t *testing.T) {
	to := &sink{takes: time.Hour}
	l := running(t, to, func(t *testing.T, l *Log) {
		t.Helper()
		began := time.Now()
		for i := range 10 * maxQueued {
			l.Tell(scheduled("alice", fmt.Sprint(i), "Active", "Drained", 1))
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("told after %s", waited)
		}
	})
	if got := outcomes(l); got[outcomeDropped] < 8*maxQueued || got[outcomeFailed] == 0 || len(to.events) > 0 {
		t.Errorf("%v", got)
	}
}

// TestFailed holds that what the API server does not take is counted, and does not hinder the next.
func TestFailed(t *testing.T) {
	to := &sink{fails: true}
	l := running(t, to, func(t *testing.T, l *Log) {
		t.Helper()
		l.Tell(scheduled("alice", "a", "Active", "Drained", 1))
		synctest.Wait()
		to.mu.Lock()
		to.fails = false
		to.mu.Unlock()
		l.Tell(scheduled("alice", "a", "Drained", "Active", 2))
	})
	if diff := cmp.Diff([]string{"alice changed spec.scheduling: Drained → Active"}, to.messages()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{outcomeFailed: 1, outcomeWritten: 1}, outcomes(l)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestEnd holds that what was told before the end is written, also what had to wait.
func TestEnd(t *testing.T) {
	to := &sink{}
	synctest.Test(t, func(t *testing.T) {
		l := quietLog(to)
		for i := range pairBurst + 5 {
			l.Tell(scheduled("alice", "a", fmt.Sprint(i), fmt.Sprint(i+1), i+1))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	all := to.messages()
	last := fmt.Sprintf(" and at last changed spec.scheduling: %d → %d", pairBurst+4, pairBurst+5)
	if len(all) != pairBurst+1 || !strings.HasSuffix(all[pairBurst], last) {
		t.Errorf("%q", all)
	}
}

// TestWithoutMetrics holds that a program without metrics says in its log for how many changes there was no room, not too often.
func TestWithoutMetrics(t *testing.T) {
	var said []string
	synctest.Test(t, func(t *testing.T) {
		log := funcr.New(func(_, line string) { said = append(said, line) }, funcr.Options{})
		l := NewLog(Config{Client: &sink{}, Component: "guard", Clock: clock.RealClock{}, Log: log})
		for range maxQueued + 7 {
			l.Tell(scheduled("alice@example.com", "a", "Active", "Drained", 1))
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		time.Sleep(10 * sayEvery)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if len(said) != 1 || !strings.Contains(said[0], `"changes"=7`) {
		t.Errorf("it says %q, want once that there was no room for 7", said)
	}
}
