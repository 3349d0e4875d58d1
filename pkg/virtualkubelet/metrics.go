// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package virtualkubelet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"

	liqometrics "github.com/liqotech/liqo/pkg/virtualKubelet/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// profileAddress is where profiles are served: they tell what is in memory, so that
// nobody reaches them but through the API server (kubectl port-forward).
const profileAddress = "127.0.0.1:6060"

// metrics are those of the virtual kubelet.
type metrics struct {
	registry *prometheus.Registry
	// refusedEndpoints counts the endpoints that were too many.
	refusedEndpoints prometheus.Counter
}

// newMetrics registers Liqo's metrics and our own.
func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		refusedEndpoints: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "liqo_broker_endpoints_refused_total",
			Help: "The endpoints of other clusters that were not passed on because there were too many.",
		}),
	}
	m.registry.MustRegister(liqometrics.ErrorsCounter, liqometrics.ItemsCounter, m.refusedEndpoints,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// handler serves the metrics and nothing else. The default mux of net/http, which Liqo's
// virtual kubelet serves, has the profiles as well.
func (m *metrics) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
	return mux
}

// maxScrapes are answered at once; the address has no authentication, as in Liqo.
const maxScrapes = 4

// profiles serves the profiles of this process.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// serveHTTP serves without TLS until the context ends; what says what is served.
func serveHTTP(ctx context.Context, what, address string, handler http.Handler) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("serve %s: %w", what, err)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); ctx.Err() == nil {
		return fmt.Errorf("serve %s on %s: %w", what, address, err)
	}
	return nil
}
