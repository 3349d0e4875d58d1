// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

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
		"Well":         {"as Liqo says", liqoNode(true, true), circumstances{direct: true}, view{Ready: true}},
		"TunnelLost":   {"pods answer past the broker", liqoNode(false, true), circumstances{direct: true}, view{Ready: true, Unavailable: true}},
		"Mute":         {"a broker whose API is away takes no pods", liqoNode(true, true), circumstances{mute: true, direct: true}, view{Ready: true, Unavailable: true}},
		"BothLost":     {"the same", liqoNode(false, true), circumstances{mute: true, direct: true}, view{Ready: true, Unavailable: true}},
		"NobodyDirect": {"no pod answers, as in stock Liqo", liqoNode(false, true), circumstances{present: true}, view{Unavailable: true}},
		"MuteAlone":    {"its tunnel carries what there is; Ping lets the node go stale", liqoNode(true, true), circumstances{mute: true, present: true}, view{Ready: true}},
		"Empty":        {"a cluster that offers nothing is not ready", liqoNode(true, false), circumstances{}, view{}},
		"OfferGone":    {"until its pods have left they answer", liqoNode(true, false), circumstances{present: true}, view{Ready: true}},
		"AllGone":      {"not without the tunnel", liqoNode(false, false), circumstances{present: true}, view{Unavailable: true}},
		"GoneDirect":   {"but past the broker", liqoNode(false, false), circumstances{present: true, direct: true}, view{Ready: true, Unavailable: true}},
		"GoneAndMute":  {"nobody knows how they are", liqoNode(true, false), circumstances{mute: true, present: true}, view{}},
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

// innerNode is what Liqo does.
type innerNode struct {
	show func(*corev1.Node)
	err  error
}

func (n *innerNode) Ping(context.Context) error { return n.err }

func (n *innerNode) NotifyNodeStatus(_ context.Context, show func(*corev1.Node)) { n.show = show }

func TestSteadyNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, direct, errMute := &innerNode{}, false, errors.New("mute")
		node := newSteadyNode(inner, answering{present: func() bool { return true }, direct: func() bool { return direct }})
		ctx, cancel := context.WithCancel(t.Context())
		var last *corev1.Node
		node.NotifyNodeStatus(ctx, func(now *corev1.Node) { last = now })
		done := make(chan struct{})
		go func() {
			defer close(done)
			node.run(ctx)
		}()
		expect := func(step string, ready bool) {
			t.Helper()
			synctest.Wait()
			if last == nil || liqo.NodeReady(last) != ready {
				t.Errorf("%s: shown as %+v, want ready to be %t", step, last, ready)
			}
		}

		if err := node.Ping(ctx); err != nil {
			t.Errorf("Ping() of a cluster that answers: %v", err)
		}
		inner.show(liqoNode(true, true))
		expect("well", true)
		inner.show(liqoNode(false, true))
		expect("lost", false)
		direct = true
		node.reconsider()
		expect("lost, and a pod became direct", true)

		inner.err = errMute
		if err := node.Ping(ctx); err != nil {
			t.Errorf("Ping() with a direct pod: %v", err)
		}
		inner.show(liqoNode(true, true))
		expect("mute, and direct", true)
		if !isTrue(last, corev1.NodeNetworkUnavailable) {
			t.Error("new pods would be bound to a node whose cluster is mute")
		}
		direct = false
		if err := node.Ping(ctx); !errors.Is(err, errMute) {
			t.Errorf("Ping() without a direct pod: got %v, want %v", err, errMute)
		}
		cancel()
		<-done
	})
}
