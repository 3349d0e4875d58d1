// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceplugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 10 * time.Second

// ledger has accounts that a test can change.
type ledger struct {
	mu       sync.Mutex
	accounts map[cluster.ID]capacity.Account
	nodes    map[cluster.ID][]capacity.Node
	err      error
	// strangers are the clusters that are no peers.
	strangers map[cluster.ID]bool
}

func (l *ledger) IsPeer(_ context.Context, id cluster.ID) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.strangers[id], nil
}

func newLedger() *ledger { return &ledger{accounts: map[cluster.ID]capacity.Account{}} }

func (l *ledger) offers(context.Context) (Offers, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return capacity.NewSnapshot(maps.Clone(l.accounts), nil, maps.Clone(l.nodes), nil), l.err
}

func (l *ledger) set(provider cluster.ID, cpu string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accounts[provider] = capacity.Account{
		Offers: capacity.OffersAll, Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
	}
}

// harness is a running server and clients of it.
type harness struct {
	t      *testing.T
	server *Server
	ledger *ledger
	listen *bufconn.Listener
}

func start(t *testing.T, synced Synced) *harness {
	t.Helper()
	h := &harness{t: t, ledger: newLedger(), listen: bufconn.Listen(1 << 16)}
	h.server = New(h.ledger.offers, h.ledger, synced, time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.server.Run(ctx, h.listen) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run(): %v", err)
		}
	})
	return h
}

func (h *harness) dial() *grpc.ClientConn {
	h.t.Helper()
	conn, err := grpc.NewClient("passthrough:broker",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return h.listen.DialContext(ctx) }))
	if err != nil {
		h.t.Fatalf("NewClient(): %v", err)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// subscriber asks and is notified over one connection, as Liqo does.
type subscriber struct {
	h      *harness
	client *liqotest.ResourceReaderClient
	ids    <-chan cluster.ID
	known  map[cluster.ID]bool
	end    func()
}

func (h *harness) subscribe() *subscriber {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	ids := make(chan cluster.ID, 16)
	done := make(chan struct{})
	client := liqotest.NewResourceReaderClient(h.dial())
	go func() {
		defer close(done)
		_ = client.Subscribe(ctx, func(id cluster.ID) error { ids <- id; return nil })
	}()
	s := &subscriber{h: h, client: client, ids: ids, known: map[cluster.ID]bool{}, end: func() { cancel(); <-done }}
	h.t.Cleanup(s.end)
	if got := h.next(ids); got != "" {
		h.t.Fatalf("the first notification names %q, want all consumers", got)
	}
	return s
}

// read reads what consumers are offered, and is notified for those that it has read for the first time.
func (s *subscriber) read(consumers ...cluster.ID) {
	s.h.t.Helper()
	var first []cluster.ID
	for _, consumer := range consumers {
		if _, err := s.client.Read(s.h.t.Context(), consumer); err != nil {
			s.h.t.Fatalf("Read(%s): %v", consumer, err)
		}
		if !s.known[consumer] {
			first = append(first, consumer)
		}
		s.known[consumer] = true
	}
	for range first {
		if id := s.h.next(s.ids); !slices.Contains(first, id) {
			s.h.t.Errorf("notified for %q, want those of %v", id, first)
		}
	}
}

// expect waits for a notification, and checks whom it names.
func (s *subscriber) expect(want cluster.ID) {
	s.h.t.Helper()
	if got := s.h.next(s.ids); got != want {
		s.h.t.Errorf("notified for %q, want %q", got, want)
	}
}

// silent checks that there is no notification.
func (s *subscriber) silent(reason string) {
	s.h.t.Helper()
	select {
	case id := <-s.ids:
		s.h.t.Errorf("notified for %q: %s", id, reason)
	case <-time.After(50 * time.Millisecond):
	}
}

func (h *harness) next(ids <-chan cluster.ID) cluster.ID {
	h.t.Helper()
	select {
	case id := <-ids:
		return id
	case <-time.After(patience):
		h.t.Fatal("no notification")
		return ""
	}
}

func (h *harness) read(consumer cluster.ID) corev1.ResourceList {
	h.t.Helper()
	pools, err := liqotest.NewResourceReaderClient(h.dial()).Read(h.t.Context(), consumer)
	if err != nil || len(pools) != 1 {
		h.t.Fatalf("Read(%s): %d pools, %v", consumer, len(pools), err)
	}
	return pools[0].Resources
}

func ready(context.Context) bool { return true }

func TestRead(t *testing.T) {
	h := start(t, ready)
	h.ledger.set("a", "1500m")
	h.ledger.set("b", "2")
	cases := map[string]struct {
		reason   string
		consumer cluster.ID
		cpu      string
	}{
		"Stranger": {reason: "A consumer is offered the sum.", consumer: "c", cpu: "3500m"},
		"Provider": {reason: "A provider is not offered its own.", consumer: "a", cpu: "2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(tc.cpu), corev1.ResourceMemory: {}, corev1.ResourcePods: {},
			}
			if diff := cmp.Diff(want, h.read(tc.consumer)); diff != "" {
				t.Errorf("%s\nRead(): -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNamedAfterAll names a consumer when it was asked about for the first time on a connection: Liqo asks to compare when it is notified
// for all, and drops what is less than a whole unit then.
func TestNamedAfterAll(t *testing.T) {
	h := start(t, ready)
	h.ledger.set("a", "250m")
	s := h.subscribe()
	if _, err := s.client.Read(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	s.expect("c")
	if _, err := s.client.Read(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	s.silent("it was named already")
}

// TestPools gives a consumer a node for each of two providers.
func TestPools(t *testing.T) {
	h := start(t, ready)
	h.ledger.set("a", "1500m")
	h.ledger.set("b", "2")
	nodes := []capacity.Node{{Name: "node-a", Provider: "a", Open: true}, {Name: "node-b", Provider: "b", Open: true}, {Name: "gone"}}
	h.ledger.nodes = map[cluster.ID][]capacity.Node{"c": nodes}
	s := h.subscribe()
	told := func() map[string]int64 {
		t.Helper()
		pools, err := s.client.Read(t.Context(), "c")
		if err != nil {
			t.Fatalf("Read(): %v", err)
		}
		told := map[string]int64{}
		for _, p := range pools {
			if len(p.Resources) != 3 {
				t.Errorf("pool %s has %v, and Liqo needs cpu, memory and pods", p.Name, p.Resources)
			}
			told[p.Name] = p.Resources.Cpu().MilliValue()
		}
		return told
	}
	if diff := cmp.Diff(map[string]int64{"node-a": 1500, "node-b": 2000, "gone": 0}, told()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	s.expect("c") // It was asked about for the first time.
	h.ledger.mu.Lock()
	h.ledger.nodes["c"] = []capacity.Node{{Name: "node-a", Provider: "a"}, nodes[1], nodes[2]}
	h.ledger.mu.Unlock()
	h.server.Changed()
	s.expect("c")
	if diff := cmp.Diff(map[string]int64{"node-a": 0, "node-b": 2000, "gone": 0}, told()); diff != "" {
		t.Errorf("after a node was closed: -want +got\n%s", diff)
	}
}

func TestReadErrors(t *testing.T) {
	cases := map[string]struct {
		reason   string
		consumer cluster.ID
		synced   Synced
		err      error
		waits    time.Duration // Zero for patience.
		want     []codes.Code
	}{
		"NoID": {reason: "A consumer has an ID.", synced: ready, want: []codes.Code{codes.InvalidArgument}},
		"NotSynced": {
			reason: "A broker that knows nothing does not answer zero.", consumer: "c", synced: waitForEnd, waits: 100 * time.Millisecond,
			want: []codes.Code{codes.DeadlineExceeded, codes.Unavailable},
		},
		"GivenUp": {
			reason: "A broker that cannot know says so.", consumer: "c", synced: func(context.Context) bool { return false },
			want: []codes.Code{codes.Unavailable},
		},
		"Broken": {
			reason: "A failure to read is not zero either.", consumer: "c", synced: ready, err: errors.New("boom"),
			want: []codes.Code{codes.Internal},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := start(t, tc.synced)
			h.ledger.err = tc.err
			waits := patience
			if tc.waits != 0 {
				waits = tc.waits
			}
			ctx, cancel := context.WithTimeout(t.Context(), waits)
			defer cancel()
			_, err := liqotest.NewResourceReaderClient(h.dial()).Read(ctx, tc.consumer)
			if got := status.Code(err); !slices.Contains(tc.want, got) {
				t.Errorf("%s\nRead(): %v, want one of the codes %v", tc.reason, err, tc.want)
			}
		})
	}
}

func waitForEnd(ctx context.Context) bool { <-ctx.Done(); return false }

func TestSeveralSubscribers(t *testing.T) {
	h := start(t, ready)
	h.ledger.set("a", "1")
	first, second := h.subscribe(), h.subscribe()
	first.read("c", "a")
	second.read("c", "a")

	h.ledger.set("a", "2")
	h.server.Changed()
	for _, s := range []*subscriber{first, second} {
		s.expect("c")
		s.silent("what a is offered has not changed")
	}

	first.end()
	for deadline := time.Now().Add(patience); h.server.Subscribers() != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d subscribers, want the one that is left", h.server.Subscribers())
		}
	}
	second.read("c")
	h.ledger.set("a", "3")
	h.server.Changed()
	second.expect("c")
}

// TestAnotherCallerMutesNobody lets another caller ask what a subscriber is yet to be told.
func TestAnotherCallerMutesNobody(t *testing.T) {
	h := start(t, ready)
	h.ledger.set("a", "1")
	liqos, other := h.subscribe(), h.subscribe()
	liqos.read("c")
	h.ledger.set("a", "2")
	other.read("c")
	if err := other.client.Remove(t.Context(), "c"); err != nil {
		t.Fatalf("Remove(): %v", err)
	}
	h.server.Changed()
	liqos.expect("c")
	other.silent("it has no business with the consumer any more")
}

// TestStrangersAreNobody asks about clusters that are no peers, and about one that was.
func TestStrangersAreNobody(t *testing.T) {
	h := start(t, ready)
	h.ledger.set("a", "1")
	s := h.subscribe()
	s.read("gone")
	h.ledger.mu.Lock()
	h.ledger.strangers = map[cluster.ID]bool{"stranger": true, "gone": true}
	h.ledger.mu.Unlock()
	for _, id := range []cluster.ID{"stranger", "gone"} {
		if pools, err := s.client.Read(t.Context(), id); status.Code(err) != codes.NotFound {
			t.Errorf("Read(%s): %v, %v, want a refusal", id, pools, err)
		}
	}
	h.ledger.set("a", "2")
	h.server.Changed()
	s.silent("a cluster that is no peer is offered nothing")
}

func TestRemovedConsumerIsForgotten(t *testing.T) {
	h := start(t, ready)
	s := h.subscribe()
	s.read("c", "d")
	if err := s.client.Remove(t.Context(), "c"); err != nil {
		t.Fatalf("Remove(): %v", err)
	}
	h.ledger.set("a", "1")
	h.server.Changed()
	s.expect("d")
	s.silent("c is forgotten")
}

func TestSlowSubscriberBlocksNobody(t *testing.T) {
	h := start(t, ready)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	entered := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.server.Subscribe(ctx, func(cluster.ID) error { close(entered); <-ctx.Done(); return ctx.Err() })
	}()
	<-entered
	for range 1000 {
		h.server.Changed()
	}
	cancel()
	<-done
}

func TestHealth(t *testing.T) {
	h := start(t, ready)
	answer, err := healthv1.NewHealthClient(h.dial()).Check(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil || answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("Check(): %v, %v", answer, err)
	}
}

// TestBurst changes an offer a thousand times in a moment: the subscriber is
// notified at once, and then once in a pause, the last time after the last change.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const changes, every, pause = 1000, 5 * time.Millisecond, time.Second
		l := newLedger()
		l.set("p", "1")
		s := New(l.offers, l, ready, pause)
		ctx, cancel := context.WithCancel(withSession(t.Context()))
		began := time.Now()
		var at []time.Duration
		var told corev1.ResourceList
		read := func(consumer cluster.ID) error {
			at = append(at, time.Since(began))
			pools, err := s.Read(ctx, consumer)
			if err == nil {
				told = pools[0].Resources
			}
			return err
		}
		if err := read("c"); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			done <- s.Subscribe(ctx, func(consumer cluster.ID) error {
				if consumer == "" {
					return nil
				}
				return read(consumer)
			})
		}()
		synctest.Wait()
		at = nil
		for n := range changes {
			l.set("p", fmt.Sprint(2+n))
			s.Changed()
			time.Sleep(every)
		}
		time.Sleep(2 * pause)
		synctest.Wait()
		cancel()
		if err := <-done; status.Code(err) != codes.Canceled {
			t.Errorf("Subscribe(): %v", err)
		}
		if len(at) == 0 || at[0] != 0 {
			t.Errorf("notified after %v, want at once", at)
		}
		for i := 1; i < len(at); i++ {
			if gap := at[i] - at[i-1]; gap < pause {
				t.Errorf("notified again after %s", gap)
			}
		}
		if cpu := told.Cpu().Value(); cpu != changes+1 {
			t.Errorf("the consumer was told of %d cores last, want %d", cpu, changes+1)
		}
	})
}
