// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"context"

	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	liqoclient "github.com/liqotech/liqo/pkg/client/clientset/versioned"
	vkclient "github.com/liqotech/liqo/pkg/client/clientset/versioned/typed/virtualkubelet/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/remotepods"
)

// transitClient is a client of the foreign cluster that forges pods in transit
// again when they are created, and does not tire of deleting them. Liqo leaves the spec of a ShadowPod as it was
// created.
type transitClient struct {
	liqoclient.Interface
	namespace *transitNamespace
}

// VirtualkubeletV1alpha1 returns the client of the group that has ShadowPods.
func (c transitClient) VirtualkubeletV1alpha1() vkclient.VirtualkubeletV1alpha1Interface {
	return transitGroup{c.Interface.VirtualkubeletV1alpha1(), c.namespace}
}

type transitGroup struct {
	vkclient.VirtualkubeletV1alpha1Interface
	namespace *transitNamespace
}

func (g transitGroup) ShadowPods(namespace string) vkclient.ShadowPodInterface {
	return transitShadowPods{g.VirtualkubeletV1alpha1Interface.ShadowPods(namespace), g.namespace}
}

type transitShadowPods struct {
	vkclient.ShadowPodInterface
	namespace *transitNamespace
}

// Delete deletes a ShadowPod that no local pod stands behind any more.
func (s transitShadowPods) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	return remotepods.Soon(s.ShadowPodInterface.Delete(ctx, name, opts))
}

// Create creates the ShadowPod of a local pod.
func (s transitShadowPods) Create(
	ctx context.Context, forged *vkv1alpha1.ShadowPod, opts metav1.CreateOptions,
) (*vkv1alpha1.ShadowPod, error) {
	shadow, err := s.namespace.forge(ctx, forged)
	if err != nil {
		return nil, err
	}
	return s.ShadowPodInterface.Create(ctx, shadow, opts)
}
