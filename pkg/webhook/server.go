// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/capacitorset/liqo-broker/pkg/serving/httpserver"
)

// Bounds of what is asked, so that nobody who reaches the port can end the daemon.
const (
	// maxReview bounds a review, in bytes: an API server takes objects of 3 MiB, and sends
	// an old one with a new one.
	maxReview = 7 << 20
	// maxReviews bounds all reviews that are read at the same time, in bytes. Decoded,
	// they take a few times as much.
	maxReviews = 16 << 20
	// requestTimeout is more than any timeoutSeconds of the configurations.
	requestTimeout = 15 * time.Second
	// An API server opens a connection for each request in flight.
	maxConnections, maxConnectionsEach = 512, 128
)

// Server serves the webhooks to the API server. It takes the place of
// controller-runtime's own, which reads what anybody sends it to the end.
type Server struct {
	// Address is where it listens.
	Address string
	// Certificate is what it shows.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Admits reports whether an address may be that of an API server. The answers tell
	// where pods go, and an API server shows no certificate unless it is told to.
	Admits func(netip.Addr) bool
	// ClientCAFile has the certificates that have signed those of the API servers; if
	// empty, none is asked for. The file is read for each connection.
	ClientCAFile string

	mux     http.ServeMux
	started atomic.Bool
	bytes   *semaphore.Weighted
}

var _ webhook.Server = (*Server)(nil)

// NewServer returns a server without webhooks.
func NewServer(
	address string, certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error), admits func(netip.Addr) bool, clientCAFile string,
) *Server {
	return &Server{
		Address: address, Certificate: certificate, Admits: admits, ClientCAFile: clientCAFile,
		bytes: semaphore.NewWeighted(maxReviews),
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica answers.
func (*Server) NeedLeaderElection() bool { return false }

// Register implements webhook.Server.
func (s *Server) Register(path string, hook http.Handler) {
	s.mux.Handle("POST "+path, s.bounded(hook))
}

// WebhookMux implements webhook.Server.
func (s *Server) WebhookMux() *http.ServeMux { return &s.mux }

// StartedChecker implements webhook.Server.
func (s *Server) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		if !s.started.Load() {
			return errors.New("the webhooks are not served yet")
		}
		return nil
	}
}

// Start implements manager.Runnable.
func (s *Server) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("listen for the API server: %w", err)
	}
	s.started.Store(true)
	bounded := httpserver.Bound(listener, httpserver.Bounds{Admits: s.Admits, All: maxConnections, Each: maxConnectionsEach})
	return httpserver.Server{Name: "the webhooks", Handler: &s.mux, TLS: s.tls(), Timeout: requestTimeout}.Run(ctx, bounded)
}

// bounded returns a handler that reads no review that is too long, and waits until
// there is room for it beside the others.
func (s *Server) bounded(hook http.Handler) http.Handler {
	limited := http.MaxBytesHandler(hook, maxReview)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := r.ContentLength
		if size > maxReview {
			http.Error(w, "the review is too long", http.StatusRequestEntityTooLarge)
			return
		}
		if size < 0 {
			size = maxReview // It is not said.
		}
		if s.bytes.Acquire(r.Context(), size) != nil {
			return // Nobody waits for the answer any more.
		}
		defer s.bytes.Release(size)
		limited.ServeHTTP(w, r)
	})
}

func (s *Server) tls() *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: s.Certificate}
	if s.ClientCAFile == "" {
		return config
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		bundle, err := os.ReadFile(s.ClientCAFile)
		if err != nil {
			return nil, fmt.Errorf("read the CA of the API servers: %w", err)
		}
		verifying := config.Clone()
		verifying.ClientCAs, verifying.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !verifying.ClientCAs.AppendCertsFromPEM(bundle) {
			return nil, fmt.Errorf("%s has no certificate", s.ClientCAFile)
		}
		return verifying, nil
	}}
}
