// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestMetricsAreServedAlone(t *testing.T) {
	metrics := NewMetrics()
	metrics.RefusedEndpoints.Add(3)
	cases := map[string]struct {
		reason  string
		handler http.Handler
		path    string
		want    int
		text    string
	}{
		"Metrics":        {"a Prometheus scrapes them", metrics.Handler(), "/metrics", http.StatusOK, "liqo_broker_endpoints_refused_total 3"},
		"NoPodDirect":    {"a graph shows nothing of what is never told", metrics.Handler(), "/metrics", http.StatusOK, `liqo_broker_vk_pods{path="direct"} 0`},
		"NoPodByRelay":   {"for both paths", metrics.Handler(), "/metrics", http.StatusOK, `liqo_broker_vk_pods{path="relay"} 0`},
		"Runtime":        {"as Liqo's virtual kubelet tells them", metrics.Handler(), "/metrics", http.StatusOK, "go_goroutines"},
		"ProfilesThere":  {"a profile tells what is in memory, and the address is open", metrics.Handler(), "/debug/pprof/heap", http.StatusNotFound, ""},
		"CommandThere":   {"nor how the process was started", metrics.Handler(), "/debug/pprof/cmdline", http.StatusNotFound, ""},
		"Profiles":       {"at their own address", Profiles(), "/debug/pprof/", http.StatusOK, "heap"},
		"MetricsAtOther": {"one thing at each address", Profiles(), "/metrics", http.StatusNotFound, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			tc.handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, tc.path, http.NoBody))
			if recorder.Code != tc.want || !strings.Contains(recorder.Body.String(), tc.text) {
				t.Errorf("%s: %s is answered with %d, want %d with %q", tc.reason, tc.path, recorder.Code, tc.want, tc.text)
			}
		})
	}
	if address := netip.MustParseAddrPort(ProfileAddress); !address.Addr().IsLoopback() {
		t.Errorf("profiles are served on %s", address)
	}
}

func TestServeHTTPEndsWithTheContext(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := taken.Addr().String()
	if err := HTTP(t.Context(), "metrics", address, NewMetrics().Handler()); err == nil || !strings.Contains(err.Error(), "serve metrics") {
		t.Errorf("on an address that is taken: %v", err)
	}
	_ = taken.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- HTTP(ctx, "metrics", address, NewMetrics().Handler()) }()
	eventually(t, func() bool {
		connection, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = connection.Close()
		}
		return err == nil
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
