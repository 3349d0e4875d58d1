// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/liqotech/liqo/cmd/virtual-kubelet/root"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
	"github.com/capacitorset/liqo-broker/test/metrictable"
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
		"Metrics": {"a Prometheus scrapes them", metrics.Handler(), "/metrics", http.StatusOK, "liqo_broker_endpoints_refused_total 3"},
		"NoPodDirect": {
			"a graph shows nothing of what is never told", metrics.Handler(), "/metrics", http.StatusOK, `liqo_broker_vk_pods{path="direct"} 0`,
		},
		"NoPodByRelay": {"for both paths", metrics.Handler(), "/metrics", http.StatusOK, `liqo_broker_vk_pods{path="relay"} 0`},
		"Runtime":      {"as Liqo's virtual kubelet tells them", metrics.Handler(), "/metrics", http.StatusOK, "go_goroutines"},
		"ProfilesThere": {
			"a profile tells what is in memory, and the address is open", metrics.Handler(), "/debug/pprof/heap", http.StatusNotFound, "",
		},
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

// TestMetricTable compares what the virtual kubelet measures with the reference.
func TestMetricTable(t *testing.T) {
	metrictable.Check(t, NewMetrics().registry)
}

// TestMappingIsMeasured holds that what fails is told apart.
func TestMappingIsMeasured(t *testing.T) {
	metrics := NewMetrics()
	metrics.Mapped(time.Millisecond, nil)
	metrics.Mapped(time.Millisecond, errors.New("the broker does not answer"))
	metrics.Mapped(time.Millisecond, errors.New("the broker does not answer"))
	recorder := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	for _, want := range []string{`_count{result="mapped"} 1`, `_count{result="failed"} 2`} {
		if !strings.Contains(recorder.Body.String(), "liqo_broker_vk_mapping_duration_seconds"+want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
}

// TestMetricsAreForScrapers asks for the metrics as those who may have those of the virtual node, and as others.
func TestMetricsAreForScrapers(t *testing.T) {
	authority := servingtest.NewAuthority(t)
	client := fake.NewSimpleClientset(authorities(authority.PEM()))
	admission, err := NewAdmission(testAdmission(), client, tokens(map[string]string{"scraper": "get metrics", "pod": "get proxy"}),
		source.Network, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	server, err := NewServer(&Config{NodeName: testNode, NodeIP: "127.0.0.1", CertificateType: root.CertificateTypeSelfSigned}, servedPods{},
		client, nil, admission)
	if err != nil {
		t.Fatal(err)
	}
	servingtest.Serve(t, server.serve) // It has the certificate.
	address := servingtest.Serve(t, func(ctx context.Context, listener net.Listener) error {
		return server.serveMetrics(ctx, listener, NewMetrics().Handler())
	})
	peer := sign(t, authority, "4a1c-consumer", "liqo.io")
	cases := map[string]struct {
		reason      string
		certificate *tls.Certificate
		token       string
		want        int
	}{
		"Scraper":  {"it may get nodes/metrics", nil, "scraper", http.StatusOK},
		"Pod":      {"another right is not enough", nil, "pod", http.StatusForbidden},
		"Stranger": {"anybody who has a route reaches the port", nil, "", http.StatusUnauthorized},
		"Peer":     {"it has a certificate of the same authority, which may not be known yet", peer, "", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, body := ask(t, http.MethodGet, "https://"+address+"/metrics", tc.certificate, tc.token)
			refused := tc.want == 0 && (code == http.StatusUnauthorized || code == http.StatusForbidden)
			if code != tc.want && !refused || (code == http.StatusOK) != strings.Contains(body, "liqo_broker_vk_pods") {
				t.Errorf("%s: %d %.80s, want %d", tc.reason, code, body, tc.want)
			}
		})
	}
}
