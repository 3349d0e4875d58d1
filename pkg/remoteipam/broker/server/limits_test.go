// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	pb "github.com/capacitorset/liqo-broker/pkg/remoteipam/remoteipamv1"
)

// forgetful records nothing.
type forgetful struct{}

func (forgetful) RecordTunnels(context.Context, cluster.ID, map[cluster.ID]netip.Prefix) error {
	return nil
}

func (forgetful) RecordRoundTrips(context.Context, cluster.ID, map[cluster.ID]time.Duration) error {
	return nil
}

// passing is a world whose consumer leaves.
type passing struct {
	world
	left atomic.Bool
}

func (p *passing) IsConsumer(cluster.ID) bool { return !p.left.Load() }

// newServer returns a server, and the context of a call.
func newServer(t *testing.T, inventory Inventory) (*Server, context.Context) {
	t.Helper()
	s, err := New(Config{
		Broker: "broker", Inventory: inventory, Relay: &world{}, Reports: forgetful{}, Callers: &world{},
		Credentials: insecure.NewCredentials(), MaxConnections: 1, Log: logr.Discard(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, peer.NewContext(t.Context(), &peer.Peer{Addr: &netAddr{}, AuthInfo: credentials.TLSInfo{}})
}

type netAddr struct{}

func (*netAddr) Network() string { return "tcp" }
func (*netAddr) String() string  { return "192.0.2.1:1" }

// TestReportsAreBounded has a consumer tell far more often than all its virtual kubelets together.
func TestReportsAreBounded(t *testing.T) {
	for name, call := range map[string]func(context.Context, *Server) error{
		"Tunnels": func(ctx context.Context, s *Server) error {
			_, err := s.ReportTunnels(ctx, &pb.ReportTunnelsRequest{})
			return err
		},
		"RoundTrips": func(ctx context.Context, s *Server) error {
			_, err := s.ReportRoundTrips(ctx, &pb.ReportRoundTripsRequest{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, ctx := newServer(t, &world{})
				var answered, refused atomic.Int32
				for range 2 * reportsAtOnce {
					go func() {
						switch err := call(ctx, s); {
						case err == nil:
							answered.Add(1)
						case status.Code(err) == codes.ResourceExhausted:
							refused.Add(1)
						}
					}()
				}
				time.Sleep(maxDelay)
				synctest.Wait()
				// What comes too early waits, but not for long.
				const most = reportsAtOnce + reportsPerSecond*int32(maxDelay/time.Second)
				if got := answered.Load(); got < reportsAtOnce || got > most || got+refused.Load() != 2*reportsAtOnce {
					t.Errorf("%d calls are answered and %d refused, want at most %d answered", got, refused.Load(), most)
				}
			})
		})
	}
}

// routesStream takes what a Watch sends.
type routesStream struct {
	grpc.ServerStream
	ctx  context.Context
	sent atomic.Int32
}

func (r *routesStream) Context() context.Context { return r.ctx }

func (r *routesStream) Send(*pb.Routes) error {
	r.sent.Add(1)
	return nil
}

// TestWatchEndsWithThePeering has a consumer leave whose connection stays.
func TestWatchEndsWithThePeering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &passing{}
		s, ctx := newServer(t, w)
		stream, done := &routesStream{ctx: ctx}, make(chan error, 1)
		go func() { done <- s.Watch(&pb.WatchRequest{}, stream) }()
		time.Sleep(10 * checkAgain)
		synctest.Wait()
		if len(done) > 0 || stream.sent.Load() != 1 {
			t.Fatalf("a consumer is sent %d times what does not change, or no more", stream.sent.Load())
		}
		w.left.Store(true)
		left := time.Now()
		if err := <-done; status.Code(err) != codes.PermissionDenied || time.Since(left) > checkAgain {
			t.Errorf("after %s: %v", time.Since(left), err)
		}
	})
}

// TestRefusalsAreLoggedSeldom holds that nobody fills the log.
func TestRefusalsAreLoggedSeldom(t *testing.T) {
	var seen told
	begin := time.Unix(1_800_000_000, 0)
	for _, tc := range []struct {
		reason   string
		after    time.Duration
		consumer cluster.ID
		what     string
		skipped  int
		due      bool
	}{
		{"The first is logged.", 0, "a", "pace", 0, true},
		{"The next one says nothing new.", time.Second, "a", "pace", 0, false},
		{"Another one does.", time.Second, "a", "prefix", 0, true},
		{"So does the same one of somebody else.", time.Second, "b", "pace", 0, true},
		{"It goes on.", refusalsEvery - time.Second, "a", "pace", 0, false},
		{"Later it is logged again, with how many there were.", refusalsEvery, "a", "pace", 2, true},
		{"From then on it is counted again.", refusalsEvery + time.Second, "a", "pace", 0, false},
	} {
		if skipped, due := seen.due(begin.Add(tc.after), refusal{tc.consumer, tc.what}); skipped != tc.skipped || due != tc.due {
			t.Errorf("%s\nlogged %t after %d, want %t after %d", tc.reason, due, skipped, tc.due, tc.skipped)
		}
	}
}
