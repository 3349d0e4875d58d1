// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server serves the API of a registry: parties announce themselves and publish signed offers, and watch those of all others.
//
// It knows who a caller is by the key of its TLS connection, what it may do, and how much of it. It checks what it is given before it keeps it, so that
// readers are spared what is wrong; that they need not trust it is because they check the signatures themselves. It takes no part in
// what parties agree on with each other.
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
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"

	"github.com/capacitorset/liqo-broker/pkg/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/registry/journal"
	"github.com/capacitorset/liqo-broker/pkg/registry/registryv1"
	"github.com/capacitorset/liqo-broker/pkg/registry/store"
	"github.com/capacitorset/liqo-broker/pkg/serving/httpserver"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

const (
	// requestTimeout is how long a request may take, and answerTimeout is less than what ends it without an answer.
	requestTimeout, answerTimeout = 15 * time.Second, 13 * time.Second
	// idleTimeout is how long a connection waits for its next request: less than until the next lease is renewed, since a thousand connections that wait
	// hold more memory than it costs to make them again.
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
	// AnonymousEnrol lets everybody in who announces itself, without a token, a certificate or an approval.
	AnonymousEnrol bool
	// Lease is how long a party counts as alive without a word of it, and Drop for how much longer its offers are shown; the defaults if they are zero.
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
	pace     *pace
	// effort bounds what filters cost, and answers the lists that are on their way.
	effort  *effort
	answers *source.Limit
	metrics *metrics
	// expressions are those of filters, compiled.
	expressions *expressions
	huma        huma.API
	mux         *http.ServeMux
	// The OpenAPI document, as it is served.
	json, yaml []byte
}

// New returns a registry that knows what its store has. It must be run to learn of more.
func New(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Store == nil {
		return nil, errors.New("a registry needs a store")
	}
	s, err := describe(cfg)
	if err != nil {
		return nil, err
	}
	s.follower = newFollower(s)
	if err := cfg.Store.BeginEra(ctx); err != nil {
		return nil, fmt.Errorf("begin to show what is there: %w", err)
	}
	if err := s.follower.all(ctx); err != nil {
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
		expressions: newExpressions(maxExpressions, maxExpressionBytes, compiler.Compile),
		cfg:         cfg, timing: cfg.Timing.orDefault(), mux: http.NewServeMux(), journal: journal.New(""),
		watchers: source.NewLimit(cfg.Limits.Watchers, cfg.Limits.WatchersEach), pace: newPace(cfg.Limits.PerSecond),
		effort: newEffort(effortEach), answers: source.NewLimit(answersAtOnce, answersEach),
	}
	s.metrics = newMetrics(s)
	s.huma = humago.New(s.mux, config())
	s.registration()
	s.offering()
	s.watching()
	s.older()
	s.rear()
	if err := s.document(); err != nil {
		return nil, err
	}
	s.others()
	return s, nil
}

// Handler returns the handler of all paths.
func (s *Server) Handler() http.Handler { return s.metrics.measure(s.mux) }

// Ready reports whether the registry has the store's answer to when it last asked for changes.
func (s *Server) Ready(context.Context) bool { return s.follower.ready() }

// Run serves on a listener, follows the store, and notes who has become silent, until ctx ends. It returns when all requests have ended.
func (s *Server) Run(ctx context.Context, listener net.Listener, config *tls.Config) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.follower.run(ctx) })
	group.Go(func() error { return s.sweep(ctx) })
	group.Go(func() error {
		bounded := httpserver.Bound(listener, httpserver.Bounds{All: s.cfg.Limits.Connections, Each: s.cfg.Limits.ConnectionsEach})
		return httpserver.Server{
			Name: "the registry", Handler: s.Handler(), TLS: config, Timeout: requestTimeout, Idle: idleTimeout, Endless: endless, ConnContext: withConnection,
			Direct: true,
		}.Run(ctx, bounded)
	})
	return group.Wait()
}

// config returns how the API is described. There is nothing in it that a browser would load.
func config() huma.Config {
	c := huma.DefaultConfig("liqo-broker registry", "v1")
	c.Info.Description = "What clusters offer to each other: who they are, and their offers, which they have signed. " +
		"Errors are problem documents (RFC 9457) that name the field which is wrong."
	c.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	c.OpenAPIPath, c.DocsPath, c.SchemasPath, c.CreateHooks = "", "", "", nil
	c.Formats = map[string]huma.Format{jsonType: huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat}
	c.RejectUnknownQueryParameters = true
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		certificateScheme: {
			Type:        "mutualTLS",
			Description: "A client certificate of the party's current key. It may be self-signed: what counts is its key.",
		},
	}
	return c
}

const certificateScheme = "certificate"

// jsonType is the media type of most answers.
const jsonType = "application/json"

// operation describes an operation: its name, method and path below the base, what it needs, and what it does.
func (s *Server) operation(id, method, path string, n need, summary string) huma.Operation {
	op := huma.Operation{
		OperationID: id, Method: method, Path: registryv1.Base + path, Summary: summary, Description: n.String(), MaxBodyBytes: registryv1.MaxBody,
		Middlewares: huma.Middlewares{private, accepts(s, jsonType), s.admit(n), s.once},
		Errors: []int{
			http.StatusNotAcceptable, http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable,
		},
	}
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
	if strings.Contains(path, "{") && method == http.MethodGet {
		op.Errors = append(op.Errors, http.StatusNotFound)
	}
	if method == http.MethodPut {
		op.Errors = append(op.Errors, http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	if method == http.MethodPost {
		op.Errors = append(op.Errors, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	slices.Sort(op.Errors)
	return op
}

// listing describes an operation that answers with a page of a list, at a whole path.
func (s *Server) listing(name, path, summary string) huma.Operation {
	op := s.operation(name, http.MethodGet, "", reads, summary)
	op.Path = path
	op.Middlewares = append(op.Middlewares, s.answering)
	return op
}

// register adds an operation. What goes wrong inside is logged and not told.
func register[I, O any](s *Server, op huma.Operation, answer func(context.Context, *I) (*O, error)) {
	huma.Register(s.huma, op, func(ctx context.Context, input *I) (*O, error) {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		output, err := answer(ctx, input)
		switch {
		case err == nil:
			return output, nil
		case statusOf(err) != 0:
			return nil, err
		case ctx.Err() != nil:
			return nil, later(http.StatusServiceUnavailable, "the request took too long", soon)
		default:
			s.cfg.Log.Error(err, "Cannot answer a request", "operation", op.OperationID, "caller", callerFrom(ctx).called())
			return nil, internal()
		}
	})
}

// private keeps answers out of caches that others share, and lets none be used without asking whether it is still right.
func private(ctx huma.Context, next func(huma.Context)) {
	ctx.SetHeader("Cache-Control", "private, no-cache")
	ctx.SetHeader("X-Content-Type-Options", "nosniff")
	next(ctx)
}

// accepts returns a middleware that refuses who does not accept a media type, before anything is done.
func accepts(s *Server, mediaType string) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		if accept := ctx.Header("Accept"); !acceptable(accept, mediaType) {
			s.refuseContext(ctx, refusal(http.StatusNotAcceptable, "the answer is "+mediaType+", which the header Accept excludes"))
			return
		}
		next(ctx)
	}
}

// acceptable reports whether a header Accept admits a media type (RFC 9110, section 12.5.1), without a look at weights.
func acceptable(accept, mediaType string) bool {
	if accept == "" {
		return true
	}
	kind, _, _ := strings.Cut(mediaType, "/")
	return slices.ContainsFunc(strings.Split(accept, ","), func(candidate string) bool {
		name, _, _ := strings.Cut(strings.ToLower(candidate), ";")
		name = strings.TrimSpace(name)
		return name == "*/*" || name == kind+"/*" || name == mediaType
	})
}
