// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
	"github.com/capacitorset/liqo-broker/pkg/serving/selfsigned"
)

// reviews knows the token of a scraper, which may read the metrics, and that of a pod.
type reviews struct{}

func (reviews) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	switch review := o.(type) {
	case *authenticationv1.TokenReview:
		if name := review.Spec.Token; name == "scraper" || name == "pod" {
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: name}}
		}
	case *authorizationv1.SubjectAccessReview:
		path := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "scraper" && path != nil && path.Path == "/metrics" && path.Verb == "get"
	}
	return nil
}

// open runs a port on loopback, and returns its address.
func open(t *testing.T, serve func(context.Context, net.Listener) error) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func get(t *testing.T, url, token string) (code int, body string) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
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

// everybody admits all addresses.
func everybody(netip.Addr) bool { return true }

// TestPortsRefusePeers opens the ports to nobody: a connection of a peer ends before a byte is read.
func TestPortsRefusePeers(t *testing.T) {
	nobody := func(netip.Addr) bool { return false }
	certificate := selfsigned.New("metrics", func(context.Context, []byte) error { return nil })
	for name, serve := range map[string]func(context.Context, net.Listener) error{
		"metrics": metricsPort(delegatedauth.New(reviews{}), certificate, nobody), "probes": healthPort(make(chan struct{}), nobody),
	} {
		response, err := http.Get("http://" + open(t, serve) + "/healthz")
		if err == nil {
			_ = response.Body.Close()
			t.Errorf("the %s answer a peer with %s", name, response.Status)
		}
	}
}

// TestProbesHoldNoPlace asks twice: a connection that stayed would be a place that the kubelet does not find.
func TestProbesHoldNoPlace(t *testing.T) {
	address := open(t, healthPort(make(chan struct{}), everybody))
	response, err := http.Get("http://" + address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if !response.Close {
		t.Error("the connection stays for another request")
	}
}

func TestMetricsAreForScrapers(t *testing.T) {
	announced := make(chan struct{})
	certificate := selfsigned.New("metrics", func(context.Context, []byte) error { close(announced); return nil })
	open(t, func(ctx context.Context, l net.Listener) error { defer l.Close(); return certificate.Run(ctx) })
	<-announced
	address := open(t, metricsPort(delegatedauth.New(reviews{}), certificate, everybody))
	cases := map[string]struct {
		reason, url, token string
		code               int
	}{
		"Scraper":  {"it may read them", "https://" + address + "/metrics", "scraper", http.StatusOK},
		"Pod":      {"it has a token, and no right", "https://" + address + "/metrics", "pod", http.StatusForbidden},
		"Stranger": {"any pod of any peer", "https://" + address + "/metrics", "", http.StatusUnauthorized},
		"Forger":   {"a token of another cluster", "https://" + address + "/metrics", "forged", http.StatusUnauthorized},
		"Plain":    {"a token must not travel in clear", "http://" + address + "/metrics", "scraper", http.StatusBadRequest},
		"Other":    {"there is nothing else", "https://" + address + "/debug/pprof/", "scraper", http.StatusNotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, body := get(t, tc.url, tc.token)
			if code != tc.code || (code == http.StatusOK) != strings.Contains(body, "# TYPE") {
				t.Errorf("%s: %d %.80s, want %d", tc.reason, code, body, tc.code)
			}
		})
	}
}

func TestHealthTellsNothing(t *testing.T) {
	ready := make(chan struct{})
	address := open(t, healthPort(ready, everybody))
	look := func(path string, code int, want string) {
		t.Helper()
		if got, body := get(t, "http://"+address+path, ""); got != code || strings.TrimSpace(body) != want {
			t.Errorf("%s: %d %q, want %d %q", path, got, body, code, want)
		}
	}
	look("/healthz", http.StatusOK, "ok")
	look("/readyz?verbose", http.StatusServiceUnavailable, "not ready")
	close(ready)
	look("/readyz?verbose", http.StatusOK, "ok")
	look("/metrics", http.StatusNotFound, "404 page not found")
}
