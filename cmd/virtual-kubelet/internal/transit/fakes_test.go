// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/liqotech/liqo/pkg/liqonet/ipam"
	"google.golang.org/grpc"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

var errNotMapped = errors.New("not mapped")

// oneRelay tells routes, and maps one address.
type oneRelay struct {
	routes   []addressing.Route
	from, to netip.Addr
}

func (r *oneRelay) Routes() []addressing.Route { return r.routes }

func (*oneRelay) Hold(string, netip.Addr) {}

func (*oneRelay) Release(string) {}

func (*oneRelay) SetTunnels(map[cluster.ID]netip.Prefix) {}

func (*oneRelay) SetRoundTrip(cluster.ID, time.Duration, time.Time) {}

func (r *oneRelay) MapRelay(_ context.Context, address netip.Addr) (netip.Addr, error) {
	if address != r.from {
		return netip.Addr{}, errNotMapped
	}
	return r.to, nil
}

func (r *oneRelay) Reported(relay netip.Addr) (netip.Addr, bool) {
	if !relay.IsValid() || relay != r.to {
		return netip.Addr{}, false
	}
	return r.from, true
}

// endpointIPAM maps every endpoint to one address.
type endpointIPAM struct{ ipam.IpamClient }

func (endpointIPAM) MapEndpointIP(context.Context, *ipam.MapRequest, ...grpc.CallOption) (*ipam.MapResponse, error) {
	return &ipam.MapResponse{Ip: "192.0.2.8"}, nil
}

func viewOf(t *testing.T, own, seen string) addressing.View {
	t.Helper()
	view, err := addressing.NewView(own, seen)
	if err != nil {
		t.Fatal(err)
	}
	return view
}
