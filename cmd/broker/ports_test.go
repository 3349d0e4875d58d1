// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/peernet"
	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
	"github.com/capacitorset/liqo-broker/pkg/serving/diagnostics"
	"github.com/capacitorset/liqo-broker/pkg/serving/selfsigned"
	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
)

// TestProbesTellNothing asks the probes of a daemon that does not know its cluster yet for more than they are for.
func TestProbesTellNothing(t *testing.T) {
	b, err := newBroker(brokerConfig{rest: &rest.Config{}})
	if err != nil {
		t.Fatal(err)
	}
	address := servingtest.Serve(t, b.serveHealth)
	cases := map[string]struct {
		code int
		body string
	}{
		"/healthz":         {http.StatusOK, "ok"},
		"/healthz?verbose": {http.StatusOK, "ok"},
		"/readyz":          {http.StatusServiceUnavailable, "not ready"},
		"/readyz?verbose":  {http.StatusServiceUnavailable, "not ready"},
		"/readyz/caches":   {http.StatusNotFound, "404 page not found"},
		"/metrics":         {http.StatusNotFound, "404 page not found"},
		"/debug/pprof/":    {http.StatusNotFound, "404 page not found"},
	}
	caller := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, want := range cases {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := caller.Do(request)
		if err != nil {
			t.Fatalf("GET %s: %v", path, err)
		}
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if got := strings.TrimSpace(string(body)); answer.StatusCode != want.code || got != want.body {
			t.Errorf("GET %s: %d %s, want %d %s", path, answer.StatusCode, got, want.code, want.body)
		}
	}
}

// TestMetricsAreForWhoMayReadThem asks for the metrics as a Prometheus, and as others.
func TestMetricsAreForWhoMayReadThem(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			switch o := o.(type) {
			case *authenticationv1.TokenReview:
				o.Status.Authenticated = o.Spec.Token != "unknown" && len(o.Spec.Audiences) == 0
				o.Status.User.Username = o.Spec.Token
			case *authorizationv1.SubjectAccessReview:
				path := o.Spec.NonResourceAttributes
				o.Status.Allowed = o.Spec.User == "prometheus" && path != nil && path.Path == "/metrics" && path.Verb == "get"
			}
			return nil
		},
	}).Build()
	h := (&diagnostics.Metrics{Gatherer: metrics.Registry, Readers: delegatedauth.New(c)}).Handler()
	for token, code := range map[string]int{
		"": http.StatusUnauthorized, "unknown": http.StatusUnauthorized, "pod": http.StatusForbidden, "prometheus": http.StatusOK,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != code || strings.Contains(w.Body.String(), "# HELP") != (code == http.StatusOK) {
			t.Errorf("as %q: %d, want %d", token, w.Code, code)
		}
	}
}

// TestMetricsRefusePeers connects as long as the peers are not known, so that the caller may be one.
func TestMetricsRefusePeers(t *testing.T) {
	own := selfsigned.New("metrics", func(context.Context, []byte) error { return nil })
	b, p := &broker{peers: &peernet.Peers{}}, &parts{certificate: certificate{get: own.Get}}
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(t.Context(), "tcp",
		servingtest.Serve(t, func(ctx context.Context, l net.Listener) error { return b.serveMetrics(p, ctx, l) }))
	if err == nil {
		_ = conn.Close()
		t.Fatal("the connection is served")
	}
	if alert := (tls.AlertError(0)); errors.As(err, &alert) {
		t.Errorf("the handshake began: %v", err)
	}
}

// TestCertificateFiles serves a certificate from files, and then another one.
func TestCertificateFiles(t *testing.T) {
	dir := t.TempDir()
	o := &options{tlsCertFile: filepath.Join(dir, "tls.crt"), tlsKeyFile: filepath.Join(dir, "tls.key")}
	if _, err := newAPICertificate(o, nil); err == nil || !strings.Contains(err.Error(), "--tls-cert-file") {
		t.Errorf("without the files: %v, want the flag", err)
	}
	write := func(name string) {
		t.Helper()
		certificate, key := pair(t, name)
		for file, text := range map[string][]byte{o.tlsKeyFile: key, o.tlsCertFile: certificate} {
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("first")
	c, err := newAPICertificate(o, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.run(ctx) }()
	shown := func() string {
		served, err := c.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(served.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return leaf.Subject.CommonName
	}
	if got := shown(); got != "first" {
		t.Errorf("the certificate of %s is shown", got)
	}
	for deadline := time.Now().Add(10 * time.Second); shown() != "second"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the new certificate is not shown")
		}
		write("second") // Again: the watch may begin after the first time.
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// pair returns a certificate and its key, as PEM.
func pair(t *testing.T, name string) (certificate, key []byte) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	own := selfsigned.New(name, func(context.Context, []byte) error { cancel(); return nil })
	if err := own.Run(ctx); err != nil {
		t.Fatal(err)
	}
	made, err := own.Get(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(made.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// TestPorts checks which ports a daemon opens.
func TestPorts(t *testing.T) {
	flags := func(o options) []string {
		b, err := newBroker(brokerConfig{options: o, rest: &rest.Config{}})
		if err != nil {
			t.Fatal(err)
		}
		var opened []string
		for _, p := range b.ports() {
			opened = append(opened, p.Flag)
		}
		return opened
	}
	all := options{
		catalog: true, apiAddress: ":8000", plainAPIAddress: ":8001", metricsAddress: ":8080", healthAddress: ":8081", pluginAddress: ":7000",
	}
	if got, want := flags(all), []string{
		"--api-address", "--plain-api-address", "--metrics-address", "--health-address",
	}; !slices.Equal(got, want) {
		t.Errorf("a catalog opens %v, want %v", got, want)
	}
	few := options{orchestrator: true, apiAddress: ":8000", metricsAddress: "0", healthAddress: "0", pluginAddress: ":7000"}
	if got, want := flags(few), []string{"--api-address", "--resource-plugin-address"}; !slices.Equal(got, want) {
		t.Errorf("an orchestrator without the optional ports opens %v, want %v", got, want)
	}
}

// TestPageNames has the page called as browsers write the names that somebody has said; without any it is called as one likes.
func TestPageNames(t *testing.T) {
	_, hosts, err := newPage(&options{namespace: "liqo-broker"})
	if err != nil || hosts != nil {
		t.Errorf("Without names: %v, %v", hosts, err)
	}
	names := []string{"Broker.Example.", "2001:DB8:0:0::1", "192.0.2.1", "*.Wild.example"}
	_, hosts, err = newPage(&options{namespace: "liqo-broker", tlsNames: names})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"broker.example", "2001:db8::1", "192.0.2.1", "*.wild.example", "localhost", "127.0.0.1", "::1", "liqo-broker.liqo-broker.svc",
	} {
		if !slices.Contains(hosts, want) {
			t.Errorf("%s is not among %v", want, hosts)
		}
	}
}
