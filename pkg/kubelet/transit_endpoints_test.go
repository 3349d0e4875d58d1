// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"errors"
	"testing"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	}{
		"OwnPods":      {"the consumer's pods", consumer, shadow, []string{"10.91.0.7", "10.91.0.8"}, []string{"10.91.0.7", "10.91.0.8"}},
		"OwnExternal":  {"what the consumer reaches itself over another peering", consumer, shadow, []string{"10.92.0.7"}, []string{"10.92.0.7"}},
		"OthersPods":   {"pods of another consumer", consumer, shadow, []string{"10.93.0.7", "10.91.0.7"}, []string{"10.91.0.7"}},
		"Brokers":      {"the network of this cluster", consumer, shadow, []string{"10.201.0.7", "172.30.0.2", "169.254.169.254"}, nil},
		"Garbage":      {"an address of a peer is hostile until parsed", consumer, shadow, []string{"localhost"}, nil},
		"UnknownOwner": {"it is not known whose twin the namespace is", "", shadow, []string{"10.91.0.7"}, nil},
		"Native":       {"what this cluster itself says is its own business", consumer, nil, []string{"10.201.0.7", "172.30.0.2"}, []string{"10.201.0.7", "172.30.0.2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "twin", Name: "web-abcde", Labels: tc.labels}}
			for _, address := range tc.endpoints {
				slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
			}
			before := slice.DeepCopy()
			reflector := &transitEndpoints{owns: translation.owns, log: testr.New(t)}
			var got []string
			owner := &twinOwner{known: tc.owner != "", id: tc.owner, read: func() (*corev1.Namespace, error) { return nil, errors.New("no answer") }}
			for _, endpoint := range reflector.ownOnly(owner, slice).Endpoints {
				got = append(got, endpoint.Addresses...)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, slice); diff != "" {
				t.Errorf("the slice itself was changed:\n%s", diff)
			}
		})
	}
}
