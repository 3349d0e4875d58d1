// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard decides which namespaces of this cluster are reflected to a foreign one, and what
// is seen of the namespace of Liqo itself. It does not know how the objects are reflected.
package guard

import (
	"sync"

	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
)

// guard is a reflector that, in the namespace of Liqo itself, sees nothing but
// the Service of the IPAM.
//
// Users offload Liqo's own namespace so that this Service reaches the consumers.
// Liqo then hands every Secret and ConfigMap of it, tokens of all peers and the
// WireGuard key among them, to each of those peers. A guarded reflector believes
// that they do not exist, so that it also takes back what another virtual
// kubelet gave away before.
type guard struct {
	manager.Reflector

	namespace string

	// mu keeps Resync, which walks the namespaces of a reflector, from the
	// namespaces that come and go.
	mu sync.Mutex
}

var _ manager.Reflector = (*guard)(nil)

// New returns a reflector that reflects as another one does, but of the namespace of Liqo
// nothing but the Service [IPAMService]. All reflectors of a virtual kubelet must be guarded:
// they share their informers.
func New(reflector manager.Reflector, liqoNamespace string) manager.Reflector {
	return &guard{Reflector: reflector, namespace: liqoNamespace}
}

// StartNamespace begins the reflection of a namespace.
func (g *guard) StartNamespace(opts *options.NamespacedOpts) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if opts.LocalNamespace == g.namespace {
		opts.LocalFactory = guardFactory(opts.LocalFactory, g.namespace)
	}
	g.Reflector.StartNamespace(opts)
}

// StopNamespace ends the reflection of a namespace.
func (g *guard) StopNamespace(local, remote string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Reflector.StopNamespace(local, remote)
}

// Resync reflects every object again.
func (g *guard) Resync() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.Reflector.Resync()
}
