// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package httpapi serves the broker's HTTP API: the list of clusters, the switch that
// turns a provider on or off, and the decisions of the placement policies with their
// reasons.
//
// It says what people ask for (the spec of a Provider), and shows what Liqo records of
// the peers and what policies have decided. It neither places workloads nor knows what
// follows from a switch.
package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Bounds of a request, so that slow or large ones hold nothing up.
const (
	headerTimeout  = 5 * time.Second
	requestTimeout = 15 * time.Second
	idleTimeout    = 60 * time.Second
	maxHeader      = 16 << 10 // bytes: a bearer token fits well.
	stopTimeout    = 5 * time.Second
)

// Config is what the API needs.
type Config struct {
	// Client reads from a cache and writes to the API server.
	Client client.Client
	Log    logr.Logger
	// Catalog and Orchestrator are the modes that the broker runs. The list of
	// clusters is served in either, the switch and the decisions only by an
	// orchestrator.
	Catalog      bool
	Orchestrator bool
	// AnonymousToggle lets everybody use the switch. Otherwise a caller needs the right
	// to update Providers.
	AnonymousToggle bool
}

// API is the HTTP API.
type API struct {
	cfg Config
}

// New returns the API.
func New(cfg Config) (*API, error) {
	if cfg.Client == nil {
		return nil, errors.New("the HTTP API needs a client")
	}
	return &API{cfg: cfg}, nil
}

// Handler returns the handler of all paths.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/clusters", a.clusters)
	mux.HandleFunc("GET /api/toggle", a.toggle)
	mux.HandleFunc("POST /api/toggle", a.toggle)
	mux.HandleFunc("GET /api/decisions", a.decisions)
	mux.HandleFunc("HEAD /api/toggle", notAllowed("GET, POST"))
	mux.HandleFunc("/api/clusters", notAllowed("GET, HEAD"))
	mux.HandleFunc("/api/decisions", notAllowed("GET, HEAD"))
	mux.HandleFunc("/api/toggle", notAllowed("GET, POST"))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, http.StatusNotFound, "there is nothing here: the paths are /api/clusters, /api/decisions and /api/toggle")
	})
	return mux
}

func notAllowed(allowed string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allowed)
		writeProblem(w, http.StatusMethodNotAllowed, fmt.Sprintf("%s is not allowed here, only %s", r.Method, allowed))
	}
}

// Run serves on listener until ctx ends, and returns when all requests have ended.
func (a *API) Run(ctx context.Context, listener net.Listener) error {
	s := &http.Server{
		Handler:           http.TimeoutHandler(a.Handler(), requestTimeout, "the request took too long"),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      requestTimeout + headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
	}
	served := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ctx.Done():
		case <-served:
		}
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if s.Shutdown(end) != nil {
			_ = s.Close() // Some request did not end in time.
		}
	}()
	err := s.Serve(listener)
	close(served)
	<-stopped
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the HTTP API on %s: %w", listener.Addr(), err)
	}
	return nil
}
