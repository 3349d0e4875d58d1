// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/exposition"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	discoveryv1listers "k8s.io/client-go/listers/discovery/v1"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/address"
	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/reflectiontest"
	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

func TestOnlyOwnEndpointsArePassedOn(t *testing.T) {
	const provider, consumer, other = cluster.ID("provider"), cluster.ID("consumer"), cluster.ID("other")
	translation := address.New(endpointIPAM{}, provider, nil)
	translation.SetPeer(consumer, addressing.Peer{
		Pods: viewOf(t, "10.200.0.0/16", "10.91.0.0/16"), External: viewOf(t, "10.81.0.0/16", "10.92.0.0/16"),
	})
	translation.SetPeer(other, addressing.Peer{Pods: viewOf(t, "10.200.0.0/16", "10.93.0.0/16")})
	shadow := map[string]string{liqo.LabelManagedBy: liqo.ManagedByShadowEndpointSlice}
	native := map[string]string{discoveryv1.LabelManagedBy: kubernetesSlices}

	cases := map[string]struct {
		reason    string
		owner     cluster.ID
		labels    map[string]string
		endpoints []string
		want      []string
		tooMany   float64
	}{
		"OwnPods": {"the consumer's pods", consumer, shadow, []string{"10.91.0.7", "10.91.0.8"}, []string{"10.91.0.7", "10.91.0.8"}, 0},
		"OwnExternal": {
			"what the consumer reaches itself over another peering", consumer, shadow, []string{"10.92.0.7"}, []string{"10.92.0.7"}, 0,
		},
		"OthersPods": {"pods of another consumer", consumer, shadow, []string{"10.93.0.7", "10.91.0.7"}, []string{"10.91.0.7"}, 0},
		"Brokers":    {"the network of this cluster", consumer, shadow, []string{"10.201.0.7", "172.30.0.2", "169.254.169.254"}, nil, 0},
		"Garbage":    {"an address of a peer is hostile until parsed", consumer, shadow, []string{"localhost"}, nil, 0},
		"TooMany": {"relay addresses are for all consumers", consumer, shadow,
			[]string{"10.91.0.1", "10.91.0.2", "10.91.0.2", "10.91.0.3", "10.91.0.4", "10.91.0.5"},
			[]string{"10.91.0.1", "10.91.0.2", "10.91.0.2", "10.91.0.3"}, 2},
		"UnknownOwner": {"it is not known whose twin the namespace is", "", shadow, []string{"10.91.0.7"}, nil, 0},
		"Native": {
			"what this cluster itself says is its own business", consumer, native, []string{"10.201.0.7", "172.30.0.2"},
			[]string{"10.201.0.7", "172.30.0.2"}, 0,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "twin", Name: "web-abcde", Labels: tc.labels}}
			for _, address := range tc.endpoints {
				slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
			}
			before := slice.DeepCopy()
			all := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			if err := all.Add(slice); err != nil {
				t.Fatal(err)
			}
			events := record.NewFakeRecorder(2)
			refused := prometheus.NewCounter(prometheus.CounterOpts{})
			reflector := &transitSlices{
				transit:   &transitEndpoints{known: translation, budget: newEndpointBudget(3), refused: refused, log: testr.New(t)},
				namespace: "twin", all: discoveryv1listers.NewEndpointSliceLister(all).EndpointSlices("twin"), events: events,
				leftOut: map[string]leftOut{},
				owner: &twinOwner{
					known: tc.owner != "", id: tc.owner, read: func() (*corev1.Namespace, error) { return nil, errors.New("no answer") },
				},
			}
			var got []string
			for range 2 { // Liqo looks often, and people are told once.
				shown, err := reflector.get(slice.Name)
				if err != nil {
					t.Fatal(err)
				}
				got = nil
				for _, endpoint := range shown.Endpoints {
					got = append(got, endpoint.Addresses...)
				}
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

// TestEndpointsLeftOutOnce leaves out the endpoint of a slice of the consumer that does not change after that.
func TestEndpointsLeftOutOnce(t *testing.T) {
	reflectiontest.BeBroker()
	peer := addressing.Peer{Pods: viewOf(t, "10.200.0.0/16", "10.91.0.0/16")}
	errNoAnswer := errors.New("no answer")
	for name, tc := range map[string]struct {
		reason string
		// unread is whether the API server does not answer at first, when it is asked whose twin the namespace is.
		unread bool
		// tunnel and budget are whether the tunnel to the consumer is known at first, and addresses are left.
		tunnel, budget bool
		wantErr        error
	}{
		"NamespaceUnread": {"nobody knows whose the endpoint must be, and Liqo tries again", true, true, true, errNoAnswer},
		"TunnelUnknown":   {"what is translated again when the tunnel becomes known has all endpoints", false, false, true, nil},
		"TooMany":         {"it is looked at again, because other slices may go", false, true, false, generic.EnqueueAfter(tooManyRetry)},
	} {
		t.Run(name, func(t *testing.T) {
			translation := address.New(endpointIPAM{}, "provider", nil)
			reflector := &transitEndpoints{
				known: translation, budget: newEndpointBudget(1), refused: prometheus.NewCounter(prometheus.CounterOpts{}), log: testr.New(t),
			}
			reflector.reflect(translation, &generic.ReflectorConfig{}) // Without workers.
			slice := &discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "twin", Name: "web", Labels: map[string]string{liqo.LabelManagedBy: liqo.ManagedByShadowEndpointSlice},
				},
				Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.91.0.7"}, NodeName: new("liqo-consumer")}},
			}
			objects := []runtime.Object{slice, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: "twin", Labels: map[string]string{"liqo.io/remote-cluster-id": "consumer"},
				Annotations: map[string]string{"liqo.io/managed-by-namespace-map": "t/m"},
			}}}
			for _, id := range []string{"consumer", "provider"} {
				objects = append(objects, &corev1.Node{
					ObjectMeta: metav1.ObjectMeta{Name: "liqo-" + id, Labels: map[string]string{"liqo.io/remote-cluster-id": id}},
				})
			}
			if tc.tunnel {
				translation.SetPeer("consumer", peer)
			}
			if !tc.budget {
				reflector.budget.admitAddresses("consumer", "other/slice", []netip.Addr{netip.MustParseAddr("10.91.0.9")},
					time.Now().Add(-2*endpointHold))
			}
			c := reflectiontest.Start(t, reflector, reflector.namespaced(exposition.NewNamespacedEndpointSliceReflector(translation)), objects...)
			passed := func() (addresses []string) {
				t.Helper()
				shadow, err := c.RemoteLiqo.VirtualkubeletV1alpha1().ShadowEndpointSlices("twin-broker").Get(t.Context(), "web", metav1.GetOptions{})
				if apierrors.IsNotFound(err) {
					return nil
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, endpoint := range shadow.Spec.Template.Endpoints {
					addresses = append(addresses, endpoint.Addresses...)
				}
				return addresses
			}
			unread := tc.unread
			c.Local.PrependReactor("get", "namespaces", func(k8stesting.Action) (bool, runtime.Object, error) { return unread, nil, errNoAnswer })
			if err := c.Handle(t.Context()); !errors.Is(err, tc.wantErr) || len(passed()) > 0 {
				t.Fatalf("%s: at first, Handle returns %v, want %v, and passes on %v", tc.reason, err, tc.wantErr, passed())
			}

			unread = false
			translation.SetPeer("consumer", peer)
			reflector.budget.forgetSlice("other/slice", time.Now().Add(-2*endpointHold))
			reflectiontest.Eventually(t, func() bool { // Until the first shadow is in the cache.
				if err := c.Handle(t.Context()); err != nil {
					t.Fatalf("%s: then, Handle returns %v", tc.reason, err)
				}
				return slices.Equal(passed(), []string{"192.0.2.8"})
			})
		})
	}
}
