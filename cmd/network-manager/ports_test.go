// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/peernet"
	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
)

// newTestSidecar returns a sidecar that knows neither peers nor the federation yet.
func newTestSidecar(t *testing.T) *sidecar {
	t.Helper()
	return &sidecar{known: make(chan struct{}), peers: &peernet.Peers{}}
}

func get(t *testing.T, url string) (code int, body string) {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// TestPortsRefusePeers opens the metrics as long as the peers are not known, so that the caller may be one: its connection ends
// before a byte is read.
func TestPortsRefusePeers(t *testing.T) {
	s := newTestSidecar(t)
	certificate, _ := servingtest.Certificate(t, "metrics")
	address := servingtest.Serve(t, func(ctx context.Context, l net.Listener) error {
		return s.serveMetrics(&parts{certificate: certificate}, ctx, l)
	})
	response, err := http.Get("http://" + address + "/healthz")
	if err == nil {
		_ = response.Body.Close()
		t.Errorf("the metrics answer a peer with %s", response.Status)
	}
}

func TestHealthTellsNothing(t *testing.T) {
	s := newTestSidecar(t)
	address := servingtest.Serve(t, s.serveHealth)
	look := func(path string, code int, want string) {
		t.Helper()
		if got, body := get(t, "http://"+address+path); got != code || strings.TrimSpace(body) != want {
			t.Errorf("%s: %d %q, want %d %q", path, got, body, code, want)
		}
	}
	look("/healthz", http.StatusOK, "ok")
	look("/readyz?verbose", http.StatusServiceUnavailable, "not ready")
	close(s.known)
	look("/readyz?verbose", http.StatusOK, "ok")
	look("/metrics", http.StatusNotFound, "404 page not found")
}
