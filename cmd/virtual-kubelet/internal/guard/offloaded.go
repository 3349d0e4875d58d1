// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	liqoclient "github.com/liqotech/liqo/pkg/client/clientset/versioned"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// offloadedOnly is a handler of namespaces that starts the reflection of those that
// this cluster itself offloads to the foreign one.
//
// Liqo's handler starts what the status of the NamespaceMap says, and that is copied
// from an object in the foreign cluster: it could name any namespace, and would be
// given its Secrets.
type offloadedOnly struct {
	manager.NamespaceHandler

	rule offloadingRule
	log  logr.Logger

	mu sync.Mutex
	to manager.NamespaceStartStopper
	// offered are the namespaces that the foreign cluster has, by their local names, and
	// running those of them whose reflection is started.
	offered, running map[string]string
	// refused are those of which was said that they are refused.
	refused map[string]struct{}
}

// offloadingRule tells what this cluster offloads to the foreign one.
type offloadingRule interface {
	// start returns when the rule knows all that it goes by, or when it has waited for long
	// enough. It calls changed whenever another answer may be right; without a name, for
	// all namespaces.
	start(ctx context.Context, changed func(local string))
	// offloads reports whether a namespace is offloaded under a remote name. An error
	// says that there is no answer.
	offloads(local, remote string) (bool, error)
}

// Clients are those of this cluster's API server. All of them are needed.
type Clients struct {
	Kubernetes kubernetes.Interface
	Liqo       liqoclient.Interface
	// Dynamic reads NamespaceOffloadings.
	Dynamic dynamic.Interface
}

// NewNamespaces returns a handler of namespaces that starts the reflection of those which
// another one starts, if this cluster itself offloads them to the foreign one. It has started
// those that are offloaded already when it returns from Start. What it begins then ends with the
// context; join returns when it has ended.
func NewNamespaces(
	handler manager.NamespaceHandler, peering Peering, clients Clients, log logr.Logger,
) (restricted manager.NamespaceHandler, join func()) {
	offloadings := &ownOffloadings{
		peering: peering, client: clients.Kubernetes, liqo: clients.Liqo, dynamic: clients.Dynamic, log: log, every: rightsInterval,
	}
	return newOffloadedOnly(&knownNamespaces{
		NamespaceHandler: handler,
		offloaded:        listOffloaded(clients.Liqo, peering.TenantNamespace, string(peering.Foreign)),
		failed:           func(err error) { log.Error(err, "Running pods may be deleted as unknown") },
	}, offloadings, log), offloadings.join
}

func newOffloadedOnly(handler manager.NamespaceHandler, rule offloadingRule, log logr.Logger) *offloadedOnly {
	return &offloadedOnly{
		NamespaceHandler: handler, rule: rule, log: log,
		offered: map[string]string{}, running: map[string]string{}, refused: map[string]struct{}{},
	}
}

// Start starts the reflection of the namespaces.
func (o *offloadedOnly) Start(ctx context.Context, to manager.NamespaceStartStopper) {
	o.to = to
	// A namespace that is refused at first would be started late, and its pods taken for
	// strays meanwhile.
	o.rule.start(ctx, o.reconsider)
	o.NamespaceHandler.Start(ctx, o)
}

// StartNamespace starts the reflection of a namespace that the foreign cluster has, if
// this cluster offloads it; otherwise as soon as it does.
func (o *offloadedOnly) StartNamespace(local, remote string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.offered[local] = remote
	o.decide(local)
}

// StopNamespace stops the reflection of a namespace that the foreign cluster has no more.
func (o *offloadedOnly) StopNamespace(local, _ string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.offered, local)
	delete(o.refused, local)
	o.stop(local)
}

// reconsider decides again about a namespace, or about all if it has no name.
func (o *offloadedOnly) reconsider(local string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if local != "" {
		o.decide(local)
		return
	}
	for _, local := range slices.Sorted(maps.Keys(o.offered)) {
		o.decide(local)
	}
}

// decide starts or stops a namespace; it is called with the lock held. Without an
// answer, all stays as it is: who stops a reflection ends the pods.
func (o *offloadedOnly) decide(local string) {
	remote, offered := o.offered[local]
	if !offered {
		return
	}
	wanted, err := false, error(nil)
	if !reserved(local) {
		wanted, err = o.rule.offloads(local, remote)
	}
	_, running := o.running[local]
	switch {
	case err != nil:
		o.log.Error(err, "Cannot determine whether a namespace is offloaded to the foreign cluster", "namespace", local, "remote", remote)
	case wanted && !running:
		delete(o.refused, local)
		o.running[local] = remote
		o.to.StartNamespace(local, remote)
	case !wanted:
		o.stop(local)
		if _, said := o.refused[local]; !said {
			o.refused[local] = struct{}{}
			o.log.Info("A namespace is not reflected: it is reserved, or this cluster does not offload it to the foreign cluster", "namespace",
				local, "remote", remote)
		}
	}
}

// stop stops a namespace if it is started; it is called with the lock held.
func (o *offloadedOnly) stop(local string) {
	if remote, running := o.running[local]; running {
		delete(o.running, local)
		o.to.StopNamespace(local, remote)
	}
}

// reserved reports whether a namespace belongs to Kubernetes, to the broker or to a
// peering; the prefix of Kubernetes' own is not for users either. The namespace of Liqo
// is none of them: one of its Services is for peers, see [guard].
func reserved(namespace string) bool {
	return strings.HasPrefix(namespace, "kube-") || strings.HasPrefix(namespace, "liqo-tenant-") || namespace == "liqo-broker"
}
