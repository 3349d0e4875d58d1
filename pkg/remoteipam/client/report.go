// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"maps"
	"math"
	"net/netip"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	pb "github.com/capacitorset/liqo-broker/pkg/remoteipam/remoteipamv1"
	"github.com/capacitorset/liqo-broker/pkg/wake"
)

// reportTimeout bounds one report, for which the broker writes one object for
// each provider.
const reportTimeout = 10 * time.Second

// tunnels are the prefixes under which other clusters see the consumer's pods,
// over tunnels that carry traffic.
type tunnels struct {
	mu       sync.Mutex
	prefixes map[cluster.ID]netip.Prefix
	// roundTrips are what was measured in them.
	roundTrips map[cluster.ID]roundTrip
	// stale is set when what was reported may be outdated.
	stale wake.Signal
}

// roundTrip is a round-trip time, and when it was measured.
type roundTrip struct {
	took time.Duration
	at   time.Time
}

func newTunnels() tunnels {
	return tunnels{roundTrips: map[cluster.ID]roundTrip{}, stale: wake.New()}
}

func (t *tunnels) changed() { t.stale.Set() }

// SetTunnels tells under which prefixes other clusters see the consumer's pods,
// over tunnels that carry traffic. The broker learns of it what concerns the
// providers that it told itself. The caller must not change the map any more.
func (c *Client) SetTunnels(prefixes map[cluster.ID]netip.Prefix) {
	c.tunnels.mu.Lock()
	c.tunnels.prefixes = prefixes
	c.tunnels.mu.Unlock()
	c.tunnels.changed()
}

// reportable returns the prefixes at the providers that the broker told.
func (c *Client) reportable() map[cluster.ID]netip.Prefix {
	c.tunnels.mu.Lock()
	defer c.tunnels.mu.Unlock()
	prefixes := map[cluster.ID]netip.Prefix{}
	for _, route := range c.Routes() {
		if prefix, ok := c.tunnels.prefixes[route.Provider]; ok {
			prefixes[route.Provider] = prefix
		}
	}
	return prefixes
}

// report tells the broker about the tunnels, at first and after each change,
// until the context ends or the broker turns out not to know the call. Failures
// are logged, and tried again.
func (c *Client) report(ctx context.Context, api pb.RemoteIPAMClient) {
	var reported map[cluster.ID]netip.Prefix
	var retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.tunnels.stale.Taken():
		case <-retry:
		}
		retry = nil
		wanted := c.reportable()
		if reported != nil && maps.Equal(reported, wanted) {
			continue
		}
		err := sendTunnels(ctx, api, wanted)
		switch {
		case err == nil:
			reported = wanted
		case ctx.Err() != nil || status.Code(err) == codes.Unimplemented:
			return
		case status.Code(err) == codes.InvalidArgument:
			// To say it again does not help: the broker relays what it does not believe.
			c.config.Log.Info("The broker refused some of the tunnels to providers; it relays what could go directly",
				"foreignCluster", c.config.Foreign, "reason", err.Error())
			reported = wanted
		default:
			c.config.Log.Info("Cannot report the tunnels to providers; the broker relays what could go directly",
				"foreignCluster", c.config.Foreign, "reason", err.Error())
			retry = time.After(retryAfter)
		}
	}
}

func sendTunnels(ctx context.Context, api pb.RemoteIPAMClient, prefixes map[cluster.ID]netip.Prefix) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	request := &pb.ReportTunnelsRequest{}
	for provider, prefix := range prefixes {
		request.Tunnels = append(request.Tunnels, &pb.Tunnel{ProviderId: string(provider), PodPrefix: prefix.String()})
	}
	_, err := api.ReportTunnels(ctx, request)
	return err
}

// roundTripsEvery is how often round-trip times are told.
const roundTripsEvery = time.Minute

// SetRoundTrip tells what was measured in the tunnel to another cluster, and when; a
// time of zero, that there is nothing to measure.
func (c *Client) SetRoundTrip(id cluster.ID, took time.Duration, at time.Time) {
	c.tunnels.mu.Lock()
	defer c.tunnels.mu.Unlock()
	if took <= 0 {
		delete(c.tunnels.roundTrips, id)
		return
	}
	c.tunnels.roundTrips[id] = roundTrip{took, at}
}

// measured returns what is to be told: of the providers that the broker told, and
// measured a moment ago.
func (c *Client) measured(now time.Time) []*pb.RoundTrip {
	c.tunnels.mu.Lock()
	defer c.tunnels.mu.Unlock()
	var trips []*pb.RoundTrip
	for _, route := range c.Routes() {
		trip, ok := c.tunnels.roundTrips[route.Provider]
		fresh := ok && now.Sub(trip.at).Abs() <= kpi.MaxRoundTripAge
		if microseconds := max(1, trip.took.Microseconds()); fresh && microseconds <= math.MaxUint32 {
			trips = append(trips, &pb.RoundTrip{ProviderId: string(route.Provider), Microseconds: uint32(microseconds)})
		}
	}
	return trips
}

// reportRoundTrips tells the broker round-trip times, at first and then every so often,
// until the context ends or the broker turns out not to know the call. What it cannot
// tell expires on the broker.
func (c *Client) reportRoundTrips(ctx context.Context, api pb.RemoteIPAMClient) {
	told := false
	for tick := time.After(0); ; tick = time.After(roundTripsEvery) {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		trips := c.measured(time.Now())
		if len(trips) == 0 && !told {
			continue
		}
		told = len(trips) > 0
		err := c.sendRoundTrips(ctx, api, trips)
		if ctx.Err() != nil || status.Code(err) == codes.Unimplemented {
			return
		}
		if err != nil {
			c.config.Log.Info("Cannot report the round-trip times to providers; the broker chooses providers without them",
				"foreignCluster", c.config.Foreign, "reason", err.Error())
		}
	}
}

func (c *Client) sendRoundTrips(ctx context.Context, api pb.RemoteIPAMClient, trips []*pb.RoundTrip) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	_, err := api.ReportRoundTrips(ctx, &pb.ReportRoundTripsRequest{RoundTrips: trips})
	return err
}
