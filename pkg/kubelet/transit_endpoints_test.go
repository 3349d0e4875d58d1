// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"errors"
	"testing"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/capacitorset/liqo-broker/pkg/addressing"
	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

func TestOnlyOwnEndpointsArePassedOn(t *testing.T) {
	const provider, consumer, other = cluster.ID("provider"), cluster.ID("consumer"), cluster.ID("other")
	translation := newAddresses(localIPAM{}, provider, nil)
	translation.setPeer(consumer, addressing.Peer{
		Pods: mustView(t, "10.200.0.0/16", "10.91.0.0/16"), External: mustView(t, "10.81.0.0/16", "10.92.0.0/16"),
	})
	translation.setPeer(other, addressing.Peer{Pods: mustView(t, "10.200.0.0/16", "10.93.0.0/16")})
	shadow := map[string]string{liqo.LabelManagedBy: liqo.ManagedByShadowEndpointSlice}

	cases := map[string]struct {
		reason    string
		owner     cluster.ID
		labels    map[string]string
		endpoints []string
		want      []string
		tooMany   float64
	}{
		"OwnPods":     {"the consumer's pods", consumer, shadow, []string{"10.91.0.7", "10.91.0.8"}, []string{"10.91.0.7", "10.91.0.8"}, 0},
		"OwnExternal": {"what the consumer reaches itself over another peering", consumer, shadow, []string{"10.92.0.7"}, []string{"10.92.0.7"}, 0},
		"OthersPods":  {"pods of another consumer", consumer, shadow, []string{"10.93.0.7", "10.91.0.7"}, []string{"10.91.0.7"}, 0},
		"Brokers":     {"the network of this cluster", consumer, shadow, []string{"10.201.0.7", "172.30.0.2", "169.254.169.254"}, nil, 0},
		"Garbage":     {"an address of a peer is hostile until parsed", consumer, shadow, []string{"localhost"}, nil, 0},
		"TooMany": {"relay addresses are for all consumers", consumer, shadow,
			[]string{"10.91.0.1", "10.91.0.2", "10.91.0.2", "10.91.0.3", "10.91.0.4", "10.91.0.5"}, []string{"10.91.0.1", "10.91.0.2", "10.91.0.2", "10.91.0.3"}, 2},
		"UnknownOwner": {"it is not known whose twin the namespace is", "", shadow, []string{"10.91.0.7"}, nil, 0},
		"Native":       {"what this cluster itself says is its own business", consumer, nil, []string{"10.201.0.7", "172.30.0.2"}, []string{"10.201.0.7", "172.30.0.2"}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "twin", Name: "web-abcde", Labels: tc.labels}}
			for _, address := range tc.endpoints {
				slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
			}
			before := slice.DeepCopy()
			events := record.NewFakeRecorder(1)
			refused := prometheus.NewCounter(prometheus.CounterOpts{})
			reflector := &transitEndpoints{owns: translation.owns, budget: newEndpointBudget(3), refused: refused, log: testr.New(t)}
			var got []string
			owner := &twinOwner{known: tc.owner != "", id: tc.owner, read: func() (*corev1.Namespace, error) { return nil, errors.New("no answer") }}
			for _, endpoint := range reflector.ownOnly(owner, slice, events).Endpoints {
				got = append(got, endpoint.Addresses...)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, slice); diff != "" {
				t.Errorf("the slice itself was changed:\n%s", diff)
			}
			if told := testutil.ToFloat64(refused); told != tc.tooMany || len(events.Events) != int(min(tc.tooMany, 1)) {
				t.Errorf("%s: %v endpoints are counted as too many, want %v, and there are %d events", tc.reason, told, tc.tooMany, len(events.Events))
			}
		})
	}
}
