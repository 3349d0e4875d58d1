// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
)

// free returns an address on loopback that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	listener := servingtest.Listen(t)
	defer listener.Close()
	return listener.Addr().String()
}

// newRunnable returns a sidecar with an API server of its own.
func newRunnable(t *testing.T, api string, o options) *sidecar {
	t.Helper()
	o.clusterID, o.ipamServer, o.maxRelays, o.maxConnections = "id-broker", "127.0.0.1:6000", 1, 1
	s, err := newSidecar(sidecarConfig{options: o, rest: &rest.Config{Host: api}, log: logr.Discard()})
	if err != nil {
		t.Fatalf("newSidecar(): %v", err)
	}
	return s
}

// TestPorts checks which ports a sidecar opens.
func TestPorts(t *testing.T) {
	flags := func(o options) (opened []string) {
		s := newRunnable(t, "https://192.0.2.1", o)
		t.Cleanup(s.close)
		for _, p := range s.ports() {
			opened = append(opened, p.Flag)
		}
		return opened
	}
	if got, want := flags(options{listen: ":6001", metricsAddress: ":6002", healthAddress: ":6003"}),
		[]string{"--listen", "--metrics-address", "--health-address"}; !slices.Equal(got, want) {
		t.Errorf("a sidecar opens %v, want %v", got, want)
	}
	if got, want := flags(options{listen: ":6001", metricsAddress: "0", healthAddress: "0"}), []string{"--listen"}; !slices.Equal(got, want) {
		t.Errorf("without the optional ports it opens %v, want %v", got, want)
	}
}

// TestLivesBeforeAllElse starts a sidecar whose API server is stuck: the kubelet hears that it lives and is not ready, and nobody is
// served. When the API server then turns out to know nothing, the sidecar ends and says which.
func TestLivesBeforeAllElse(t *testing.T) {
	stuck := make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-stuck
		http.NotFound(w, r)
	}))
	defer api.Close()
	unstick := sync.OnceFunc(func() { close(stuck) })
	defer unstick() // Before the server closes, which waits for its calls.
	health, listen := free(t), free(t)
	s := newRunnable(t, api.URL, options{listen: listen, metricsAddress: "0", healthAddress: health})
	done := make(chan error, 1)
	go func() { done <- s.runSidecar(t.Context()) }()

	var conn net.Conn
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var err error
		if conn, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", health); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the probes are not served: %v", err)
		}
	}
	_ = conn.Close()
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
		if code, body := get(t, "http://"+health+path); code != want {
			t.Errorf("%s: %d %s, want %d", path, code, body, want)
		}
	}
	unstick()
	if err := <-done; err == nil || !strings.Contains(err.Error(), api.URL) {
		t.Errorf("run(): %v, want the API server that does not know its objects", err)
	}
}

// TestAddressInUse opens a port that another program has: the sidecar ends at once, names the flag, and leaves no port open.
func TestAddressInUse(t *testing.T) {
	api := httptest.NewServer(http.NotFoundHandler())
	defer api.Close()
	taken, listen := servingtest.Listen(t), free(t)
	defer taken.Close()
	s := newRunnable(t, api.URL, options{listen: listen, metricsAddress: taken.Addr().String(), healthAddress: "0"})
	if err := s.runSidecar(t.Context()); err == nil || !strings.Contains(err.Error(), "--metrics-address="+taken.Addr().String()) {
		t.Errorf("run(): %v, want the flag and its address", err)
	}
	again, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", listen)
	if err != nil {
		t.Fatalf("the port of --listen stays open: %v", err)
	}
	_ = again.Close()
}
