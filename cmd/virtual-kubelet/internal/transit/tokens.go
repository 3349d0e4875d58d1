// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"context"

	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/configuration"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	corev1 "k8s.io/api/core/v1"
	corev1informers "k8s.io/client-go/informers/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
)

// tokenless is a reflector of service account tokens that issues none for a pod
// in transit: who runs the pod would have an identity at the API server of this
// cluster, where the pod does not belong. The Secret with the tokens that its own
// cluster issued for it is reflected as others are.
type tokenless struct {
	manager.Reflector

	// pods are the pods of this cluster on the virtual node.
	pods corev1listers.PodLister
}

// NewTokenReflector returns a reflector of service account tokens, as
// configuration.NewServiceAccountReflector of Liqo v0.9.4 does, that leaves pods in
// transit alone. It has no workers unless it is enabled.
func NewTokenReflector(enabled bool, config *generic.ReflectorConfig) manager.Reflector {
	workers := config.NumWorkers
	if !enabled {
		workers = 0
	}
	tokens := &configuration.ServiceAccountReflector{}
	t := &tokenless{Reflector: appliedOnce{tokens}}
	tokens.Reflector = generic.NewReflector(configuration.ServiceAccountReflectorName, t.namespaced(tokens.NewNamespaced), tokens.NewFallback,
		workers, consts.CustomLiqo, generic.ConcurrencyModeAll)
	return t
}

// Start begins the reflection.
func (t *tokenless) Start(ctx context.Context, opts *options.ReflectorOpts) {
	opts.LocalPodInformer = tokenlessInformer{opts.LocalPodInformer}
	t.pods = opts.LocalPodInformer.Lister()
	t.Reflector.Start(ctx, opts)
}

// StartNamespace begins the reflection of a namespace. Secrets with tokens also say what it
// is called in this cluster.
func (t *tokenless) StartNamespace(opts *options.NamespacedOpts) {
	opts.RemoteClient = namingClient{opts.RemoteClient, opts.LocalNamespace}
	t.Reflector.StartNamespace(opts)
}

// namespaced has what reflects the tokens of a namespace leave pods in transit alone. Liqo's
// looks whether the foreign cluster has a Secret of theirs even if it issues them no token:
// it deletes one of another cluster's pod, or warns of one that it has not made.
func (t *tokenless) namespaced(inner generic.NamespacedReflectorFactoryFunc) generic.NamespacedReflectorFactoryFunc {
	return func(opts *options.NamespacedOpts) manager.NamespacedReflector {
		return &tokenlessNamespace{inner(opts), t.pods.Pods(opts.LocalNamespace)}
	}
}

type tokenlessNamespace struct {
	manager.NamespacedReflector
	pods corev1listers.PodNamespaceLister
}

// Handle reflects the tokens of a pod.
func (n *tokenlessNamespace) Handle(ctx context.Context, name string) error {
	if pod, err := n.pods.Get(name); err == nil {
		if _, ok := inTransit(pod); ok {
			return nil
		}
	}
	return n.NamespacedReflector.Handle(ctx, name)
}

type tokenlessInformer struct{ corev1informers.PodInformer }

func (i tokenlessInformer) Lister() corev1listers.PodLister {
	return tokenlessLister{i.PodInformer.Lister()}
}

type tokenlessLister struct{ corev1listers.PodLister }

func (l tokenlessLister) Pods(namespace string) corev1listers.PodNamespaceLister {
	return tokenlessPods{l.PodLister.Pods(namespace)}
}

type tokenlessPods struct {
	corev1listers.PodNamespaceLister
}

// Get returns a pod in transit without its volumes, which are where a pod asks for tokens.
func (p tokenlessPods) Get(name string) (*corev1.Pod, error) {
	pod, err := p.PodNamespaceLister.Get(name)
	if err != nil {
		return nil, err
	}
	if _, ok := inTransit(pod); ok {
		pod = pod.DeepCopy()
		pod.Spec.Volumes = nil
	}
	return pod, nil
}
