// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client is the consumer's end of the remote IPAM. It keeps the routes
// that a broker tells, and asks it for relay addresses.
//
// It knows where the broker is and how to trust it, but not what the routes are
// used for; package addressing does.
package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/capacitorset/liqo-broker/pkg/addressing"
	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	pb "github.com/capacitorset/liqo-broker/pkg/remoteipam/remoteipamv1"
)

// ErrUnavailable means that the broker cannot be asked at the moment; asking
// again later may help.
var ErrUnavailable = errors.New("remote IPAM unavailable")

const (
	// callTimeout bounds one MapRelay. The broker answers from memory or by a
	// call on its own loopback interface.
	callTimeout = 5 * time.Second
	// retryAfter is the pause after a lost stream: short, because a relay address
	// cannot be asked for in the meantime.
	retryAfter = 2 * time.Second
	// lookAgainAfter is the pause after a foreign cluster announced nothing. Most
	// foreign clusters are no brokers and never will be.
	lookAgainAfter = 30 * time.Second

	keepaliveTime    = 20 * time.Second
	keepaliveTimeout = 10 * time.Second
)

// Config is what a [Client] needs; every field is required.
type Config struct {
	// Foreign is the cluster whose pods are to be reached. A server of another
	// cluster is not used.
	Foreign cluster.ID
	// Servers are host:port addresses; those that are not Foreign's are skipped.
	Servers []string
	// Announcement returns how Foreign announces itself, or an error that is
	// [remoteipam.ErrNoBroker].
	Announcement func(ctx context.Context) (remoteipam.Announcement, error)
	// Certificate is the identity that Foreign gave to this cluster.
	Certificate tls.Certificate
	// Changed is called after the routes have changed, by the goroutine of Run.
	Changed func()
	Log     logr.Logger
}

// Client is safe for concurrent use.
type Client struct {
	config  Config
	session atomic.Pointer[session]
	routes  atomic.Pointer[[]addressing.Route]
}

// session is an established connection to the right server.
type session struct {
	api pb.RemoteIPAMClient
}

// New returns a client that [Client.Run] connects.
func New(config Config) *Client { return &Client{config: config} }

// Routes returns the routes that the broker told last, also while it cannot be
// reached. It is nil before the broker has told any. The caller must not change
// the slice.
func (c *Client) Routes() []addressing.Route {
	if routes := c.routes.Load(); routes != nil {
		return *routes
	}
	return nil
}

// MapRelay asks for the relay address of a pod. An error that is
// [ErrUnavailable] may pass by itself; any other is a refusal.
func (c *Client) MapRelay(ctx context.Context, address netip.Addr) (netip.Addr, error) {
	current := c.session.Load()
	if current == nil {
		return netip.Addr{}, fmt.Errorf("relay address of %s: %w: no connection to the broker", address, ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := current.api.MapRelay(ctx, &pb.MapRelayRequest{Addresses: []string{address.String()}})
	if err != nil {
		return netip.Addr{}, fmt.Errorf("relay address of %s: %w: %w", address, ErrUnavailable, err)
	}
	if n := len(response.GetMappings()); n != 1 {
		return netip.Addr{}, fmt.Errorf("relay address of %s: the broker answered with %d mappings", address, n)
	}
	mapping := response.GetMappings()[0]
	if mapping.GetRefusal() != "" {
		return netip.Addr{}, fmt.Errorf("relay address of %s refused: %s", address, mapping.GetRefusal())
	}
	relay, err := netip.ParseAddr(mapping.GetRelayAddress())
	if err != nil {
		return netip.Addr{}, fmt.Errorf("relay address of %s: the broker answered %q, which is no address", address, mapping.GetRelayAddress())
	}
	return relay, nil
}

// Run keeps the client connected until the context ends. Failures are logged
// and retried; those of the broker's servers never end it.
func (c *Client) Run(ctx context.Context) {
	defer c.session.Store(nil)
	reported := ""
	for ctx.Err() == nil {
		pause := retryAfter
		err := c.connect(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, remoteipam.ErrNoBroker):
			pause = lookAgainAfter
			fallthrough
		default:
			// The same failure is told once, not every few seconds.
			if err.Error() != reported {
				reported = err.Error()
				c.config.Log.Info("Remote IPAM is not in use", "foreignCluster", c.config.Foreign, "reason", reported)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// connect follows the first server that turns out to be the foreign cluster's,
// until its stream ends. The error is never nil.
func (c *Client) connect(ctx context.Context) error {
	announcement, err := c.config.Announcement(ctx)
	if err != nil {
		return err
	}
	if announcement.Broker != c.config.Foreign {
		return fmt.Errorf("cluster %s announces itself as %s", c.config.Foreign, announcement.Broker)
	}
	roots, err := announcement.Roots()
	if err != nil {
		return err
	}
	transport := credentials.NewTLS(&tls.Config{
		MinVersion:   tls.VersionTLS13,
		ServerName:   remoteipam.ServerName,
		RootCAs:      roots,
		Certificates: []tls.Certificate{c.config.Certificate},
	})
	var failures []error
	for _, server := range c.config.Servers {
		failures = append(failures, fmt.Errorf("server %s: %w", server, c.follow(ctx, server, transport)))
	}
	return errors.Join(failures...)
}

// follow keeps the routes of one server up to date until its stream ends. The
// error is never nil.
func (c *Client) follow(ctx context.Context, server string, transport credentials.TransportCredentials) error {
	connection, err := grpc.NewClient(server,
		grpc.WithTransportCredentials(transport),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}))
	if err != nil {
		return err
	}
	// A connection that served its purpose has nothing left to fail at.
	defer connection.Close()
	defer c.session.Store(nil)

	api := pb.NewRemoteIPAMClient(connection)
	stream, err := api.Watch(ctx, &pb.WatchRequest{})
	if err != nil {
		return err
	}
	for {
		message, err := stream.Recv()
		if err != nil {
			return err
		}
		if got := cluster.ID(message.GetBrokerId()); got != c.config.Foreign {
			return fmt.Errorf("it serves for cluster %q, not for %q", got, c.config.Foreign)
		}
		routes, err := parseRoutes(message)
		if err != nil {
			return err
		}
		if c.session.Load() == nil {
			c.config.Log.Info("Remote IPAM is in use", "foreignCluster", c.config.Foreign, "server", server)
		}
		c.session.Store(&session{api: api})
		c.routes.Store(&routes)
		c.config.Changed()
	}
}

func parseRoutes(message *pb.Routes) ([]addressing.Route, error) {
	routes := make([]addressing.Route, 0, len(message.GetRoutes()))
	for _, route := range message.GetRoutes() {
		view, err := addressing.NewView(route.GetOwnPrefix(), route.GetSeenPrefix())
		if err != nil {
			return nil, fmt.Errorf("route to provider %q: %w", route.GetProviderId(), err)
		}
		routes = append(routes, addressing.Route{Provider: cluster.ID(route.GetProviderId()), Pods: view})
	}
	return routes, nil
}
