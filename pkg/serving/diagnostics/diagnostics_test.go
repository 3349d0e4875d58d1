// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnostics

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
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

// TestRefusesWhoIsNotAdmitted opens the ports to nobody: a connection ends before a byte is read.
func TestRefusesWhoIsNotAdmitted(t *testing.T) {
	nobody := func(netip.Addr) bool { return false }
	metrics, probes := Metrics{Admits: nobody}, Probes{Admits: nobody}
	certificate, _ := servingtest.Certificate(t, "metrics")
	metrics.TLS, metrics.Readers = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.Get}, delegatedauth.New(reviews{})
	for name, serve := range map[string]func(context.Context, net.Listener) error{"metrics": metrics.Serve, "probes": probes.Serve} {
		response, err := http.Get("http://" + servingtest.Serve(t, serve) + "/healthz")
		if err == nil {
			_ = response.Body.Close()
			t.Errorf("the %s answer a stranger with %s", name, response.Status)
		}
	}
}

// TestProbesHoldNoPlace asks twice: a connection that stayed would be a place that the kubelet does not find.
func TestProbesHoldNoPlace(t *testing.T) {
	response, err := http.Get("http://" + servingtest.Serve(t, (&Probes{Admits: everybody}).Serve) + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if !response.Close {
		t.Error("the connection stays for another request")
	}
}

func TestMetricsAreForScrapers(t *testing.T) {
	certificate, _ := servingtest.Certificate(t, "metrics")
	counted := prometheus.NewCounter(prometheus.CounterOpts{Name: "counted", Help: "What is counted."})
	registry := prometheus.NewRegistry()
	registry.MustRegister(counted)
	served := Metrics{
		Gatherer: registry, Readers: delegatedauth.New(reviews{}), Admits: everybody,
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.Get},
	}
	address := servingtest.Serve(t, served.Serve)
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
