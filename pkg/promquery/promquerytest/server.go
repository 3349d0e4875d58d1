// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package promquerytest runs a real Prometheus, that of Debian's package, for tests. It
// listens on loopback, and asks one exporter for its metrics each second. It does not
// know what they mean.
package promquerytest

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Server is a Prometheus on loopback, which asks an exporter of the test each second.
type Server struct {
	url     string
	process *exec.Cmd
	ended   chan error

	mu      sync.Mutex
	metrics string
}

// Start starts one, which ends with the test.
func Start(t *testing.T) *Server {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatalf("%v: make deps installs it", err)
	}
	s := &Server{ended: make(chan error, 1)}
	exporter := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(exporter.Close)
	folder := t.TempDir()
	config := filepath.Join(folder, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs: [{job_name: test, static_configs: [{targets: [%q]}]}]\n",
		strings.TrimPrefix(exporter.URL, "http://"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + address
	var log strings.Builder
	s.process = exec.CommandContext(t.Context(), program,
		"--config.file="+config, "--storage.tsdb.path="+filepath.Join(folder, "data"), "--web.listen-address="+address)
	s.process.Stderr = &log
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.ended <- s.process.Wait() }()
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("Prometheus says:\n%s", log.String())
		}
	})
	return s
}

// serve is the exporter.
func (s *Server) serve(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.metrics == "" {
		http.Error(w, "down", http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, s.metrics)
}

// Address is its URL.
func (s *Server) Address() string { return s.url }

// Expose lets the exporter show some metrics; none at all if it is to be down.
func (s *Server) Expose(metrics string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.metrics = metrics
}

// Stop ends the process. It may be called again.
func (s *Server) Stop() {
	if s.process.Process.Signal(os.Interrupt) == nil {
		<-s.ended
	}
}
