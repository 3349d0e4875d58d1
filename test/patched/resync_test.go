// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build patched

package patched

import (
	"context"
	"testing"
	"time"

	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	"k8s.io/apimachinery/pkg/types"
)

// remoteOnly is the reflector of a namespace of which the foreign cluster has one object that this one has not.
type remoteOnly struct {
	manager.NamespacedReflector
	handled chan<- string
}

func (r remoteOnly) List() ([]interface{}, error) {
	return []interface{}{types.NamespacedName{Namespace: "remote", Name: "left"}}, nil
}
func (remoteOnly) Ready() bool { return true }
func (r remoteOnly) Handle(_ context.Context, name string) error {
	r.handled <- name
	return nil
}

// TestResyncLooksAtRemoteObjects has a virtual kubelet become the leader: what only the foreign cluster has is looked at as well.
func TestResyncLooksAtRemoteObjects(t *testing.T) {
	handled := make(chan string, 1)
	reflector := generic.NewReflector("Secret", func(*options.NamespacedOpts) manager.NamespacedReflector { return remoteOnly{handled: handled} },
		generic.WithoutFallback(), 1, consts.DenyList, generic.ConcurrencyModeAll)
	reflector.Start(t.Context(), &options.ReflectorOpts{})
	reflector.StartNamespace(&options.NamespacedOpts{LocalNamespace: "local", RemoteNamespace: "remote"})
	if err := reflector.Resync(); err != nil {
		t.Fatal(err)
	}
	select {
	case name := <-handled:
		if name != "left" {
			t.Errorf("object %q is looked at, want left", name)
		}
	case <-time.After(10 * time.Second):
		t.Error("nobody looks at an object that only the foreign cluster has")
	}
}
