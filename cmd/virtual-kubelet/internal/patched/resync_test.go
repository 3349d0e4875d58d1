// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package patched

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/virtualKubelet/leaderelection"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
)

// remoteOnly is the reflector of a namespace of which the foreign cluster has one object that this one has not.
type remoteOnly struct {
	manager.NamespacedReflector
	handled chan<- string
}

func (r remoteOnly) List() ([]any, error) {
	return []any{types.NamespacedName{Namespace: "remote", Name: "left"}}, nil
}
func (remoteOnly) Ready() bool { return true }
func (r remoteOnly) Handle(_ context.Context, name string) error {
	r.handled <- name
	return nil
}

// leases is an API server that has no lease, and takes each one that it is given.
func leases(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
		return
	}
	_, _ = io.Copy(w, r.Body)
}

// leadNoLonger has the test end when this process does not lead any more. Who leads is a global variable of Liqo's, and the election that a
// test has begun would take the leadership from the next one.
func leadNoLonger(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		for leaderelection.IsLeader() {
			time.Sleep(time.Millisecond)
		}
	})
}

// lead makes this process the leader until the test ends.
func lead(t *testing.T) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(leases))
	t.Cleanup(server.Close)
	leadNoLonger(t)
	leads := make(chan struct{})
	err := leaderelection.InitAndRun(t.Context(), leaderelection.Opts{
		Enabled: true, PodName: "this", TenantNamespace: "tenant", LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second,
		RetryPeriod: time.Second,
	}, &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}, record.NewBroadcaster(),
		func() { close(leads) })
	if err != nil {
		t.Fatal(err)
	}
	<-leads
}

// TestResyncLooksAtRemoteObjects has a virtual kubelet become the leader: what only the foreign cluster has is looked at as well, but for
// pods, of which others may reflect some.
func TestResyncLooksAtRemoteObjects(t *testing.T) {
	lead(t)
	for name, tc := range map[string]struct {
		mode generic.ConcurrencyMode
		want bool
	}{
		"Secret": {generic.ConcurrencyModeLeader, true},
		"Pod":    {generic.ConcurrencyModeAll, false},
	} {
		t.Run(name, func(t *testing.T) {
			handled := make(chan string, 1)
			reflector := generic.NewReflector(name,
				func(*options.NamespacedOpts) manager.NamespacedReflector { return remoteOnly{handled: handled} },
				generic.WithoutFallback(), 1, consts.DenyList, tc.mode)
			reflector.Start(t.Context(), &options.ReflectorOpts{})
			reflector.StartNamespace(&options.NamespacedOpts{LocalNamespace: "local", RemoteNamespace: "remote"})
			if err := reflector.Resync(); err != nil {
				t.Fatal(err)
			}
			patience := 10 * time.Second
			if !tc.want {
				patience = 500 * time.Millisecond
			}
			select {
			case <-handled:
				if !tc.want {
					t.Error("an object is looked at that somebody else may reflect")
				}
			case <-time.After(patience):
				if tc.want {
					t.Error("nobody looks at an object that only the foreign cluster has")
				}
			}
		})
	}
}
