// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
	"github.com/capacitorset/liqo-broker/pkg/serving/httpserver"
	"github.com/capacitorset/liqo-broker/pkg/serving/selfsigned"
)

// Bounds of the ports of a single caller: the kubelet, or a Prometheus.
const (
	maxScrapers, maxScrapersEach = 32, 8
	scrapesAtOnce                = 4
	portTimeout                  = 10 * time.Second
)

// port is a port of the sidecar, with what serves it until the context ends.
type port struct {
	flag, address string
	serve         func(context.Context, net.Listener) error
}

// addPorts opens the ports, but those with the address 0, and has a manager serve them.
func addPorts(ctx context.Context, mgr ctrl.Manager, ports []port) error {
	for _, p := range ports {
		if p.address == "0" {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.address)
		if err != nil {
			return fmt.Errorf("%s=%s: %w", p.flag, p.address, err)
		}
		serve := func(ctx context.Context) error { return p.serve(ctx, listener) }
		if err := mgr.Add(manager.RunnableFunc(serve)); err != nil {
			return fmt.Errorf("set up the manager: %w", err)
		}
	}
	return nil
}

// metricsPort serves the metrics, which name clusters, over TLS to who may read them.
func metricsPort(
	readers *delegatedauth.Reviewer, certificate *selfsigned.Certificate, admits func(netip.Addr) bool,
) func(context.Context, net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", readers.Protect(promhttp.HandlerFor(ctrlmetrics.Registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.HTTPErrorOnError, MaxRequestsInFlight: scrapesAtOnce,
	})))
	return httpPort(httpserver.Server{
		Name: "the metrics", Handler: mux, Timeout: portTimeout,
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.Get},
	}, admits)
}

// healthPort serves the probes: alive is who answers, ready is who knows the federation.
// They tell nothing else. The kubelet must find a place: without an answer it restarts the
// sidecar.
func healthPort(ready <-chan struct{}, admits func(netip.Addr) bool) func(context.Context, net.Listener) error {
	mux := http.NewServeMux()
	ok := func(w http.ResponseWriter) { _, _ = w.Write([]byte("ok")) }
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { ok(w) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-ready:
			ok(w)
		default:
			http.Error(w, "not ready", http.StatusServiceUnavailable)
		}
	})
	return httpPort(httpserver.Server{Name: "the probes", Handler: mux, Timeout: portTimeout, Once: true}, admits)
}

func httpPort(s httpserver.Server, admits func(netip.Addr) bool) func(context.Context, net.Listener) error {
	return func(ctx context.Context, listener net.Listener) error {
		return s.Run(ctx, httpserver.Bound(listener, httpserver.Bounds{Admits: admits, All: maxScrapers, Each: maxScrapersEach}))
	}
}
