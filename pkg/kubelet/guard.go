// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"sync"

	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
)

// ipamService names the only Service of Liqo's namespace that may be reflected.
const ipamService = "liqo-network-manager"

// The selections of objects that a reflector may see in Liqo's namespace.
func nothing(options *metav1.ListOptions) {
	options.FieldSelector = fields.OneTermEqualSelector("metadata.name", "").String()
}

func onlyIPAMService(options *metav1.ListOptions) {
	options.FieldSelector = fields.OneTermEqualSelector("metadata.name", ipamService).String()
}

func onlyIPAMEndpoints(options *metav1.ListOptions) {
	options.LabelSelector = labels.Set{discoveryv1.LabelServiceName: ipamService}.String()
}

// guard is a reflector that sees only a selection of the objects of one
// namespace.
//
// Users offload Liqo's own namespace so that the Service of the IPAM reaches
// the consumers. Liqo then hands every Secret and ConfigMap of it, tokens of
// all peers and the WireGuard key among them, to each of those peers. A guarded
// reflector believes that they do not exist, so that it also takes back what
// another virtual kubelet gave away before.
type guard struct {
	manager.Reflector

	namespace string
	selection func(*metav1.ListOptions)

	// mu keeps Resync, which walks the namespaces of a reflector, from the
	// namespaces that come and go.
	mu   sync.Mutex
	stop chan struct{}
}

var _ manager.Reflector = (*guard)(nil)

// newGuard guards a reflector in a namespace; a nil selection lets it see all.
func newGuard(reflector manager.Reflector, namespace string, selection func(*metav1.ListOptions)) *guard {
	return &guard{Reflector: reflector, namespace: namespace, selection: selection}
}

// Start ends the guard's own informers when the context ends.
func (g *guard) Start(ctx context.Context, opts *options.ReflectorOpts) {
	context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.stopInformers()
	})
	g.Reflector.Start(ctx, opts)
}

// StartNamespace replaces the informers of the guarded namespace.
func (g *guard) StartNamespace(opts *options.NamespacedOpts) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if opts.LocalNamespace != g.namespace || g.selection == nil {
		g.Reflector.StartNamespace(opts)
		return
	}
	factory := informers.NewSharedInformerFactoryWithOptions(opts.LocalClient, 0,
		informers.WithNamespace(g.namespace), informers.WithTweakListOptions(g.selection))
	g.stopInformers()
	g.stop = make(chan struct{})
	synced := make(chan struct{})
	othersReady := opts.Ready
	opts.LocalFactory = factory
	opts.Ready = func() bool {
		select {
		case <-synced:
			return othersReady()
		default:
			return false
		}
	}
	g.Reflector.StartNamespace(opts)

	stop := g.stop
	factory.Start(stop)
	go func() {
		for _, ok := range factory.WaitForCacheSync(stop) {
			if !ok {
				return
			}
		}
		close(synced)
	}()
}

// StopNamespace ends the reflection of a namespace.
func (g *guard) StopNamespace(local, remote string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if local == g.namespace {
		g.stopInformers()
	}
	g.Reflector.StopNamespace(local, remote)
}

// Resync reflects every object again.
func (g *guard) Resync() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.Reflector.Resync()
}

// stopInformers is called with the lock held.
func (g *guard) stopInformers() {
	if g.stop != nil {
		close(g.stop)
		g.stop = nil
	}
}
