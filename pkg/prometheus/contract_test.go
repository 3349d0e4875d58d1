// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"errors"
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
	"time"
)

// backend is a server with one exporter that it asks for metrics.
type backend interface {
	address() string
	// expose lets the exporter show some metrics; none at all if it is to be down.
	expose(metrics string)
	stop()
}

// TestContract asks the fake and a real Prometheus the same.
func TestContract(t *testing.T) {
	for name, start := range map[string]func(*testing.T) backend{"Fake": newFake, "Prometheus": newReal} {
		t.Run(name, func(t *testing.T) { contract(t, start(t)) })
	}
}

func contract(t *testing.T, b backend) {
	t.Helper()
	c, err := New(Config{URL: b.address(), Timeout: 10 * time.Second})
	if err != nil {
		t.Fatalf("New(): %v", err)
	}
	ask := func(query string) string {
		samples, err := c.Query(t.Context(), query)
		for _, kind := range []error{ErrNone, ErrUnavailable, ErrRefused, ErrAnswer} {
			if errors.Is(err, kind) {
				return kind.Error()
			}
		}
		if err != nil {
			t.Errorf("query %q: %v", query, err)
		}
		var lines []string
		for _, s := range samples {
			if age := time.Since(s.At).Abs(); age > 10*time.Second {
				t.Errorf("query %q: evaluated %s ago", query, age)
			}
			lines = append(lines, fmt.Sprintf("%s%v", s.Labels["path"], s.Value))
		}
		return strings.Join(lines, " ")
	}
	eventually := func(want string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; {
			got := ask("delay")
			if got == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("the delay is %s, want %q", got, want)
			}
			select {
			case <-t.Context().Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}

	b.expose("delay{path=\"a\"} 120.5\ndelay{path=\"b\"} NaN\nlimit{path=\"a\"} +Inf\nlimit{path=\"b\"} 1\n")
	eventually("a120.5 bNaN")
	for query, want := range map[string]string{
		"limit":              "a+Inf b1",
		"nothing":            "",
		"42":                 "42",
		"NaN":                "NaN",
		"delay[1m]":          ErrAnswer.Error(),
		`"text"`:             ErrAnswer.Error(),
		"delay{":             ErrRefused.Error(),
		"delay + on() limit": ErrRefused.Error(), // It matches more than one with more than one.
	} {
		if got := ask(query); got != want {
			t.Errorf("query %q: %s, want %q", query, got, want)
		}
	}
	b.expose("delay{path=\"a\"} 80\n")
	eventually("a80")
	b.expose("") // A value of an exporter that is down is not kept.
	eventually("")
	b.stop()
	eventually(ErrUnavailable.Error())
}

// server is a Prometheus on loopback, which asks an exporter of the test each second.
type server struct {
	url     string
	process *exec.Cmd
	ended   chan error

	mu      sync.Mutex
	metrics string
}

func newReal(t *testing.T) backend {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatalf("%v: make deps installs it", err)
	}
	r := &server{ended: make(chan error, 1)}
	exporter := httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(exporter.Close)
	folder := t.TempDir()
	config := filepath.Join(folder, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs: [{job_name: test, static_configs: [{targets: [%q]}]}]\n",
		strings.TrimPrefix(exporter.URL, "http://"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	r.url = "http://" + address
	var log strings.Builder
	r.process = exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(folder, "data"), "--web.listen-address="+address)
	r.process.Stderr = &log
	if err := r.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { r.ended <- r.process.Wait() }()
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("Prometheus says:\n%s", log.String())
		}
	})
	return r
}

func (r *server) serve(w http.ResponseWriter, _ *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.metrics == "" {
		http.Error(w, "down", http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, r.metrics)
}

func (r *server) address() string { return r.url }

func (r *server) expose(metrics string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.metrics = metrics
}

// stop ends the process. It may be called again.
func (r *server) stop() {
	if r.process.Process.Signal(os.Interrupt) == nil {
		<-r.ended
	}
}

// TestNone asks where there is nobody.
func TestNone(t *testing.T) {
	if _, err := (None{}).Query(t.Context(), "1"); !errors.Is(err, ErrNone) {
		t.Errorf("error %v, want %v", err, ErrNone)
	}
}
