// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diagnostics serves what watches a program: its metrics, to who may read them, and its
// probes, to the kubelet. It does not know what is measured, nor when the program is ready.
package diagnostics

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/capacitorset/liqo-broker/pkg/serving/httpserver"
)

// Bounds of ports that have a single caller each: a Prometheus, or the kubelet.
const (
	maxCallers, maxCallersEach = 32, 8
	scrapesAtOnce              = 4
	scrapeTimeout              = 10 * time.Second
	probeTimeout               = 5 * time.Second
	// readyTimeout is how long a probe waits for the program to be ready.
	readyTimeout = 500 * time.Millisecond
)

// Readers knows who may read metrics, as a delegatedauth.Reviewer does.
type Readers interface {
	// Protect returns a handler that passes on the requests of those who may make them, and refuses all others.
	Protect(next http.Handler) http.Handler
}

// Metrics are what Prometheus reads. They name clusters, so that not everybody may read them.
type Metrics struct {
	Gatherer prometheus.Gatherer
	Readers  Readers
	TLS      *tls.Config
	// Admits says from which addresses callers are heard at all.
	Admits func(netip.Addr) bool
}

// Handler answers GET /metrics.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Readers.Protect(promhttp.HandlerFor(m.Gatherer, promhttp.HandlerOpts{
		ErrorHandling: promhttp.HTTPErrorOnError, MaxRequestsInFlight: scrapesAtOnce,
	})))
	return mux
}

// Serve serves the metrics over TLS until the context ends.
func (m *Metrics) Serve(ctx context.Context, listener net.Listener) error {
	server := httpserver.Server{Name: "the metrics", Handler: m.Handler(), TLS: m.TLS, Timeout: scrapeTimeout}
	return server.Run(ctx, bound(listener, m.Admits))
}

// Probes tell whether a program lives, which it does if it answers, and whether it is ready. They
// tell nothing else.
type Probes struct {
	// Ready reports whether the program is ready, and waits for that at most until the context ends.
	Ready func(context.Context) bool
	// Admits says from which addresses callers are heard at all. The kubelet must be: without an answer
	// it restarts the program.
	Admits func(netip.Addr) bool
}

// Serve answers GET /healthz and GET /readyz until the context ends.
func (p *Probes) Serve(ctx context.Context, listener net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if !p.Ready(ctx) {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok"))
	})
	server := httpserver.Server{Name: "the probes", Handler: mux, Timeout: probeTimeout, Once: true}
	return server.Run(ctx, bound(listener, p.Admits))
}

func bound(listener net.Listener, admits func(netip.Addr) bool) net.Listener {
	return httpserver.Bound(listener, httpserver.Bounds{Admits: admits, All: maxCallers, Each: maxCallersEach})
}
