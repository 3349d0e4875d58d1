// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/callers"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/inventory"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/relay"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/server"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/client"
	pb "github.com/capacitorset/liqo-broker/pkg/remoteipam/remoteipamv1"
	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
)

const (
	broker   = cluster.ID("broker")
	consumer = cluster.ID("consumer")
	stranger = cluster.ID("stranger")
	provider = cluster.ID("provider")

	// maxConnections is how many one consumer may have.
	maxConnections = 8
)

var (
	podOfConsumer = netip.MustParseAddr("10.90.0.13")
	podOfStranger = netip.MustParseAddr("10.90.0.14")
	relayAddress  = netip.MustParseAddr("10.202.0.1")
)

// published is where the broker's API server publishes an authority.
func published(a *servingtest.Authority) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"},
		Data:       map[string]string{"client-ca-file": a.PEM()},
	}
}

// issue returns a certificate as Liqo has the authority issue it.
func issue(t *testing.T, a *servingtest.Authority, name cluster.ID, notAfter time.Time) tls.Certificate {
	t.Helper()
	return *a.Sign(t, notAfter, string(name), "liqo.io")
}

// onePod is an IPAM that knows the relay address of one pod of one consumer.
type onePod struct {
	relay.IPAM
	relay.Mappings
	// answer is what it does instead.
	answer func(cluster.ID, netip.Addr) (netip.Addr, error)
}

func (o onePod) MapRelay(_ context.Context, id cluster.ID, address netip.Addr) (netip.Addr, error) {
	if o.answer != nil {
		return o.answer(id, address)
	}
	if id != consumer || address != podOfConsumer {
		return netip.Addr{}, fmt.Errorf("unexpected question for %s by %s", address, id)
	}
	return relayAddress, nil
}

func (onePod) Behind(context.Context, cluster.ID, netip.Addr) ([]netip.Addr, error) {
	return []netip.Addr{podOfConsumer}, nil
}

func (onePod) Held(context.Context, cluster.ID, netip.Addr) (int, bool, error) { return 0, false, nil }

// identities are the certificates that the broker issued.
type identities struct {
	*callers.Callers
	// issued are the keys by cluster; any key counts for one that is not there.
	issued map[cluster.ID]string
}

func (i identities) Check(_ context.Context, id cluster.ID, connection *tls.ConnectionState) error {
	if key, ok := i.issued[id]; ok && key != remoteipam.KeyHash(connection.PeerCertificates[0].RawSubjectPublicKeyInfo) {
		return callers.ErrNotIssued
	}
	return nil
}

// federation is a broker with a remote IPAM on loopback, two consumers and a
// provider.
type federation struct {
	authority *servingtest.Authority
	// issued are the keys of those consumers of which not any key counts.
	issued       map[cluster.ID]string
	store        *inventory.Store
	address      string
	announcement remoteipam.Announcement
	reports      reports
}

type report struct {
	consumer cluster.ID
	prefixes map[cluster.ID]netip.Prefix
}

// reports get what consumers tell of their tunnels, and how far they say that providers are.
type reports struct {
	tunnels    chan report
	roundTrips chan map[cluster.ID]time.Duration
}

func (r reports) RecordTunnels(_ context.Context, id cluster.ID, prefixes map[cluster.ID]netip.Prefix) error {
	r.tunnels <- report{id, prefixes}
	return nil
}

func (r reports) RecordRoundTrips(_ context.Context, id cluster.ID, took map[cluster.ID]time.Duration) error {
	if id != consumer {
		return errors.New("the wrong consumer")
	}
	r.roundTrips <- took
	return nil
}

func newFederation(t *testing.T) *federation {
	t.Helper()
	return newFederationWith(t, nil)
}

// newFederationWith returns one whose IPAM answers otherwise.
func newFederationWith(t *testing.T, answer func(cluster.ID, netip.Addr) (netip.Addr, error)) *federation {
	t.Helper()
	f := &federation{
		authority: servingtest.NewAuthority(t), store: inventory.NewStore(), issued: map[cluster.ID]string{},
		reports: reports{tunnels: make(chan report, 16), roundTrips: make(chan map[cluster.ID]time.Duration, 16)},
	}
	pods, err := addressing.NewView("10.200.0.0/16", "10.90.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	f.store.SetPeer(provider, addressing.Peer{Pods: pods, Connected: true})
	f.store.SetProvider(provider, "mi\x1b[2Jlan"+strings.Repeat("ö", 200))
	f.store.SetConsumer(consumer, true)
	f.store.SetConsumer(stranger, false)
	f.store.SetTwin("shop", consumer)
	f.store.SetTwin("other", stranger)
	f.store.SetPod("shop", "web", podOfConsumer)
	f.store.SetPod("other", "web", podOfStranger)

	authorities, err := callers.NewAuthorities(t.Context(), kubefake.NewSimpleClientset(published(f.authority)), runner{t}, testr.New(t))
	if err != nil {
		t.Fatal(err)
	}
	certificate, ca := servingtest.Certificate(t, remoteipam.ServerName)
	f.announcement = remoteipam.Announcement{Broker: broker, CA: ca}
	s, err := server.New(server.Config{
		Broker:      broker,
		Inventory:   f.store,
		Relay:       relay.NewAllocator(onePod{answer: answer}, f.store, onePod{}, onePod{}, relay.DefaultLimit),
		Reports:     f.reports,
		Credentials: credentials.NewTLS(server.TLSConfig(certificate, authorities.Pool)),
		Callers:     identities{callers.New(authorities, nil), f.issued},
		Told:        []error{relay.ErrNotOffloaded},
		Log:         testr.New(t),

		MaxConnections: maxConnections,
	})
	if err != nil {
		t.Fatal(err)
	}
	f.address = servingtest.Serve(t, s.Serve)
	return f
}

// runner runs what it is given until the test ends.
type runner struct{ t *testing.T }

func (r runner) Add(runnable manager.Runnable) error {
	servingtest.Run(r.t, runnable.Start)
	return nil
}

// dial runs a client and returns it with a channel that gets a token whenever
// its routes change, and the number of lines that it logged.
func (f *federation) dial(
	t *testing.T, foreign cluster.ID, certificate tls.Certificate, servers ...string,
) (*client.Client, <-chan struct{}) {
	t.Helper()
	changed := make(chan struct{}, 16)
	c := f.client(t, foreign, certificate, func() { changed <- struct{}{} }, servers...)
	servingtest.Run(t, func(ctx context.Context) error {
		c.Run(ctx)
		return nil
	})
	return c, changed
}

// client returns a client that is not connected.
func (f *federation) client(
	t *testing.T, foreign cluster.ID, certificate tls.Certificate, changed func(), servers ...string,
) *client.Client {
	t.Helper()
	return client.New(client.Config{
		Foreign: foreign,
		Servers: servers,
		Announcement: func(context.Context) (remoteipam.Announcement, error) {
			if foreign != broker {
				return remoteipam.Announcement{}, remoteipam.ErrNoBroker
			}
			return f.announcement, nil
		},
		Certificate: certificate,
		Changed:     changed,
		Relayed:     func(netip.Addr) bool { return true },
		Log:         testr.New(t),
	})
}

func await(t *testing.T, changed <-chan struct{}) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(10 * time.Second):
		t.Fatal("the routes did not change within 10 s")
	}
}

var equatePrefixes = cmpopts.EquateComparable(netip.Prefix{}, addressing.View{})

func TestRoutesFollowTheBroker(t *testing.T) {
	f := newFederation(t)
	c, changed := f.dial(t, broker, issue(t, f.authority, consumer, time.Now().Add(time.Hour)), f.address)
	await(t, changed)
	pods, _ := addressing.NewView("10.200.0.0/16", "10.90.0.0/16")
	shown := "mi[2Jlan" + strings.Repeat("ö", 26) + "..." // Cut, and without what moves a cursor.
	if diff := cmp.Diff([]addressing.Route{{Provider: provider, Name: shown, Pods: pods}}, c.Routes(), equatePrefixes); diff != "" {
		t.Errorf("the routes that the broker tells (-want +got):\n%s", diff)
	}

	f.store.DeletePeer(provider)
	await(t, changed)
	if got := c.Routes(); len(got) != 0 {
		t.Errorf("a provider that left is still a route: %v", got)
	}
}

func TestOpaqueBrokerTellsNoRoute(t *testing.T) {
	f := newFederation(t)
	c, changed := f.dial(t, broker, issue(t, f.authority, stranger, time.Now().Add(time.Hour)), f.address)
	await(t, changed)
	if got := c.Routes(); len(got) != 0 {
		t.Errorf("an aggregated consumer learns the routes %v", got)
	}
	f.store.SetConsumer(stranger, true)
	await(t, changed)
	if got := c.Routes(); len(got) != 1 {
		t.Errorf("a consumer that became orchestrated learns %d routes, want 1", len(got))
	}
}

func TestMapRelay(t *testing.T) {
	f := newFederation(t)
	c, changed := f.dial(t, broker, issue(t, f.authority, consumer, time.Now().Add(time.Hour)), f.address)
	await(t, changed)

	got, err := c.MapRelay(t.Context(), podOfConsumer)
	if err != nil || got != relayAddress {
		t.Errorf("MapRelay(own pod) = %s, %v; want %s", got, err, relayAddress)
	}
	for name, address := range map[string]netip.Addr{
		"another consumer's pod": podOfStranger,
		"nobody's address":       netip.MustParseAddr("10.201.0.7"),
	} {
		if got, err := c.MapRelay(t.Context(), address); err == nil {
			t.Errorf("MapRelay(%s) = %s, want a refusal", name, got)
		} else if errors.Is(err, client.ErrUnavailable) {
			t.Errorf("MapRelay(%s) is unavailable, want a refusal: %v", name, err)
		}
	}
	f.store.SetPod("shop", "web", netip.Addr{})
	if got, err := c.MapRelay(t.Context(), podOfConsumer); err == nil {
		t.Errorf("MapRelay of a pod that is gone = %s, want a refusal", got)
	}
}

func TestWhoIsRefused(t *testing.T) {
	cases := map[string]struct {
		reason      string
		foreign     cluster.ID
		certificate func(*federation) tls.Certificate
	}{
		"NoCertificate": {reason: "a caller without identity", foreign: broker,
			certificate: func(*federation) tls.Certificate { return tls.Certificate{} }},
		"AnotherCA": {reason: "an identity that the broker did not issue", foreign: broker,
			certificate: func(*federation) tls.Certificate {
				return issue(t, servingtest.NewAuthority(t), consumer, time.Now().Add(time.Hour))
			}},
		"Expired": {reason: "an identity that ended", foreign: broker,
			certificate: func(f *federation) tls.Certificate {
				return issue(t, f.authority, consumer, time.Now().Add(-time.Minute))
			}},
		"NoConsumer": {reason: "a certificate of the right CA that is no consumer's", foreign: broker,
			certificate: func(f *federation) tls.Certificate {
				return issue(t, f.authority, "system:node:x", time.Now().Add(time.Hour))
			}},
		"NoBroker": {reason: "the virtual kubelet of a directly peered provider must not use the flag", foreign: provider,
			certificate: func(f *federation) tls.Certificate { return issue(t, f.authority, consumer, time.Now().Add(time.Hour)) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFederation(t)
			c, changed := f.dial(t, tc.foreign, tc.certificate(f), f.address)
			select {
			case <-changed:
				t.Errorf("%s learned the routes %v", tc.reason, c.Routes())
			case <-time.After(500 * time.Millisecond):
			}
			if _, err := c.MapRelay(t.Context(), podOfConsumer); !errors.Is(err, client.ErrUnavailable) {
				t.Errorf("%s: MapRelay = %v, want ErrUnavailable", tc.reason, err)
			}
		})
	}
}

func TestTunnelsAreReported(t *testing.T) {
	f := newFederation(t)
	next := func(step string, want map[cluster.ID]netip.Prefix) {
		t.Helper()
		select {
		case got := <-f.reports.tunnels:
			if diff := cmp.Diff(report{consumer, want}, got, cmp.AllowUnexported(report{}), cmpopts.EquateEmpty(),
				cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", step, diff)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: no report within 10 s", step)
		}
	}
	prefix := netip.MustParsePrefix("10.83.0.0/16")
	c, changed := f.dial(t, broker, issue(t, f.authority, consumer, time.Now().Add(time.Hour)), f.address)
	await(t, changed)
	next("the first report replaces what was told before a restart", nil)
	c.SetTunnels(map[cluster.ID]netip.Prefix{provider: prefix, "private": prefix})
	next("a tunnel to a cluster that the broker did not tell is none of its business", map[cluster.ID]netip.Prefix{provider: prefix})
	c.SetTunnels(map[cluster.ID]netip.Prefix{"private": prefix})
	next("the tunnel was lost", nil)
	c.SetTunnels(map[cluster.ID]netip.Prefix{provider: prefix})
	next("the tunnel came back", map[cluster.ID]netip.Prefix{provider: prefix})
	f.store.DeletePeer(provider)
	next("the provider left the broker", nil)
}

// raw returns what a caller could send that is not our client.
func (f *federation) raw(t *testing.T, caller cluster.ID) pb.RemoteIPAMClient {
	t.Helper()
	roots, err := f.announcement.Roots()
	if err != nil {
		t.Fatal(err)
	}
	connection, err := grpc.NewClient(f.address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: remoteipam.ServerName, RootCAs: roots,
		Certificates: []tls.Certificate{issue(t, f.authority, caller, time.Now().Add(time.Hour))},
	})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return pb.NewRemoteIPAMClient(connection)
}

func TestReportsAreChecked(t *testing.T) {
	f := newFederation(t)
	cases := map[string]struct {
		reason string
		caller cluster.ID
		tunnel *pb.Tunnel
		want   codes.Code
	}{
		"OwnRoute": {
			"a provider that the broker told to the caller", consumer, &pb.Tunnel{ProviderId: string(provider), PodPrefix: "10.83.0.0/16"}, codes.OK,
		},
		"NoRoute": {
			"a cluster that the broker did not tell", consumer, &pb.Tunnel{ProviderId: "victim", PodPrefix: "10.83.0.0/16"}, codes.PermissionDenied,
		},
		"Opaque": {
			"a caller to whom the broker tells no provider cannot find one out", stranger,
			&pb.Tunnel{ProviderId: string(provider), PodPrefix: "10.83.0.0/16"}, codes.PermissionDenied,
		},
		"Taken": {
			"the provider's own pods are there", consumer, &pb.Tunnel{ProviderId: string(provider), PodPrefix: "10.200.7.0/24"},
			codes.InvalidArgument,
		},
		"Public": {
			"no pods are there", consumer, &pb.Tunnel{ProviderId: string(provider), PodPrefix: "169.254.0.0/16"}, codes.InvalidArgument,
		},
		"NoPrefix":   {"hostile until parsed", consumer, &pb.Tunnel{ProviderId: string(provider), PodPrefix: "10.83.0.0"}, codes.InvalidArgument},
		"NoConsumer": {"a certificate of the right CA that is no consumer's", "system:node:x", &pb.Tunnel{}, codes.PermissionDenied},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := f.raw(t, tc.caller).ReportTunnels(t.Context(), &pb.ReportTunnelsRequest{Tunnels: []*pb.Tunnel{tc.tunnel}})
			if got := status.Code(err); got != tc.want {
				t.Errorf("%s: %v, want %s", tc.reason, err, tc.want)
			}
			if tc.want == codes.PermissionDenied {
				return // Nothing is recorded.
			}
			if got := (<-f.reports.tunnels).prefixes; len(got) > 0 != (tc.want == codes.OK) {
				t.Errorf("%s: %v was recorded", tc.reason, got)
			}
		})
	}
}

func TestRoundTripsAreReported(t *testing.T) {
	f := newFederation(t)
	// Known before the client connects, so that the first report has it.
	c := f.client(t, broker, issue(t, f.authority, consumer, time.Now().Add(time.Hour)), func() {}, f.address)
	c.SetRoundTrip(provider, 1234500*time.Nanosecond, time.Now())
	c.SetRoundTrip("private", time.Second, time.Now())
	servingtest.Run(t, func(ctx context.Context) error { c.Run(ctx); return nil })
	select {
	case got := <-f.reports.roundTrips:
		if diff := cmp.Diff(map[cluster.ID]time.Duration{provider: 1234 * time.Microsecond}, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no report within 10 s")
	}
}

func TestRoundTripsAreChecked(t *testing.T) {
	f := newFederation(t)
	of := func(id cluster.ID, microseconds uint32) []*pb.RoundTrip {
		return []*pb.RoundTrip{{ProviderId: string(id), Microseconds: microseconds}}
	}
	cases := map[string]struct {
		reason string
		caller cluster.ID
		trips  []*pb.RoundTrip
		want   codes.Code
	}{
		"OwnRoute":   {"a provider that the broker told to the caller", consumer, of(provider, 1), codes.OK},
		"Longest":    {"a satellite of a satellite", consumer, of(provider, 60_000_000), codes.OK},
		"Nothing":    {"it has no tunnels any more", consumer, nil, codes.OK},
		"Zero":       {"no time is no measurement", consumer, of(provider, 0), codes.InvalidArgument},
		"Absurd":     {"nobody waits for that", consumer, of(provider, 60_000_001), codes.InvalidArgument},
		"OneOfTwo":   {"refused as a whole", consumer, append(of(provider, 5), of(provider, 0)...), codes.InvalidArgument},
		"NoRoute":    {"a cluster that the broker did not tell", consumer, of("victim", 5), codes.PermissionDenied},
		"Opaque":     {"a caller to whom the broker tells no provider cannot find one out", stranger, of(provider, 5), codes.PermissionDenied},
		"NoConsumer": {"a certificate of the right CA that is no consumer's", "system:node:x", nil, codes.PermissionDenied},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := f.raw(t, tc.caller).ReportRoundTrips(t.Context(), &pb.ReportRoundTripsRequest{RoundTrips: tc.trips})
			if got := status.Code(err); got != tc.want {
				t.Errorf("%s: %v, want %s", tc.reason, err, tc.want)
			}
			if got := len(f.reports.roundTrips); (got == 1) != (tc.want == codes.OK) {
				t.Errorf("%s: %d reports", tc.reason, got)
			}
			for len(f.reports.roundTrips) > 0 {
				<-f.reports.roundTrips
			}
		})
	}
}

func TestSecondServer(t *testing.T) {
	f, other := newFederation(t), newFederation(t)
	c, changed := f.dial(t, broker, issue(t, f.authority, consumer, time.Now().Add(time.Hour)), other.address, f.address)
	await(t, changed)
	if len(c.Routes()) != 1 {
		t.Errorf("the routes of the second server are %v", c.Routes())
	}
}

func TestReportsAFailureOnce(t *testing.T) {
	var lines atomic.Int32
	c := client.New(client.Config{
		Foreign: provider,
		Servers: []string{"127.0.0.1:1"},
		Announcement: func(context.Context) (remoteipam.Announcement, error) {
			return remoteipam.Announcement{}, remoteipam.ErrNoBroker
		},
		Changed: func() {},
		Relayed: func(netip.Addr) bool { return true },
		Log: testr.NewWithInterface(logFunc(func(line string) {
			if strings.Contains(line, "not in use") {
				lines.Add(1)
			}
		}), testr.Options{}),
	})
	servingtest.Run(t, func(ctx context.Context) error {
		c.Run(ctx)
		return nil
	})
	for deadline := time.Now().Add(10 * time.Second); lines.Load() == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
	if got := lines.Load(); got != 1 {
		t.Errorf("a foreign cluster that is no broker was reported %d times, want once", got)
	}
}

// logFunc is a testing.T as far as testr needs one.
type logFunc func(line string)

func (logFunc) Helper()           {}
func (f logFunc) Log(args ...any) { f(fmt.Sprint(args...)) }
