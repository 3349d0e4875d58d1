// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package stale_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/agent/stale"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/test/watches"
)

// TestSetup has the controller look at a pod when the pod, its IP, or what says which nodes are a broker's changes, and at nothing else.
func TestSetup(t *testing.T) {
	// What it looks at.
	h := newHome()
	people := &api.IP{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "people"}}
	h.others = []client.Object{people}
	h.pod.Status.PodIP = h.ip.Spec.IP // There is nothing to delete.
	held, _ := h.start(t)
	looked := make(chan client.ObjectKey, 100)
	noting := interceptor.NewClient(held, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*corev1.Pod); is {
				looked <- key
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	told := watches.Start(t, held.Scheme(), func(mgr ctrl.Manager) error {
		return stale.Setup(mgr, stale.Config{Client: noting, Live: held})
	}, h.pod, h.ip, h.record, h.node)

	// What happens. It looks at one pod after the other: whatever it looks at before the last one is due to what happened.
	last := watches.Changed(h.pod, func(p *corev1.Pod) { p.Name = "last" })
	cases := map[string]struct {
		reason  string
		was, is client.Object
		looked  bool
	}{
		"PodIsThere": {"The program may have been away.", nil, h.pod, true},
		"PodIsShown": {"Its IP is stale from then on.", watches.Changed(h.pod, func(p *corev1.Pod) {
			p.Status.PodIP = "10.65.0.1"
		}), h.pod, true},
		"PodIsBound": {"It is on a node of a broker.", watches.Changed(h.pod, func(p *corev1.Pod) { p.Spec.NodeName = "" }), h.pod, true},
		"PodIsMade":  {"It has taken the place of another.", watches.Changed(h.pod, func(p *corev1.Pod) { p.UID = "former" }), h.pod, true},
		"PodIsReady": {"That changes no address.", watches.Changed(h.pod, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}}
		}), h.pod, false},
		"PodIsGone": {"Its IP goes with it.", h.pod, nil, false},

		"IPIsMade":    {"Liqo may have made it by an address of before.", nil, h.ip, true},
		"IPIsWritten": {"It has become that of a pod.", watches.Changed(h.ip, func(ip *api.IP) { ip.OwnerReferences = nil }), h.ip, true},

		"Recorded": {"A broker may be known after its pods.", nil, h.record, true},
		"Said": {"People call it a broker now.", watches.Changed(h.record, func(r *api.ForeignCluster) {
			r.Annotations = nil
		}), h.record, true},
		"Renamed": {"It is another peer.", watches.Changed(h.record, func(r *api.ForeignCluster) {
			r.Spec.ClusterID = "other"
		}), h.record, true},
		"Seen": {"What else is said of it does not matter.", watches.Changed(h.record, func(r *api.ForeignCluster) {
			r.Labels = map[string]string{"a": "b"}
		}), h.record, false},

		"NodeIsMade": {"A node may be known after its pods.", nil, h.node, true},
		"NodeLeads": {"It leads to a broker now.", watches.Changed(h.node, func(n *api.VirtualNode) {
			n.Spec.ClusterID = "other"
		}), h.node, true},
		"NodeIsGone": {"Of two of this name only a broker's may be left.", h.node, nil, true},
		"NodeIsSeen": {"What else is said of it does not matter.", watches.Changed(h.node, func(n *api.VirtualNode) {
			n.Labels = map[string]string{"a": "b"}
		}), h.node, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			told.Happens(tc.was, tc.is)
			told.Happens(nil, last)
			var want, got []client.ObjectKey
			if tc.looked {
				want = append(want, request.NamespacedName)
			}
			for key := range looked {
				if key.Name == last.Name {
					break
				}
				got = append(got, key)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s It looks at %v, want %v", tc.reason, got, want)
			}
		})
	}
}
