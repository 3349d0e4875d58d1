// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package patched

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/liqotech/liqo/pkg/virtualKubelet/leaderelection"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
)

// leaseServer is an API server that has one Lease, unless it is slow.
type leaseServer struct {
	t *testing.T

	mu    sync.Mutex
	lease []byte
	slow  bool
}

func (s *leaseServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case !strings.Contains(r.URL.Path, "/leases"):
		http.NotFound(w, r)
		return
	case s.slow:
		http.Error(w, "slow", http.StatusGatewayTimeout)
		return
	case r.Method == http.MethodGet && s.lease == nil:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
		return
	case r.Method != http.MethodGet:
		var err error
		if s.lease, err = io.ReadAll(r.Body); err != nil {
			s.t.Error(err)
		}
	}
	if _, err := w.Write(s.lease); err != nil {
		s.t.Error(err)
	}
}

func (s *leaseServer) setSlow(slow bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow = slow
}

// TestLostLease has an API server that is slow for so long that the virtual kubelet loses its lease: it leads again afterwards.
func TestLostLease(t *testing.T) {
	server := &leaseServer{t: t}
	listening := httptest.NewServer(server)
	t.Cleanup(listening.Close)
	leadNoLonger(t)
	elected := make(chan struct{}, 9)
	err := leaderelection.InitAndRun(t.Context(), leaderelection.Opts{
		Enabled: true, PodName: "virtual-kubelet", TenantNamespace: "tenant",
		LeaseDuration: 1500 * time.Millisecond, RenewDeadline: time.Second, RetryPeriod: 100 * time.Millisecond,
	}, &rest.Config{Host: listening.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}, record.NewBroadcaster(),
		func() { elected <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	leads := func(step string) {
		t.Helper()
		select {
		case <-elected:
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: the virtual kubelet does not lead", step)
		}
	}
	leads("at first")
	server.setSlow(true)
	for deadline := time.Now().Add(30 * time.Second); leaderelection.IsLeader(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the virtual kubelet does not notice that it has lost its lease")
		}
	}
	server.setSlow(false)
	leads("after the API server was slow")
}
