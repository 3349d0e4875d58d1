// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	liqoclient "github.com/liqotech/liqo/pkg/client/clientset/versioned"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// startPatience is how long the namespaces may take to start. It takes no call for
// each, but happens while everything else starts.
const startPatience = 20 * time.Second

// knownNamespaces is a handler of namespaces that has started the reflection of
// those that are offloaded already when it returns from Start.
//
// Liqo's own returns when it has read their list, and starts them meanwhile. Liqo
// then takes a running pod of a namespace that is not started for one that was
// left behind, and ends it (liqo/pkg/virtualKubelet/reflection/manager and
// namespacemap@v0.9.4): on a busy machine, the restart of a virtual kubelet ends
// the pods of all its namespaces.
type knownNamespaces struct {
	manager.NamespaceHandler

	// offloaded lists the local namespaces that are offloaded.
	offloaded func(ctx context.Context) ([]string, error)
	// failed is told why pods may be ended although their namespaces are offloaded.
	failed func(err error)
}

// Start starts the reflection of the namespaces.
func (k *knownNamespaces) Start(ctx context.Context, to manager.NamespaceStartStopper) {
	// Read before the handler reads it, so that nothing is waited for that it does
	// not see.
	names, err := k.offloaded(ctx)
	if err != nil {
		k.failed(err)
	}
	recorder := &startRecorder{NamespaceStartStopper: to, missing: map[string]struct{}{}, done: make(chan struct{})}
	for _, name := range names {
		recorder.missing[name] = struct{}{}
	}
	recorder.checkStarted()
	k.NamespaceHandler.Start(ctx, recorder)
	// One that is not offloaded any more is never started.
	select {
	case <-recorder.done:
	case <-ctx.Done():
	case <-time.After(startPatience):
		k.failed(fmt.Errorf("the reflection of namespaces did not start within %s: %v", startPatience, recorder.left()))
	}
}

// startRecorder notes which of the namespaces have been started or stopped.
type startRecorder struct {
	manager.NamespaceStartStopper

	mu      sync.Mutex
	missing map[string]struct{}
	// done is closed when none is missing.
	done chan struct{}
	once sync.Once
}

// StartNamespace starts the reflection of a namespace.
func (r *startRecorder) StartNamespace(local, remote string) {
	r.NamespaceStartStopper.StartNamespace(local, remote)
	r.seen(local)
}

// StopNamespace stops the reflection of a namespace.
func (r *startRecorder) StopNamespace(local, remote string) {
	r.NamespaceStartStopper.StopNamespace(local, remote)
	r.seen(local)
}

func (r *startRecorder) seen(local string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.missing, local)
	r.checkStarted()
}

// left returns the namespaces that are missing, in order.
func (r *startRecorder) left() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.missing))
}

// checkStarted closes done if nothing is missing.
func (r *startRecorder) checkStarted() {
	if len(r.missing) == 0 {
		r.once.Do(func() { close(r.done) })
	}
}

// listOffloaded lists the namespaces that the NamespaceMap of a foreign cluster
// has, and that exist there.
func listOffloaded(client liqoclient.Interface, tenantNamespace, foreign string) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		list, err := client.VirtualkubeletV1alpha1().NamespaceMaps(tenantNamespace).List(ctx, metav1.ListOptions{
			LabelSelector: liqo.LabelRemoteClusterID + "=" + foreign,
		})
		if err != nil {
			return nil, fmt.Errorf("list the offloaded namespaces: %w", err)
		}
		var names []string
		for i := range list.Items {
			for name, remote := range list.Items[i].Status.CurrentMapping {
				if remote.Phase == vkv1alpha1.MappingAccepted {
					names = append(names, name)
				}
			}
		}
		return names, nil
	}
}
