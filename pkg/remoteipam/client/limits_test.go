// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	pb "github.com/capacitorset/liqo-broker/pkg/remoteipam/remoteipamv1"
)

// with returns a client with a connection of its own and a certificate.
func (f *federation) with(t *testing.T, certificate tls.Certificate) pb.RemoteIPAMClient {
	t.Helper()
	roots, err := f.announcement.Roots()
	if err != nil {
		t.Fatal(err)
	}
	connection, err := grpc.NewClient(f.address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: remoteipam.ServerName, RootCAs: roots, Certificates: []tls.Certificate{certificate},
	})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return pb.NewRemoteIPAMClient(connection)
}

// works fails the test unless the consumer gets the relay address of its pod soon.
func (f *federation) works(t *testing.T, reason string, api pb.RemoteIPAMClient) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	response, err := api.MapRelay(ctx, &pb.MapRelayRequest{Addresses: []string{podOfConsumer.String()}})
	if err != nil || response.GetMappings()[0].GetRelayAddress() != relayAddress.String() {
		t.Errorf("%s: the other consumer gets %v, %v", reason, response, err)
	}
}

// TestWhoseCertificateCounts shows certificates of the right CA with the consumer's name.
func TestWhoseCertificateCounts(t *testing.T) {
	f := newFederation(t)
	issued, forged := issue(t, f.authority, consumer, time.Now().Add(time.Hour)), issue(t, f.authority, consumer, time.Now().Add(time.Hour))
	leaf, err := x509.ParseCertificate(issued.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	f.issued[consumer] = remoteipam.KeyHash(leaf.RawSubjectPublicKeyInfo)
	cases := map[string]struct {
		reason      string
		certificate tls.Certificate
		want        codes.Code
	}{
		"Issued": {"the one that the broker's Liqo wrote down", issued, codes.OK},
		"Forged": {"one that another cluster had signed for this name", forged, codes.PermissionDenied},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api := f.with(t, tc.certificate)
			if _, err := api.MapRelay(t.Context(), &pb.MapRelayRequest{}); status.Code(err) != tc.want {
				t.Errorf("%s: MapRelay: %v, want %s", tc.reason, err, tc.want)
			}
			stream, err := api.Watch(t.Context(), &pb.WatchRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); status.Code(err) != tc.want {
				t.Errorf("%s: Watch: %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
}

// TestStreamsAreBounded opens many streams on one connection.
func TestStreamsAreBounded(t *testing.T) {
	f := newFederation(t)
	api := f.raw(t, consumer)
	var last grpc.ServerStreamingClient[pb.Routes]
	for i := range 100 {
		stream, err := api.Watch(t.Context(), &pb.WatchRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatalf("the newest Watch ended: %v", err)
		}
		if last != nil {
			if _, err := last.Recv(); status.Code(err) != codes.Canceled {
				t.Fatalf("Watch %d goes on beside the one after it: %v", i-1, err)
			}
		}
		last = stream
	}
	f.works(t, "after many streams", api)
}

// TestCallsAtATimeAreBounded has more calls wait on one connection than it may have.
func TestCallsAtATimeAreBounded(t *testing.T) {
	f := newFederation(t)
	certificate := issue(t, f.authority, consumer, time.Now().Add(time.Hour))
	api := f.with(t, certificate)
	var all sync.WaitGroup
	for range cap(f.reports.tunnels) + 32 {
		all.Go(func() { _, _ = api.ReportTunnels(t.Context(), &pb.ReportTunnelsRequest{}) }) // Nobody takes the reports.
	}
	defer func() {
		done := make(chan struct{})
		go func() {
			for range f.reports.tunnels {
			}
			close(done)
		}()
		all.Wait()
		close(f.reports.tunnels)
		<-done
	}()
	for begin := time.Now(); ; {
		soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := api.MapRelay(soon, &pb.MapRelayRequest{})
		cancel()
		if status.Code(err) == codes.DeadlineExceeded {
			break
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("beside %d calls that wait, another one ends with %v", cap(f.reports.tunnels)+32, err)
		}
	}
	f.works(t, "on another connection", f.with(t, certificate))
}

// TestConnectionsAreBounded opens many connections, as one consumer and as nobody.
func TestConnectionsAreBounded(t *testing.T) {
	f := newFederation(t)
	certificate := issue(t, f.authority, stranger, time.Now().Add(time.Hour))
	open := 0
	for range 2 * maxConnections {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if _, err := f.with(t, certificate).MapRelay(ctx, &pb.MapRelayRequest{}); err == nil {
			open++
		}
		cancel()
	}
	if open != maxConnections {
		t.Errorf("one consumer has %d connections, want %d", open, maxConnections)
	}
	f.works(t, "beside a consumer with many connections", f.raw(t, consumer))

	closed := make(chan struct{}, 200)
	for range cap(closed) {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", f.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go func() {
			_, _ = c.Read(make([]byte, 1))
			closed <- struct{}{}
		}()
	}
	late := time.After(5 * time.Second) // Those that are let in are closed as well, but not so soon.
	for n := range cap(closed) / 2 {
		select {
		case <-closed:
		case <-late:
			t.Fatalf("%d of %d connections that say nothing were closed", n, cap(closed))
		}
	}
}

// TestCallsAreBounded calls as often as it can.
func TestCallsAreBounded(t *testing.T) {
	f := newFederation(t)
	batch := &pb.MapRelayRequest{}
	for range remoteipam.MaxBatch {
		batch.Addresses = append(batch.Addresses, "10.201.0.7")
	}
	apis := make([]pb.RemoteIPAMClient, maxConnections)
	certificate := issue(t, f.authority, stranger, time.Now().Add(time.Hour))
	for i := range apis {
		apis[i] = f.with(t, certificate)
	}
	var answered, refused atomic.Int32
	var all sync.WaitGroup
	for i := range 400 {
		all.Go(func() {
			switch _, err := apis[i%len(apis)].MapRelay(t.Context(), batch); {
			case err == nil:
				answered.Add(1)
			case status.Code(err) == codes.ResourceExhausted:
				refused.Add(1)
			default:
				t.Errorf("MapRelay: %v", err)
			}
		})
	}
	f.works(t, "beside a consumer that calls on and on", f.raw(t, consumer))
	all.Wait()
	if refused.Load() == 0 || answered.Load() == 0 {
		t.Errorf("%d calls were answered and %d refused", answered.Load(), refused.Load())
	}
}

// TestHonestBurst has all virtual kubelets of a consumer call at once, as they do when the
// broker comes back.
func TestHonestBurst(t *testing.T) {
	f := newFederation(t)
	done := make(chan struct{})
	go func() {
		for range f.reports.tunnels {
		}
		close(done)
	}()
	certificate := issue(t, f.authority, consumer, time.Now().Add(time.Hour))
	batch := &pb.MapRelayRequest{}
	for range 100 {
		batch.Addresses = append(batch.Addresses, podOfConsumer.String())
	}
	var all sync.WaitGroup
	for range maxConnections {
		api := f.with(t, certificate)
		all.Go(func() {
			stream, err := api.Watch(t.Context(), &pb.WatchRequest{})
			if err == nil {
				_, err = stream.Recv()
			}
			for range 30 { // 3,000 pods on each virtual node.
				if err == nil {
					_, err = api.MapRelay(t.Context(), batch)
				}
			}
			for range 5 {
				if err == nil {
					_, err = api.ReportTunnels(t.Context(), &pb.ReportTunnelsRequest{})
				}
			}
			if err != nil {
				t.Errorf("an honest virtual kubelet is refused: %v", err)
			}
		})
	}
	all.Wait()
	close(f.reports.tunnels)
	<-done
}

// TestRefusalsTellNothing looks at what callers are told when the broker cannot map.
func TestRefusalsTellNothing(t *testing.T) {
	secret := errors.New("which cluster 7c0f1a reached at 10.202.0.9")
	f := newFederationWith(t, func(cluster.ID, netip.Addr) (netip.Addr, error) {
		return netip.Addr{}, fmt.Errorf("map it for cluster consumer: %w", secret)
	})
	response, err := f.raw(t, consumer).MapRelay(t.Context(), &pb.MapRelayRequest{
		Addresses: []string{podOfConsumer.String(), podOfStranger.String(), strings.Repeat("x", 1000)},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"the broker cannot map it at the moment", "not the address of a pod that the consumer offloaded", "it is not an IP address",
	}
	for i, mapping := range response.GetMappings() {
		if got := mapping.GetRefusal(); got != want[i] {
			t.Errorf("refusal %q, want %q", got, want[i])
		}
	}
}
