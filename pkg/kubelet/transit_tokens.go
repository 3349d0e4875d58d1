// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"

	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	corev1 "k8s.io/api/core/v1"
	corev1informers "k8s.io/client-go/informers/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
)

// tokenless is a reflector of service account tokens that issues none for a pod
// in transit: who runs the pod would have an identity at the API server of this
// cluster, where the pod does not belong.
type tokenless struct{ manager.Reflector }

// Start begins the reflection.
func (t tokenless) Start(ctx context.Context, opts *options.ReflectorOpts) {
	opts.LocalPodInformer = tokenlessInformer{opts.LocalPodInformer}
	t.Reflector.Start(ctx, opts)
}

// StartNamespace begins the reflection of a namespace. Secrets with tokens also say what it
// is called in this cluster.
func (t tokenless) StartNamespace(opts *options.NamespacedOpts) {
	opts.RemoteClient = namingClient{opts.RemoteClient, opts.LocalNamespace}
	t.Reflector.StartNamespace(opts)
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
