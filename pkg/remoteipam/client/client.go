// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client is the consumer's end of the remote IPAM. It keeps the routes
// that a broker tells, asks it for relay addresses, and tells it which providers
// reach the consumer past the broker.
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
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	pb "github.com/capacitorset/liqo-broker/pkg/remoteipam/remoteipamv1"
)

// ErrUnavailable means that the broker cannot be asked at the moment; asking
// again later may help.
var ErrUnavailable = errors.New("remote IPAM unavailable")

const (
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
	// Relayed reports whether a pod at an address is reached through the broker, so
	// that its relay address will be asked for. It must answer from memory.
	Relayed func(netip.Addr) bool
	Log     logr.Logger
}

// Client is safe for concurrent use.
type Client struct {
	config  Config
	session atomic.Pointer[session]
	routes  atomic.Pointer[[]addressing.Route]
	relays  *relays
	tunnels tunnels
}

// session is an established connection to the right server.
type session struct {
	api pb.RemoteIPAMClient
}

// New returns a client that [Client.Run] connects.
func New(config Config) *Client {
	c := &Client{config: config, tunnels: newTunnels()}
	c.relays = newRelays(c.mapRelays, config.Relayed)
	return c
}

// Routes returns the routes that the broker told last, also while it cannot be
// reached. It is nil before the broker has told any. The caller must not change
// the slice.
func (c *Client) Routes() []addressing.Route {
	if routes := c.routes.Load(); routes != nil {
		return *routes
	}
	return nil
}

// Hold tells that a pod of the foreign cluster has an address; one that is not
// valid means none. The key names the pod. Relay addresses are remembered for as
// long as a pod holds theirs.
func (c *Client) Hold(pod string, address netip.Addr) { c.relays.hold(pod, address) }

// Release tells that a pod is gone.
func (c *Client) Release(pod string) { c.relays.release(pod) }

// MapRelay returns the relay address of a pod, and asks for it if it is not
// known. While the broker cannot be reached, what it said before goes on to be
// the answer. An error that is [ErrUnavailable] may pass by itself; any other is
// a refusal.
func (c *Client) MapRelay(ctx context.Context, address netip.Addr) (netip.Addr, error) {
	relay, err := c.relays.getRelay(ctx, address)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("relay address of %s: %w", address, err)
	}
	return relay, nil
}

// Reported returns the address of the pod to which a relay address leads; false if none
// that is held is known to have it. It asks nobody.
func (c *Client) Reported(relay netip.Addr) (netip.Addr, bool) { return c.relays.reported(relay) }

// mapRelays makes one call for many addresses.
func (c *Client) mapRelays(ctx context.Context, addresses []netip.Addr) ([]answer, error) {
	current := c.session.Load()
	if current == nil {
		return nil, fmt.Errorf("%w: no connection to the broker", ErrUnavailable)
	}
	request := &pb.MapRelayRequest{}
	for _, address := range addresses {
		request.Addresses = append(request.Addresses, address.String())
	}
	response, err := current.api.MapRelay(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if n := len(response.GetMappings()); n != len(addresses) {
		return nil, fmt.Errorf("%w: the broker answered %d addresses with %d mappings", ErrUnavailable, len(addresses), n)
	}
	answers := make([]answer, len(addresses))
	for i, mapping := range response.GetMappings() {
		answers[i] = parseMapping(mapping)
	}
	return answers, nil
}

func parseMapping(mapping *pb.RelayMapping) answer {
	if mapping.GetRefusal() != "" {
		return answer{err: fmt.Errorf("refused: %.*q", maxShown, mapping.GetRefusal())}
	}
	relay, err := netip.ParseAddr(mapping.GetRelayAddress())
	if err != nil || relay.Zone() != "" || relay.Is4In6() || !relay.IsGlobalUnicast() {
		return answer{err: fmt.Errorf("the broker answered %.*q, which is not the address of a pod", maxShown, mapping.GetRelayAddress())}
	}
	return answer{relay: relay}
}

const (
	// maxShown is how much is shown of a text of the broker.
	maxShown = 256
	// maxRoutes is how many providers a broker may have.
	maxRoutes = 10_000
	// maxID is the length of a cluster ID, which is the name of an object.
	maxID = 253
)

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

	// The stream is the session: while it lasts, relay addresses are asked for and reports are sent over the same connection.
	group, ctx := errgroup.WithContext(ctx)
	api := pb.NewRemoteIPAMClient(connection)
	stream, err := api.Watch(ctx, &pb.WatchRequest{})
	if err != nil {
		return err
	}
	group.Go(func() error {
		for {
			message, err := stream.Recv()
			if err != nil {
				return err
			}
			if err := c.receive(message); err != nil {
				return err
			}
			// The session begins with the first message: before it, the server may still refuse this cluster.
			if c.session.Load() == nil {
				c.config.Log.Info("Remote IPAM is in use", "foreignCluster", c.config.Foreign, "server", server)
				c.relays.renew()
				c.session.Store(&session{api: api})
				group.Go(func() error {
					c.report(ctx, api)
					return nil
				})
				group.Go(func() error {
					c.reportRoundTrips(ctx, api)
					return nil
				})
			}
			c.tunnels.changed()
			c.config.Changed()
		}
	})
	return group.Wait()
}

// receive takes over the routes of a message of the right server.
func (c *Client) receive(message *pb.Routes) error {
	if got := cluster.ID(message.GetBrokerId()); got != c.config.Foreign {
		return fmt.Errorf("it serves for cluster %.*q, not for %q", maxShown, got, c.config.Foreign)
	}
	routes, err := parseRoutes(message)
	if err != nil {
		return err
	}
	c.routes.Store(&routes)
	return nil
}

func parseRoutes(message *pb.Routes) ([]addressing.Route, error) {
	if n := len(message.GetRoutes()); n > maxRoutes {
		return nil, fmt.Errorf("it sent %d routes, more than %d", n, maxRoutes)
	}
	routes := make([]addressing.Route, 0, len(message.GetRoutes()))
	for _, route := range message.GetRoutes() {
		if id := route.GetProviderId(); id == "" || len(id) > maxID {
			return nil, fmt.Errorf("route to %.*q, which is not a cluster ID", maxShown, id)
		}
		view, err := addressing.NewView(route.GetOwnPrefix(), route.GetSeenPrefix())
		if err != nil {
			return nil, fmt.Errorf("route to provider %q: %.*s", route.GetProviderId(), maxShown, err)
		}
		routes = append(routes, addressing.Route{
			Provider: cluster.ID(route.GetProviderId()), Name: shownName(route.GetProviderName()), Pods: view,
		})
	}
	return routes, nil
}

// shownName returns a name as people are shown it: clusters choose theirs themselves.
func shownName(name string) string {
	name = strings.ToValidUTF8(name[:min(len(name), maxID)], "")
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, name)
}
