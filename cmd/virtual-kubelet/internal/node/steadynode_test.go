// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// liqoNode is a node as Liqo shows it: not ready without a tunnel or without resources.
func liqoNode(tunnel, resources bool) *corev1.Node {
	status := func(is bool) corev1.ConditionStatus {
		if is {
			return corev1.ConditionTrue
		}
		return corev1.ConditionFalse
	}
	node := &corev1.Node{}
	for kind, is := range map[corev1.NodeConditionType]bool{
		corev1.NodeReady:              tunnel && resources,
		corev1.NodeNetworkUnavailable: !tunnel,
		corev1.NodeMemoryPressure:     !resources,
	} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status(is)})
	}
	return node
}

func TestSteady(t *testing.T) {
	type view struct{ Ready, Unavailable bool }
	cases := map[string]struct {
		reason string
		told   *corev1.Node
		is     circumstances
		want   view
	}{
		"Well":       {"as Liqo says", liqoNode(true, true), circumstances{direct: true}, view{Ready: true}},
		"TunnelLost": {"pods answer past the broker", liqoNode(false, true), circumstances{direct: true}, view{Ready: true, Unavailable: true}},
		"Mute": {
			"a broker whose API is away takes no pods", liqoNode(true, true), circumstances{mute: true, direct: true},
			view{Ready: true, Unavailable: true},
		},
		"BothLost":     {"the same", liqoNode(false, true), circumstances{mute: true, direct: true}, view{Ready: true, Unavailable: true}},
		"NobodyDirect": {"no pod answers, as in stock Liqo", liqoNode(false, true), circumstances{present: true}, view{Unavailable: true}},
		"MuteAlone": {
			"its tunnel carries what there is, for a while", liqoNode(true, true), circumstances{mute: true, present: true}, view{Ready: true},
		},
		"Silent": {"nobody knows how its pods are", liqoNode(true, true), circumstances{mute: true, silent: true, present: true}, view{}},
		"SilentDirect": {
			"pods answer past the broker", liqoNode(true, true), circumstances{mute: true, silent: true, present: true, direct: true},
			view{Ready: true, Unavailable: true},
		},
		"Empty":     {"a cluster that offers nothing is not ready", liqoNode(true, false), circumstances{}, view{}},
		"OfferGone": {"until its pods have left they answer", liqoNode(true, false), circumstances{present: true}, view{Ready: true}},
		"AllGone":   {"not without the tunnel", liqoNode(false, false), circumstances{present: true}, view{Unavailable: true}},
		"GoneDirect": {
			"but past the broker", liqoNode(false, false), circumstances{present: true, direct: true}, view{Ready: true, Unavailable: true},
		},
		"GoneAndMute": {"nobody knows how they are", liqoNode(true, false), circumstances{mute: true, present: true}, view{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.told.DeepCopy()
			node := steady(tc.told, tc.is, metav1.Time{})
			got := view{liqo.NodeReady(node), isTrue(node, corev1.NodeNetworkUnavailable)}
			if got != tc.want {
				t.Errorf("%s: got %+v, want %+v", tc.reason, got, tc.want)
			}
			if diff := cmp.Diff(before, tc.told); diff != "" {
				t.Errorf("Liqo's own node changed: -before +after\n%s", diff)
			}
		})
	}
}

// TestSteadySince looks at when the node is said to have become Ready.
func TestSteadySince(t *testing.T) {
	since := metav1.NewTime(time.Unix(1000, 0))
	for range 2 {
		ready := liqo.NodeCondition(steady(liqoNode(false, true), circumstances{direct: true}, since), corev1.NodeReady)
		if !ready.LastTransitionTime.Equal(&since) || ready.Reason != reasonReachedDirectly {
			t.Errorf("got %v with reason %q, want %v", ready.LastTransitionTime, ready.Reason, since)
		}
	}
}

// TestSteadySilent looks at since when a silent cluster's node is said not to be Ready.
func TestSteadySilent(t *testing.T) {
	since := time.Unix(1000, 0)
	for range 2 {
		ready := liqo.NodeCondition(steady(liqoNode(true, true), circumstances{mute: true, silent: true, silentSince: since}, metav1.Time{}),
			corev1.NodeReady)
		if !ready.LastTransitionTime.Time.Equal(since) || ready.Reason != reasonClusterSilent {
			t.Errorf("got %v with reason %q, want %v", ready.LastTransitionTime, ready.Reason, since)
		}
	}
}

// innerNode is what Liqo does.
type innerNode struct{ show func(*corev1.Node) }

func (*innerNode) Ping(context.Context) error { return errors.New("nobody asks") }

func (n *innerNode) NotifyNodeStatus(_ context.Context, show func(*corev1.Node)) { n.show = show }

func TestSteadyNode(t *testing.T) {
	const patience, every = 40 * time.Second, time.Second
	synctest.Test(t, func(t *testing.T) {
		inner := &innerNode{}
		var answer, direct atomic.Bool
		var failure atomic.Pointer[error]
		answer.Store(true)
		pods := Pods{Present: func() bool { return true }, Direct: direct.Load}
		node := newSteadyNode(inner, corev1.NodeStatus{}, pods, patience, logr.Discard())
		ctx, cancel := context.WithCancel(t.Context())
		var shown atomic.Pointer[corev1.Node]
		node.NotifyNodeStatus(ctx, func(now *corev1.Node) { shown.Store(now) })
		var running sync.WaitGroup
		running.Go(func() { node.keepNode(ctx) })
		running.Go(func() {
			node.ask(ctx, every, every/2, func(ctx context.Context) (bool, error) {
				if err := failure.Load(); err != nil {
					<-ctx.Done()
					return false, *err
				}
				return answer.Load(), nil
			})
		})
		expect := func(step string, ready bool) {
			t.Helper()
			synctest.Wait()
			if last := shown.Load(); last == nil || liqo.NodeReady(last) != ready {
				t.Errorf("%s: shown as %+v, want ready to be %t", step, last, ready)
			}
			if err := node.Ping(ctx); err != nil {
				t.Errorf("%s: the virtual kubelet runs, and the lease says it does not: %v", step, err)
			}
		}

		inner.show(liqoNode(true, true))
		expect("well", true)
		inner.show(liqoNode(false, true))
		expect("lost", false)
		direct.Store(true)
		node.reconsider()
		expect("lost, and a pod became direct", true)

		answer.Store(false)
		time.Sleep(every)
		inner.show(liqoNode(true, true))
		expect("mute, and direct", true)
		if !isTrue(shown.Load(), corev1.NodeNetworkUnavailable) {
			t.Error("new pods would be bound to a node whose cluster is mute")
		}
		direct.Store(false)
		time.Sleep(patience / 2)
		expect("mute for a while", true)
		time.Sleep(patience)
		expect("mute for long", false)
		answer.Store(true)
		time.Sleep(every)
		expect("it answers again", true)

		errSlow := errors.New("slow")
		failure.Store(&errSlow)
		answer.Store(false)
		time.Sleep(3 * patience)
		expect("this cluster cannot tell for long", true)
		cancel()
		running.Wait()
	})
}

// TestSettling restarts the virtual kubelet of a node that was Ready, or was not: Liqo learns of its resources and then of its tunnel.
func TestSettling(t *testing.T) { synctest.Test(t, testSettling) }

func testSettling(t *testing.T) {
	since := metav1.NewTime(time.Unix(1000, 0))
	before := func(ready bool) *corev1.Node {
		node := liqoNode(ready, true)
		liqo.NodeCondition(node, corev1.NodeReady).LastTransitionTime = since
		return node
	}
	told := func(ready bool, at time.Time) *corev1.Node {
		node := liqoNode(ready, true)
		liqo.NodeCondition(node, corev1.NodeReady).LastTransitionTime = metav1.NewTime(at)
		return node
	}
	start := func(ready bool) *steadyNode {
		s := newSteadyNode(&innerNode{}, corev1.NodeStatus{}, Pods{Present: func() bool { return true }, Direct: func() bool { return false }},
			time.Minute, logr.Discard())
		s.begin(before(ready))
		return s
	}
	show := func(s *steadyNode, node *corev1.Node) *corev1.NodeCondition {
		s.mu.Lock()
		s.told = node
		s.mu.Unlock()
		_, shown := s.current()
		if shown == nil {
			return nil
		}
		return liqo.NodeCondition(shown, corev1.NodeReady)
	}

	s := start(true)
	if got := show(s, told(false, time.Now())); got != nil {
		t.Errorf("Liqo has just begun: shown as %+v, want as it was", got)
	}
	learned := time.Now()
	for range 2 {
		if got := show(s, told(true, learned)); got == nil || got.Status != corev1.ConditionTrue || !got.LastTransitionTime.Equal(&since) {
			t.Errorf("it was ready all the time: shown as %+v, want since %v", got, since)
		}
		time.Sleep(settling)
	}
	if got := show(s, told(false, time.Now())); got == nil || got.Status != corev1.ConditionFalse {
		t.Errorf("lost later: shown as %+v", got)
	}
	time.Sleep(time.Second)
	if got := show(s, told(true, time.Now())); got == nil || !got.LastTransitionTime.Time.Equal(time.Now()) {
		t.Errorf("back later: shown as %+v, want since %v", got, time.Now())
	}

	s = start(true)
	time.Sleep(settling)
	if got := show(s, told(false, time.Now())); got == nil || got.Status != corev1.ConditionFalse {
		t.Errorf("lost while the virtual kubelet was away: shown as %+v", got)
	}
	if got := show(start(false), told(false, time.Now())); got == nil || got.Status != corev1.ConditionFalse {
		t.Errorf("lost before: shown as %+v", got)
	}
}

// TestSettlingEnds has nobody ask about the foreign cluster: the node is looked at again all the same.
func TestSettlingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, no := &innerNode{}, func() bool { return false }
		s := newSteadyNode(inner, corev1.NodeStatus{}, Pods{Present: no, Direct: no}, time.Minute, logr.Discard())
		ctx, cancel := context.WithCancel(t.Context())
		var shown atomic.Pointer[corev1.Node]
		s.NotifyNodeStatus(ctx, func(now *corev1.Node) { shown.Store(now) })
		s.begin(liqoNode(true, true))
		var running sync.WaitGroup
		running.Go(func() { s.keepNode(ctx) })
		inner.show(liqoNode(false, true)) // The tunnel is down; Liqo says so once.
		time.Sleep(2 * settling)
		synctest.Wait()
		if last := shown.Load(); last == nil || liqo.NodeReady(last) {
			t.Errorf("the tunnel is down, and the node is shown as %+v", last)
		}
		cancel()
		running.Wait()
	})
}

// TestOwnAddress shows a node of which Liqo has what the virtual kubelet before wrote, which was replaced at that moment.
func TestOwnAddress(t *testing.T) {
	status := func(address, version string, port int32) corev1.NodeStatus {
		return corev1.NodeStatus{
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: port}},
			NodeInfo:        corev1.NodeSystemInfo{KubeletVersion: version},
		}
	}
	no := func() bool { return false }
	inner, own := &innerNode{}, status("10.1.0.2", "v1.34.0", 10250)
	s := newSteadyNode(inner, own, Pods{Present: no, Direct: no}, time.Minute, logr.Discard())
	s.NotifyNodeStatus(t.Context(), func(*corev1.Node) {})
	before, told := status("10.1.0.1", "v1.33.0", 10255), liqoNode(true, true)
	told.Status.Addresses, told.Status.DaemonEndpoints, told.Status.NodeInfo = before.Addresses, before.DaemonEndpoints, before.NodeInfo
	inner.show(told)
	_, shown := s.current()
	for reason, node := range map[string]*corev1.Node{"it is shown": shown, "it is created again": s.completed(told)} {
		got := node.Status
		if got.Addresses[0] != own.Addresses[0] || got.DaemonEndpoints != own.DaemonEndpoints || got.NodeInfo != own.NodeInfo {
			t.Errorf("%s with %v, %v and %v, want %v, %v and %v", reason, got.Addresses, got.DaemonEndpoints, got.NodeInfo,
				own.Addresses, own.DaemonEndpoints, own.NodeInfo)
		}
	}
	if told.Status.Addresses[0] != before.Addresses[0] {
		t.Error("Liqo's node is changed")
	}
}
