// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"sync"

	nodeprovider "github.com/liqotech/liqo/pkg/virtualKubelet/liqoNodeProvider"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

const (
	// reasonReachedDirectly is the reason why a virtual node is Ready whose foreign
	// cluster is lost.
	reasonReachedDirectly = "PodsReachedDirectly"
	// reasonClusterLost is the reason why no pods are bound to it.
	reasonClusterLost = "ForeignClusterLost"
)

// steadyNode is a virtual node that stays Ready without its foreign cluster while
// pods of it are reached past that one. Kubernetes takes the pods of a node that
// is not Ready out of all Services, and after five minutes makes them anew
// elsewhere, although they answer.
//
// The node takes no more pods meanwhile: its condition NetworkUnavailable is true,
// for which Kubernetes taints it. Pods that are reached through the foreign
// cluster are marked one by one, see addresses.AdjustReady.
type steadyNode struct {
	node.NodeProvider

	// direct tells whether a pod is reached past the foreign cluster.
	direct func() bool
	// stale holds a token when the node is to be shown again.
	stale chan struct{}

	mu sync.Mutex
	// show tells Kubernetes of the node; nil until somebody wants to know.
	show func(*corev1.Node)
	// told is the node as Liqo has it; nil until Liqo says it.
	told *corev1.Node
	// mute is whether the foreign cluster did not answer when it was asked last.
	mute bool
	// readySince is when the node became Ready last.
	readySince metav1.Time
}

func newSteadyNode(inner node.NodeProvider, direct func() bool) *steadyNode {
	return &steadyNode{NodeProvider: inner, direct: direct, stale: make(chan struct{}, 1)}
}

// NotifyNodeStatus implements node.NodeProvider.
func (s *steadyNode) NotifyNodeStatus(ctx context.Context, show func(*corev1.Node)) {
	s.mu.Lock()
	s.show = show
	s.mu.Unlock()
	s.NodeProvider.NotifyNodeStatus(ctx, func(told *corev1.Node) {
		s.mu.Lock()
		s.told = told
		s.mu.Unlock()
		s.reconsider()
	})
}

// Ping implements node.NodeProvider. A node that is not heard of becomes not Ready
// after some time.
func (s *steadyNode) Ping(ctx context.Context) error {
	err := s.NodeProvider.Ping(ctx)
	s.mu.Lock()
	s.mute = err != nil
	s.mu.Unlock()
	s.reconsider()
	if s.direct() {
		return nil
	}
	return err
}

// reconsider shows the node again: something has changed that its state follows
// from. It does not block.
func (s *steadyNode) reconsider() {
	select {
	case s.stale <- struct{}{}:
	default:
	}
}

// run shows the node whenever it is to be reconsidered, until the context ends.
func (s *steadyNode) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.stale:
			if show, now := s.current(); show != nil && now != nil {
				show(now)
			}
		}
	}
}

// current returns the node as it is to be shown, and the way to do it; both may be
// nil.
func (s *steadyNode) current() (show func(*corev1.Node), now *corev1.Node) {
	direct := s.direct()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told == nil {
		return s.show, nil
	}
	if liqo.NodeReady(s.told) {
		s.readySince = liqo.NodeCondition(s.told, corev1.NodeReady).LastTransitionTime
	}
	return s.show, steady(s.told, s.mute, direct, s.readySince)
}

// steady returns a node as Kubernetes is to see it. told is how Liqo has it, mute
// whether the foreign cluster does not answer, and direct whether pods are reached
// past it.
func steady(told *corev1.Node, mute, direct bool, readySince metav1.Time) *corev1.Node {
	const unavailable = corev1.NodeNetworkUnavailable
	lost := mute || isTrue(told, unavailable)
	if !lost || !direct || isTrue(told, corev1.NodeMemoryPressure) {
		return told // Liqo says memory pressure of a cluster that offers nothing.
	}
	node := told.DeepCopy()
	nodeprovider.UpdateNodeCondition(node, corev1.NodeReady, func() (corev1.ConditionStatus, string, string) {
		return corev1.ConditionTrue, reasonReachedDirectly, "The foreign cluster is lost, and pods are reached past it"
	})
	if ready := liqo.NodeCondition(node, corev1.NodeReady); !readySince.IsZero() {
		ready.LastTransitionTime = readySince
	}
	nodeprovider.UpdateNodeCondition(node, unavailable, func() (corev1.ConditionStatus, string, string) {
		return corev1.ConditionTrue, reasonClusterLost, "The foreign cluster does not answer"
	})
	return node
}

func isTrue(node *corev1.Node, kind corev1.NodeConditionType) bool {
	condition := liqo.NodeCondition(node, kind)
	return condition != nil && condition.Status == corev1.ConditionTrue
}
