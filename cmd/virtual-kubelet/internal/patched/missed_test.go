// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package patched

import (
	"context"
	"testing"
	"time"

	liqoinformers "github.com/liqotech/liqo/pkg/client/informers/externalversions"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/reflectiontest"
)

// TestMissedDeletion has an informer report an object whose deletion its watch has missed.
func TestMissedDeletion(t *testing.T) {
	handled := make(chan string, 1)
	var handler cache.ResourceEventHandler
	reflector := generic.NewReflector("missed", func(opts *options.NamespacedOpts) manager.NamespacedReflector {
		handler = opts.HandlerFactory(generic.NamespacedKeyer(opts.LocalNamespace))
		return handling{handled}
	}, generic.WithoutFallback(), 1, "", generic.ConcurrencyModeAll)

	client, liqo := fake.NewSimpleClientset(), reflectiontest.NewLiqo()
	factory, liqoFactory := informers.NewSharedInformerFactory(client, 0), liqoinformers.NewSharedInformerFactory(liqo, 0)
	reflector.Start(t.Context(), options.New(client, factory.Core().V1().Pods()))
	reflector.StartNamespace(options.NewNamespaced().WithLocal("local", client, factory).WithRemote("remote", client, factory).
		WithLiqoRemote(liqo, liqoFactory).WithReadinessFunc(func() bool { return true }))

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "local", Name: "gone"}}
	handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "local/gone", Obj: pod})
	select {
	case name := <-handled:
		if name != "gone" {
			t.Errorf("object %s is handled, want gone", name)
		}
	case <-time.After(30 * time.Second):
		t.Error("the missed deletion is not handled")
	}
}

// handling tells what it handles.
type handling struct {
	handled chan<- string
}

func (h handling) Handle(_ context.Context, name string) error {
	h.handled <- name
	return nil
}

func (h handling) Ready() bool { return true }

func (h handling) List() ([]any, error) { return nil, nil }
