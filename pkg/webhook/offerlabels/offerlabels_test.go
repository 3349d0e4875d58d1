// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offerlabels

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	gocmp "github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

func TestHandle(t *testing.T) {
	const own = cluster.ID("id-broker")
	a, consumer := cluster.Identity{ID: "id-a", Name: "a"}, cluster.Identity{ID: "id-c", Name: "c"}
	node := liqotest.VirtualNode(a, true)
	node.Labels["topology.kubernetes.io/region"] = "south"
	node.Labels["topology.kubernetes.io/zone"] = "south-1"
	node.Labels["kubernetes.io/hostname"] = "liqo-a"
	node.Labels["node-role.kubernetes.io/control-plane"] = ""
	node.Labels["virtualkubelet.liqo.io/nodename"] = "a"
	node.Labels["rack"] = "1"
	second := node.DeepCopy() // Another node of the same provider.
	second.Name, second.Labels["rack"] = "liqo-a-2", "2"
	secondOffer := liqotest.Offer(a, nil)
	secondOffer.Name, secondOffer.Spec.NodeName = second.Name, second.Name
	lying := node.DeepCopy() // Another cluster's, which would tell of itself.
	lying.Name, lying.Labels["flavour"] = "liqo-x", "bitter"
	provider := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: string(a.ID), Labels: map[string]string{
		"topology.kubernetes.io/region": "north", "certified": "yes", "kubernetes.io/arch": "arm64", "app.kubernetes.io/name": "x",
	}}}
	shown := map[string]string{
		"liqo.io/provider": "kubeadm", "liqo.io/type": "virtual-node", "brokering.liqo.io/provider": "id-a",
		"topology.kubernetes.io/region": "north", "topology.kubernetes.io/zone": "south-1", "certified": "yes", "kubernetes.io/arch": "arm64",
	}
	before := map[string]string{"liqo.io/provider": "kubeadm"}
	offered := func(name string) *v09.ResourceOffer {
		o := liqotest.OfferTo(consumer, nil)
		o.Spec.NodeName, o.Spec.Labels = name, before
		return o
	}
	const writer = "system:serviceaccount:liqo:liqo-controller-manager"
	elsewhere := offered(nodename.Name(own, a))
	elsewhere.Namespace = liqotest.Tenant(a)
	cases := map[string]struct {
		reason string
		offer  *v09.ResourceOffer
		writer string // Liqo, if empty.
		fail   bool
		want   map[string]string
	}{
		"Provider": {
			reason: "The labels of the provider go before those of the broker, and not what says what a node is or differs between its nodes.",
			offer:  offered(nodename.Name(own, a)), want: shown,
		},
		"Gone": {
			reason: "A provider that is gone has no labels, and its node is virtual all the same.",
			offer:  offered(nodename.Name(own, cluster.Identity{ID: "id-b"})),
			want:   map[string]string{"liqo.io/provider": "kubeadm", "liqo.io/type": "virtual-node"},
		},
		"Broker":  {reason: "The node of the broker has its own.", offer: offered(""), want: before},
		"Foreign": {reason: "What a provider offers is not ours.", offer: liqotest.Offer(a, nil)},
		"Peer": {
			reason: "A peer reads nothing in an offer that it writes itself.", offer: offered(nodename.Name(own, a)), writer: string(consumer.ID),
			want: before,
		},
		"Tenant": {reason: "Nor is anything told in another cluster's tenant namespace.", offer: elsewhere, want: before},
		"Broken": {reason: "A failure to read hinders no offer.", offer: offered(nodename.Name(own, a)), fail: true, want: before},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := snapshottest.NewClient(t, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if _, nodes := list.(*corev1.NodeList); nodes && tc.fail {
						return errors.New("boom")
					}
					return c.List(ctx, list, opts...)
				},
			}, node, provider, liqotest.ForeignCluster(a, true, false), liqotest.ForeignCluster(consumer, false, true), liqotest.Offer(a, nil),
				second, secondOffer, lying)
			raw, err := json.Marshal(tc.offer)
			if err != nil {
				t.Fatal(err)
			}
			answer := New(c.Scheme(), snapshottest.Reader(c, own), writer).
				Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
					Namespace: tc.offer.Namespace, Object: runtime.RawExtension{Raw: raw},
					UserInfo: authenticationv1.UserInfo{Username: cmp.Or(tc.writer, writer)},
				}})
			if !answer.Allowed {
				t.Fatalf("%s\nrefused: %v", tc.reason, answer.Result)
			}
			if diff := gocmp.Diff(tc.want, apply(t, raw, answer).Spec.Labels); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// apply returns the offer as the API server stores it.
func apply(t *testing.T, raw []byte, answer admission.Response) *v09.ResourceOffer {
	t.Helper()
	operations, err := json.Marshal(answer.Patches)
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Patches) > 0 {
		patch, err := jsonpatch.DecodePatch(operations)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = patch.Apply(raw); err != nil {
			t.Fatal(err)
		}
	}
	o := &v09.ResourceOffer{}
	if err := json.Unmarshal(raw, o); err != nil {
		t.Fatal(err)
	}
	return o
}
