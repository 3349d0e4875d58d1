// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	nodeprovider "github.com/liqotech/liqo/pkg/virtualKubelet/liqoNodeProvider"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/wake"
)

const (
	// reasonReachedDirectly is the reason why a virtual node is Ready whose foreign
	// cluster is lost.
	reasonReachedDirectly = "PodsReachedDirectly"
	// reasonClusterLost is the reason why no pods are bound to it.
	reasonClusterLost = "ForeignClusterLost"
	// reasonPodsStay is the reason why a virtual node is Ready whose foreign cluster
	// offers nothing any more.
	reasonPodsStay = "PodsStay"
	// reasonClusterSilent is the reason why a virtual node is not Ready whose foreign
	// cluster has not answered for a while.
	reasonClusterSilent = "ForeignClusterSilent"
)

// steadyNode is a virtual node that stays Ready while pods of it answer: without its
// foreign cluster while pods are reached past that one, and with one that offers
// nothing any more. Kubernetes takes the pods of a node that is not Ready out of all
// Services, and after five minutes recreates them elsewhere.
//
// The node takes no more pods meanwhile: its condition NetworkUnavailable is true, or
// those of pressure, for which Kubernetes taints it. Pods that are reached through a
// foreign cluster that is lost are marked one by one, see AdjustReady of
// package address.
//
// Its lease says that the virtual kubelet runs, whatever becomes of the foreign
// cluster, and its conditions what the virtual kubelet knows of that one. So a node
// whose readiness is unknown is one at which nobody looks.
type steadyNode struct {
	node.NodeProvider

	// own is what of the node's status says where its virtual kubelet answers, and what it is: addresses, port and versions.
	own corev1.NodeStatus

	pods Pods
	log  logr.Logger
	// patience is for how long a foreign cluster may be silent, while no pod is reached
	// past it, before its node is not Ready.
	patience time.Duration
	// stale is set when the node is to be shown again.
	stale wake.Signal

	mu sync.Mutex
	// show tells Kubernetes of the node; nil until somebody wants to know.
	show func(*corev1.Node)
	// told is the node as Liqo has it; nil until Liqo says it.
	told *corev1.Node
	// silentSince is since when the foreign cluster has not answered; zero while it does.
	silentSince time.Time
	// readySince is when the node became Ready last.
	readySince metav1.Time
	// settled is until when a node that was Ready before this virtual kubelet began is left
	// as it was, while Liqo finds out how it is; zero when it has. learned is when Liqo found
	// that it was Ready all the time, since readySince; zero if it was not.
	settled time.Time
	learned metav1.Time
	// signed is whether the node says that its virtual kubelet is this project's.
	signed bool
}

// settling is for how long a node may stay as it was: Liqo begins with a node that has no
// tunnel and no resources, and learns of them one after the other.
const settling = 30 * time.Second

// begin tells how the node was before this virtual kubelet began, if it was there. What was signed stays so: this virtual kubelet
// replaces another one of this project. The annotation counts, and not the label: labels of a node may come from a peer.
func (s *steadyNode) begin(before *corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signed = s.signed || before.Annotations[liqo.LabelVirtualKubelet] != ""
	if liqo.NodeReady(before) {
		s.readySince = liqo.NodeCondition(before, corev1.NodeReady).LastTransitionTime
		s.settled = time.Now().Add(settling)
		time.AfterFunc(settling, s.reconsider)
	}
}

// sign makes the node say that its virtual kubelet is this project's.
func (s *steadyNode) sign() {
	s.mu.Lock()
	s.signed = true
	s.mu.Unlock()
	s.reconsider()
}

func (s *steadyNode) isSigned() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signed
}

// complete puts on a node where its virtual kubelet answers, what it is, and whether it is this project's. The caller holds the lock.
//
// Liqo's own node is not enough: it becomes what the API server has whenever Liqo changes its labels, and a virtual kubelet that is being
// replaced may have written its address there a moment before.
func (s *steadyNode) complete(node *corev1.Node) {
	node.Status.Addresses, node.Status.DaemonEndpoints, node.Status.NodeInfo = s.own.Addresses, s.own.DaemonEndpoints, s.own.NodeInfo
	if !s.signed {
		delete(node.Labels, liqo.LabelVirtualKubelet)
		delete(node.Annotations, liqo.LabelVirtualKubelet)
		return
	}
	metav1.SetMetaDataLabel(&node.ObjectMeta, liqo.LabelVirtualKubelet, signature())
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, liqo.LabelVirtualKubelet, signature())
}

// completed returns a copy of a node with what this virtual kubelet knows of it.
func (s *steadyNode) completed(node *corev1.Node) *corev1.Node {
	node = node.DeepCopy()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complete(node)
	return node
}

// Pods tells of the pods of a virtual node. Its functions may be called at any time, also
// concurrently.
type Pods struct {
	// Present reports whether there is one.
	Present func() bool
	// Direct reports whether one is reached past the foreign cluster.
	Direct func() bool
}

func newSteadyNode(inner node.NodeProvider, own corev1.NodeStatus, pods Pods, patience time.Duration, log logr.Logger) *steadyNode {
	return &steadyNode{NodeProvider: inner, own: own, pods: pods, patience: patience, log: log, stale: wake.New()}
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

// Ping implements node.NodeProvider: the virtual kubelet runs, and renews the lease of
// its node. What it knows of the foreign cluster is in the node's conditions.
func (*steadyNode) Ping(context.Context) error { return nil }

// ask asks again and again whether the foreign cluster answers, until the context
// ends. Who cannot tell in time leaves it at what was known.
func (s *steadyNode) ask(ctx context.Context, every, timeout time.Duration, answers func(context.Context) (bool, error)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, timeout)
		answer, err := answers(asking)
		cancel()
		if err != nil {
			s.log.V(1).Info("Cannot read from this cluster whether the foreign one answers", "reason", err.Error())
		} else {
			s.heard(answer)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// heard notes whether the foreign cluster answers.
func (s *steadyNode) heard(answer bool) {
	s.mu.Lock()
	switch {
	case answer:
		s.silentSince = time.Time{}
	case s.silentSince.IsZero():
		s.silentSince = time.Now()
	}
	s.mu.Unlock()
	s.reconsider()
}

// reconsider shows the node again: something has changed that its state follows
// from. It does not block.
func (s *steadyNode) reconsider() { s.stale.Set() }

// keepNode shows the node whenever it is to be reconsidered, until the context ends.
func (s *steadyNode) keepNode(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.stale.Taken():
			if show, now := s.current(); show != nil && now != nil {
				show(now)
			}
		}
	}
}

// current returns the node as it is to be shown, and the way to do it; both may be
// nil.
func (s *steadyNode) current() (show func(*corev1.Node), now *corev1.Node) {
	direct, present := s.pods.Direct(), s.pods.Present()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told == nil || s.settles() {
		return s.show, nil
	}
	is := circumstances{mute: !s.silentSince.IsZero(), direct: direct, present: present}
	if is.mute {
		is.silentSince = s.silentSince.Add(s.patience)
		is.silent = !time.Now().Before(is.silentSince)
	}
	now = steady(s.told, is, s.readySince)
	s.complete(now)
	return s.show, now
}

// settles reports whether Liqo does not know yet how the node is, and notes since when it
// is Ready. The caller holds the lock.
func (s *steadyNode) settles() bool {
	if !liqo.NodeReady(s.told) {
		return time.Now().Before(s.settled)
	}
	ready := liqo.NodeCondition(s.told, corev1.NodeReady)
	if time.Now().Before(s.settled) {
		// It was so before: Liqo has only learned it now.
		s.learned = ready.LastTransitionTime
	}
	s.settled = time.Time{}
	if ready.LastTransitionTime.Equal(&s.learned) {
		ready.LastTransitionTime = s.readySince
	} else if !ready.LastTransitionTime.Equal(&s.readySince) {
		s.readySince, s.learned = ready.LastTransitionTime, metav1.Time{}
	}
	return false
}

// circumstances are what Liqo does not look at.
type circumstances struct {
	// mute is whether the foreign cluster did not answer when it was asked last, and
	// silent whether it has not for too long, which it is then since silentSince.
	mute, silent bool
	silentSince  time.Time
	// direct is whether pods are reached past it, and present whether there are any.
	direct, present bool
}

// steady returns a node as Kubernetes is to see it; told is how Liqo has it.
func steady(told *corev1.Node, c circumstances, readySince metav1.Time) *corev1.Node {
	const unavailable = corev1.NodeNetworkUnavailable
	node := told.DeepCopy()
	switch lost := c.mute || isTrue(told, unavailable); {
	case lost && c.direct:
		setReady(node, corev1.ConditionTrue, readySince, reasonReachedDirectly, "The foreign cluster is lost, but its pods are reached directly")
		nodeprovider.UpdateNodeCondition(node, unavailable, func() (corev1.ConditionStatus, string, string) {
			return corev1.ConditionTrue, reasonClusterLost, "The foreign cluster does not answer"
		})
	case c.silent && liqo.NodeReady(told):
		setReady(node, corev1.ConditionFalse, metav1.NewTime(c.silentSince), reasonClusterSilent,
			"The API server of the foreign cluster does not answer")
	case !lost && c.present && liqo.OnlyBare(told):
		setReady(node, corev1.ConditionTrue, readySince, reasonPodsStay, "The foreign cluster no longer offers anything, but pods run there")
	}
	return node
}

// setReady says whether a node is Ready, and since when.
func setReady(node *corev1.Node, is corev1.ConditionStatus, since metav1.Time, reason, message string) {
	nodeprovider.UpdateNodeCondition(node, corev1.NodeReady, func() (corev1.ConditionStatus, string, string) {
		return is, reason, message
	})
	if ready := liqo.NodeCondition(node, corev1.NodeReady); !since.IsZero() {
		ready.LastTransitionTime = since
	}
}

func isTrue(node *corev1.Node, kind corev1.NodeConditionType) bool {
	condition := liqo.NodeCondition(node, kind)
	return condition != nil && condition.Status == corev1.ConditionTrue
}
