// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	liqometrics "github.com/liqotech/liqo/pkg/virtualKubelet/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/serving/diagnostics"
)

// ProfileAddress is where profiles are served: they tell what is in memory, so that
// nobody reaches them but through the API server (kubectl port-forward).
const ProfileAddress = "127.0.0.1:6060"

// Metrics are those of the virtual kubelet. They may be used concurrently.
type Metrics struct {
	registry *prometheus.Registry
	// RefusedEndpoints counts the endpoints that were too many.
	RefusedEndpoints prometheus.Counter
	// Pods counts the pods of this cluster that a broker runs on providers, by path.
	Pods *prometheus.GaugeVec

	mapping *prometheus.HistogramVec
}

// The values of the label result.
const (
	resultMapped = "mapped"
	resultFailed = "failed"
)

// NewMetrics registers Liqo's metrics and our own.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		RefusedEndpoints: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "liqo_broker_endpoints_refused_total",
			Help: "The endpoints of other clusters that were not passed on because there were too many.",
		}),
		Pods: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "liqo_broker_vk_pods",
			Help: "The pods of this cluster that a broker runs on its providers, by the path of their packets: direct, or relay.",
		}, []string{"path"}),
		mapping: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "liqo_broker_vk_mapping_duration_seconds",
			Help: "Time to find the address under which a pod of the foreign cluster is reached from here, by result: mapped or failed. " +
				"It is more than some microseconds only if a broker is asked.",
			Buckets: []float64{.00001, .0001, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"result"}),
	}
	for _, result := range []string{resultMapped, resultFailed} {
		m.mapping.WithLabelValues(result)
	}
	for _, path := range []addressing.Path{addressing.PathDirect, addressing.PathRelay} {
		m.Pods.WithLabelValues(path.String()) // Zero is told as well.
	}
	m.registry.MustRegister(liqometrics.ErrorsCounter, liqometrics.ItemsCounter, m.RefusedEndpoints, m.Pods, m.mapping,
		diagnostics.BuildInfo("virtual-kubelet"), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Mapped measures how long it took to find an address, or to fail.
func (m *Metrics) Mapped(took time.Duration, err error) {
	result := resultMapped
	if err != nil {
		result = resultFailed
	}
	m.mapping.WithLabelValues(result).Observe(took.Seconds())
}

// Handler serves the metrics and nothing else. The default mux of net/http, which Liqo's
// virtual kubelet serves, has the profiles as well.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
	return mux
}

// maxScrapes are answered at once.
const maxScrapes = 4

// Profiles serves the profiles of this process.
func Profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// HTTP serves a handler at an address without TLS until the context ends; what says in errors
// what is served.
func HTTP(ctx context.Context, what, address string, handler http.Handler) error {
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
