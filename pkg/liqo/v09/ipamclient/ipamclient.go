// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ipamclient asks the IPAM of a Liqo installation for addresses. It is apart from package v09 because what Liqo's IPAM is made of
// is large. It does not know what the addresses are for.
package ipamclient

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/liqotech/liqo/pkg/liqonet/ipam"
	goipam "github.com/metal-stack/go-ipam"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// ErrExternalCIDRFull means that Liqo's IPAM has no address left to give out.
var ErrExternalCIDRFull = errors.New("the external CIDR is full")

// Client calls the IPAM of the Liqo installation of this cluster. It is safe for
// concurrent use.
type Client struct {
	client     ipam.IpamClient
	connection *grpc.ClientConn
}

// New returns a client of the IPAM at host:port. It connects at the first
// call; Liqo's IPAM speaks plain text and knows no callers.
func New(target string) (*Client, error) {
	connection, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to Liqo's IPAM at %s: %w", target, err)
	}
	return &Client{client: ipam.NewIpamClient(connection), connection: connection}, nil
}

// Close ends the connection.
func (i *Client) Close() error { return i.connection.Close() }

// MapRelay returns the address, in this cluster's external CIDR as the consumer
// sees it, that leads the consumer to the given address. Liqo keeps the mapping
// and answers the same to the same question
// (liqo/pkg/liqonet/ipam/ipam.go@v0.9.4, mapIPToExternalCIDR). An error may be
// [ErrExternalCIDRFull].
func (i *Client) MapRelay(ctx context.Context, consumer cluster.ID, address netip.Addr) (netip.Addr, error) {
	response, err := i.client.MapEndpointIP(ctx, &ipam.MapRequest{ClusterID: string(consumer), Ip: address.String()})
	if err != nil && strings.Contains(err.Error(), goipam.ErrNoIPAvailable.Error()) {
		// The text is all that comes over gRPC.
		return netip.Addr{}, fmt.Errorf("map %s for cluster %s in Liqo's IPAM: %w", address, consumer, ErrExternalCIDRFull)
	}
	if err != nil {
		return netip.Addr{}, fmt.Errorf("map %s for cluster %s in Liqo's IPAM: %w", address, consumer, err)
	}
	relay, err := netip.ParseAddr(response.GetIp())
	if err != nil {
		return netip.Addr{}, fmt.Errorf("map %s for cluster %s in Liqo's IPAM: it answered %q: %w", address, consumer, response.GetIp(), err)
	}
	return relay, nil
}

// UnmapRelay frees what MapRelay made; it does nothing if there is no mapping.
func (i *Client) UnmapRelay(ctx context.Context, consumer cluster.ID, address netip.Addr) error {
	_, err := i.client.UnmapEndpointIP(ctx, &ipam.UnmapRequest{ClusterID: string(consumer), Ip: address.String()})
	if err != nil {
		return fmt.Errorf("unmap %s for cluster %s in Liqo's IPAM: %w", address, consumer, err)
	}
	return nil
}
