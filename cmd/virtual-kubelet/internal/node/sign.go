// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/version"
)

// signInterval is how often a virtual kubelet looks whether others still run for its foreign cluster.
const signInterval = time.Second

// signature returns the value of liqo.LabelVirtualKubelet.
func signature() string {
	if len(validation.IsValidLabelValue(version.String())) > 0 {
		return "unknown"
	}
	return version.String()
}

// sign puts the label on the node by which namespace liqo is offloaded to it, as soon as nothing reflects that namespace's Secrets: the
// rollout of a Deployment starts this virtual kubelet before it ends Liqo's own. It returns when that is done or the context has ended.
func (v *Node) sign(ctx context.Context) {
	ticker := time.NewTicker(signInterval)
	defer ticker.Stop()
	said := ""
	for !v.steady.isSigned() {
		others, err := v.others(ctx)
		switch why := strings.Join(others, ", "); {
		case err != nil:
			v.log.Error(err, "Cannot determine which virtual kubelets run besides this one")
		case why == "":
			v.steady.sign()
			return
		case why != said:
			said = why
			v.log.Info("Namespace liqo is not offloaded to this node while virtual kubelets of another image run", "pods", why)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// others returns the names of the virtual kubelets for the foreign cluster that run, or are about to, and are not of the same image as
// this one.
func (v *Node) others(ctx context.Context) ([]string, error) {
	pods, err := v.pods.List(ctx, metav1.ListOptions{LabelSelector: v09.VirtualKubeletSelector().String()})
	if err != nil {
		return nil, fmt.Errorf("list the virtual kubelets in namespace %s: %w", v.config.TenantNamespace, err)
	}
	own := ""
	for i := range pods.Items {
		if pods.Items[i].Name == v.config.Pod {
			own = image(&pods.Items[i])
		}
	}
	var others []string
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Name != v.config.Pod && !podstate.Ended(pod) && (own == "" || image(pod) != own) {
			others = append(others, pod.Name)
		}
	}
	return others, nil
}

// image returns which image the virtual kubelet of a pod has: the pod has one container.
func image(pod *corev1.Pod) string {
	if len(pod.Spec.Containers) == 0 {
		return ""
	}
	return pod.Spec.Containers[0].Image
}
