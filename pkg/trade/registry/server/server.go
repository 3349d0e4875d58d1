// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server serves the API of a registry: parties announce themselves and publish signed offers, and watch those of all others.
//
// It knows who a caller is by the key of its TLS connection, what it may do, and how much of it. It checks what it is given before it keeps
// it, so that readers are spared what is wrong; that they need not trust it is because they check the signatures themselves. It takes no
// part in what parties agree on with each other.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/capacitorset/liqo-broker/pkg/serving/httpserver"
	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/journal"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store"
)

const (
	// requestTimeout is how long a request may take, and answerTimeout is less than what ends it without an answer.
	requestTimeout, answerTimeout = 15 * time.Second, 13 * time.Second
	// idleTimeout is how long a connection waits for its next request: less than until the next lease is renewed, since a thousand connections
	// that wait hold more memory than it costs to make them again.
	idleTimeout = 15 * time.Second
	// DefaultLease is how long a party counts as alive without a word of it.
	DefaultLease = 2 * time.Minute
	// DefaultDrop is for how much longer the offers of a silent party are shown.
	DefaultDrop = time.Hour
)

// Config is what a registry needs.
type Config struct {
	// Store keeps what the registry knows.
	Store *store.Store
	Log   logr.Logger
	// Authorities returns those whose certificates let a party in without a token, at the moment; nil if nobody's do.
	Authorities func() *x509.CertPool
	// AnonymousRead lets everybody read what is offered, without a certificate.
	AnonymousRead bool
	// AutoApprove lets everybody in who announces itself, without a token, a certificate or an approval.
	AutoApprove bool
	// Lease is how long a party counts as alive without a word of it, and Drop for how much longer its offers are shown; the defaults if they
	// are zero.
	Lease, Drop time.Duration
	// Limits bound what each may ask for.
	Limits Limits
	// Timing is that of watches.
	Timing Timing
	// Version is that of the program.
	Version string
}

// Server is a registry. It is safe for concurrent use.
type Server struct {
	cfg      Config
	timing   Timing
	journal  *journal.Journal
	parties  parties
	follower *follower
	watchers *source.Limit
	attached atomic.Int64 // Watchers that are connected.
	pace     *rest.Callers[*rate.Limiter]
	// effort bounds what filters cost, and answers the lists that are on their way.
	effort  *effort
	answers *source.Limit
	metrics *metrics
	// expressions are those of filters, compiled.
	expressions *expressions
	api         *rest.API
	mux         *http.ServeMux
}

// New returns a registry that knows what its store has. It must be run to learn of more.
func New(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Store == nil {
		return nil, errors.New("a registry needs a store")
	}
	s, err := describe(cfg) //nolint:contextcheck // A door is asked with the context of its request.
	if err != nil {
		return nil, err
	}
	s.follower = newFollower(s)
	if err := cfg.Store.BeginEra(ctx); err != nil {
		return nil, fmt.Errorf("begin to show what is there: %w", err)
	}
	if err := s.follower.readAll(ctx); err != nil {
		return nil, fmt.Errorf("read the store: %w", err)
	}
	return s, nil
}

// describe returns a registry with its paths, which knows nothing yet.
func describe(cfg Config) (*Server, error) {
	cfg.Lease, cfg.Drop = cmp.Or(cfg.Lease, DefaultLease), cmp.Or(cfg.Drop, DefaultDrop)
	if cfg.Limits == (Limits{}) {
		cfg.Limits = DefaultLimits()
	}
	compiler, err := offer.NewCompiler()
	if err != nil {
		return nil, err
	}
	s := &Server{
		expressions: newExpressions(maxExpressions, maxExpressionBytes, compiler.Counting().Compile),
		cfg:         cfg, timing: cfg.Timing.orDefault(), mux: http.NewServeMux(), journal: journal.New(""),
		watchers: source.NewLimit(cfg.Limits.Watchers, cfg.Limits.WatchersEach), pace: newPace(cfg.Limits.PerSecond),
		effort: newEffort(effortEach), answers: source.NewLimit(answersAtOnce, answersEach),
	}
	s.metrics = newMetrics(s)
	s.api = s.newAPI()
	s.registration()
	s.offering()
	s.watching()
	s.older()
	s.rear()
	err = s.api.Seal("/", func(r *http.Request) error { return s.paced(caller{address: source.AddressOfRequest(r)}) })
	return s, err
}

// OpenAPI returns the document of the registry's API, as YAML.
func OpenAPI() ([]byte, error) {
	s, err := describe(Config{})
	if err != nil {
		return nil, err
	}
	return s.api.OpenAPI().YAML()
}

// Handler returns the handler of all paths.
func (s *Server) Handler() http.Handler { return s.metrics.measure(s.mux) }

// Ready reports whether the registry has the store's answer to when it last asked for changes.
func (s *Server) Ready(context.Context) bool { return s.follower.ready() }

// Run serves on a listener, follows the store, and notes who has become silent, until ctx ends. It returns when all requests have ended.
func (s *Server) Run(ctx context.Context, listener net.Listener, config *tls.Config) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.follower.followStore(ctx) })
	group.Go(func() error { return s.sweep(ctx) })
	group.Go(func() error {
		bounded := httpserver.Bound(listener, httpserver.Bounds{All: s.cfg.Limits.Connections, Each: s.cfg.Limits.ConnectionsEach})
		return httpserver.Server{
			Name: "the registry", Handler: s.Handler(), TLS: config, Timeout: requestTimeout, Idle: idleTimeout, Endless: endless,
			ConnContext: withConnection, Direct: true,
		}.Run(ctx, bounded)
	})
	return group.Wait()
}

// newAPI returns the frame of the API, without operations.
func (s *Server) newAPI() *rest.API {
	return rest.New(rest.Config{
		Title: "liqo-broker registry",
		Description: "What clusters offer to each other: who they are, and their offers, which they have signed. " +
			"Errors are problem documents (RFC 9457) that name the field which is wrong.",
		Schemes: map[string]*huma.SecurityScheme{certificateScheme: {
			Type:        "mutualTLS",
			Description: "A client certificate of the party's current key. It may be self-signed: what counts is its key.",
		}},
		Host: "registry.example", Port: "8443",
		Base: registryv1.Base, Timeout: answerTimeout, MaxBody: registryv1.MaxBody, Failed: messageFailed,
		Caller: func(ctx context.Context) string { return callerFrom(ctx).called() }, Log: s.cfg.Log,
	}, s.mux)
}

const certificateScheme = "certificate"

// operation describes an operation: its name, method and path below the base, what it needs, and what it does.
func (s *Server) operation(id, method, path string, n need, summary string) huma.Operation {
	op := s.api.Operation(id, method, path, summary, s.admit(n))
	op.Description = n.String()
	switch n { //nolint:exhaustive // The others are alike.
	case anybody:
		op.Security = []map[string][]string{}
	case reads, itself:
		op.Security = []map[string][]string{{certificateScheme: {}}, {}}
	default:
		op.Security = []map[string][]string{{certificateScheme: {}}}
	}
	if n != anybody {
		op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusForbidden)
	}
	if method == http.MethodPut {
		op.Errors = append(op.Errors, http.StatusConflict)
	}
	return op
}

// listing describes an operation that answers with a page of a list, at a whole path.
func (s *Server) listing(name, path, summary string) huma.Operation {
	op := s.operation(name, http.MethodGet, "", reads, summary)
	op.Path = path
	op.Middlewares = append(op.Middlewares, s.answering)
	return op
}
