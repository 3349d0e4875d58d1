// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package uiserver serves a page and its data on loopback to the one person who has started it. Other users of the machine, and pages of
// other origins in the person's browser, reach the same port: the page is anybody's, its data is for who has a key, and a key is given once
// for a code that only the person sees.
//
// It does not know what the data is.
package uiserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/capacitorset/liqo-broker/pkg/serving/httpserver"
)

// Data is below this path.
const dataPath = "/api/"

// sessionPath is where a code is exchanged for a key, and linkPath where another link is asked for.
const sessionPath, linkPath = "/session", "/session/link"

// Bounds of what programs of the same machine can take.
const (
	maxConnections = 128
	answerTimeout  = 30 * time.Second
	askedEvery     = 10 * time.Second
)

// DefaultIdle is after how long without a request and a stream a server ends.
const DefaultIdle = 12 * time.Hour

// Config is what is served.
type Config struct {
	// Page answers everybody: it has no names in it.
	Page http.Handler
	// Data answers requests below /api/ of who has the key. A request to a path that ends with "/events" is answered for as long as both
	// sides wish.
	Data http.Handler
	// Idle is after how long without a request and a stream of who has a key the server ends; zero for DefaultIdle.
	Idle time.Duration
	// Asked is called with a new link when a page has none that counts and asks for one, at most every ten seconds. It is to be shown where
	// the person sees it, and nobody else.
	Asked func(link string)
}

// Server is a server on loopback. Its methods may be used concurrently.
type Server struct {
	cfg       Config
	listeners []net.Listener
	port      uint16
	lock      lock
	idle      idle
	asking    *rate.Limiter
}

// ErrIdle means that nobody has asked for anything for long.
var ErrIdle = errors.New("nobody has used the page for long")

// Listen returns a server on a port of 127.0.0.1, and of ::1 where the machine has that; zero is a port that is free. Both are ours or
// none: a browser that resolves "localhost" otherwise must not meet somebody else.
func Listen(ctx context.Context, port uint16, cfg Config) (*Server, error) {
	s := &Server{cfg: cfg, lock: lock{now: time.Now}, asking: rate.NewLimiter(rate.Every(askedEvery), 1)}
	s.idle.after = cmp.Or(cfg.Idle, DefaultIdle)
	six, err := hasIPv6()
	if err != nil {
		return nil, err
	}
	// A port that is free on one address only is another one's.
	const tries = 16
	for range tries {
		if s.listeners, err = listen(ctx, port, six); err == nil {
			s.port = portOf(s.listeners[0])
			return s, nil
		} else if port != 0 {
			return nil, err
		}
	}
	return nil, err
}

// hasIPv6 reports whether the machine has ::1.
func hasIPv6() (bool, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false, fmt.Errorf("look whether there is ::1: %w", err)
	}
	return slices.ContainsFunc(all, func(a net.Addr) bool {
		n, is := a.(*net.IPNet)
		return is && n.IP.Equal(net.IPv6loopback)
	}), nil
}

// listen returns listeners on the same port of 127.0.0.1 and, if there is that, ::1.
func listen(ctx context.Context, port uint16, six bool) ([]net.Listener, error) {
	var config net.ListenConfig
	four, err := config.Listen(ctx, "tcp4", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port).String())
	if err != nil || !six {
		return []net.Listener{four}, wrapped(err)
	}
	other, err := config.Listen(ctx, "tcp6", netip.AddrPortFrom(netip.IPv6Loopback(), portOf(four)).String())
	if err != nil {
		return nil, errors.Join(wrapped(err), four.Close())
	}
	return []net.Listener{four, other}, nil
}

func wrapped(err error) error {
	if err != nil {
		err = fmt.Errorf("listen on loopback: %w", err)
	}
	return err
}

// portOf returns the port of a listener.
func portOf(l net.Listener) uint16 {
	at, _ := netip.ParseAddrPort(l.Addr().String()) // It is on TCP.
	return at.Port()
}

// Address is where the page is, without a code.
func (s *Server) Address() string { return "http://" + s.hosts()[0] + "/" }

// Link returns the address of a route of the page, with a new code: those before it count no more. It opens the page once, within
// CodeLife.
func (s *Server) Link(route string) string {
	link := s.Address() + "#code=" + s.lock.code()
	if route != "" {
		link += "&to=/" + strings.TrimPrefix(route, "/")
	}
	return link
}

// hosts are what browsers call the server.
func (s *Server) hosts() []string {
	port := strconv.Itoa(int(s.port))
	hosts := []string{"127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port}
	if s.port == 80 { // Browsers leave it out.
		hosts = append(hosts, "127.0.0.1", "localhost", "[::1]")
	}
	return hosts
}

// Run serves until ctx ends, or nobody has used the page for long: then the error is [ErrIdle].
func (s *Server) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, l := range s.listeners {
		group.Go(func() error {
			return httpserver.Server{
				Name: "the page", Handler: s.handler(), Timeout: answerTimeout, Direct: true,
				Endless: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/events") },
			}.Run(ctx, httpserver.Bound(l, httpserver.Bounds{All: maxConnections, Each: maxConnections}))
		})
	}
	group.Go(func() error { return s.idle.wait(ctx) })
	return group.Wait()
}

// idle ends a server that nobody uses.
type idle struct {
	after time.Duration

	mu   sync.Mutex
	busy int
	last time.Time
}

// enter notes a request, and returns what is called at its end.
func (i *idle) enter() (leave func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.busy++
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.busy--
		i.last = time.Now()
	}
}

// wait waits until nobody has asked for long.
func (i *idle) wait(ctx context.Context) error {
	i.mu.Lock()
	i.last = time.Now()
	i.mu.Unlock()
	for {
		i.mu.Lock()
		left := i.after - time.Since(i.last)
		if i.busy > 0 {
			left = i.after
		}
		i.mu.Unlock()
		if left <= 0 {
			return ErrIdle
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(left):
		}
	}
}
