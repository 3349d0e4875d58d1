// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/liqonet/ipam"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/exposition"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/address"
	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/reflectiontest"
	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// prefixingIPAM maps an endpoint to itself with a mark, so that a test sees what it was asked.
type prefixingIPAM struct{ ipam.IpamClient }

func (prefixingIPAM) MapEndpointIP(_ context.Context, request *ipam.MapRequest, _ ...grpc.CallOption) (*ipam.MapResponse, error) {
	return &ipam.MapResponse{Ip: "mapped:" + request.GetIp()}, nil
}

// manualAddresses are those of a cluster with a foreign one, whose pods are 10.201.0.0/16 there and 10.83.0.0/16 here, and a
// peer. The foreign cluster has one pod at a provider, 10.91.0.7 there, which it relays at 10.202.0.1 here, and one at the peer.
func manualAddresses(t *testing.T) *address.Addresses {
	t.Helper()
	a := address.New(prefixingIPAM{}, "provider", &oneRelay{
		routes: []addressing.Route{{Provider: "peer", Pods: viewOf(t, "10.200.0.0/16", "10.90.0.0/16")}},
		from:   netip.MustParseAddr("10.91.0.7"), to: netip.MustParseAddr("10.202.0.1"),
	})
	a.SetPeer("provider", addressing.Peer{
		Pods: viewOf(t, "10.201.0.0/16", "10.83.0.0/16"), External: viewOf(t, "10.81.0.0/16", "10.202.0.0/16"),
		Home: viewOf(t, "10.200.0.0/16", "10.77.0.0/16"), Connected: true,
	})
	a.SetPeer("peer", addressing.Peer{
		Pods: viewOf(t, "10.200.0.0/16", "10.84.0.0/16"), External: viewOf(t, "10.81.0.0/16", "10.203.0.0/16"), Connected: true,
	})
	return a
}

// learn lets an address be that of a pod of the foreign cluster.
func learn(t *testing.T, a *address.Addresses, reported string) {
	t.Helper()
	a.Hold(reported, reported)
	if _, err := a.GetHomePodIP(t.Context(), &ipam.GetHomePodIPRequest{ClusterID: "provider", Ip: reported}); err != nil {
		t.Fatal(err)
	}
}

// manualSlice returns a slice with endpoints, as a user makes it.
func manualSlice(addresses ...string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "twin", Name: "web", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
	}
	return slice
}

// nodes are those of the broker, one for each cluster.
func nodes(ids ...string) (objects []runtime.Object) {
	for _, id := range ids {
		objects = append(objects, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "liqo-" + id, Labels: map[string]string{"liqo.io/remote-cluster-id": id}},
		})
	}
	return append(objects, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "worker", Labels: map[string]string{"kubernetes.io/hostname": "worker"}},
	})
}

// startEndpoints starts the reflection of a slice, and returns a function that tells what the foreign cluster was given.
func startEndpoints(t *testing.T, a *address.Addresses, objects ...runtime.Object) (c *reflectiontest.Clusters, passed func() []string) {
	t.Helper()
	reflectiontest.BeBroker()
	reflector := &transitEndpoints{
		known: a, budget: newEndpointBudget(100), refused: prometheus.NewCounter(prometheus.CounterOpts{}), log: testr.New(t),
	}
	reflector.reflect(a, &generic.ReflectorConfig{}) // Without workers.
	c = reflectiontest.Start(t, reflector, reflector.namespaced(exposition.NewNamespacedEndpointSliceReflector(a)), objects...)
	return c, func() (addresses []string) {
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
}

// TestManualEndpoints reflects slices that are not Kubernetes' own, with Liqo's reflector.
func TestManualEndpoints(t *testing.T) {
	on := func(slice *discoveryv1.EndpointSlice, node string) *discoveryv1.EndpointSlice {
		for i := range slice.Endpoints {
			slice.Endpoints[i].NodeName = &node
		}
		return slice
	}
	by := func(slice *discoveryv1.EndpointSlice, manager string) *discoveryv1.EndpointSlice {
		slice.Labels[discoveryv1.LabelManagedBy] = manager
		return slice
	}
	cases := map[string]struct {
		reason string
		slice  *discoveryv1.EndpointSlice
		want   []string
		err    error
	}{
		"Home": {"pods of this cluster", manualSlice("10.200.0.7", "10.200.0.8"), []string{"mapped:10.200.0.7", "mapped:10.200.0.8"}, nil},
		"Foreign": {
			"pods that the foreign cluster runs, by its own addresses", manualSlice("10.83.0.7", "10.83.0.8"),
			[]string{"10.201.0.7", "10.201.0.8"}, nil,
		},
		"Mixed": {"each by itself", manualSlice("10.83.0.7", "10.200.0.7"), []string{"10.201.0.7", "mapped:10.200.0.7"}, nil},
		"Relayed": {
			"a pod of a provider, as the broker calls it", manualSlice("10.202.0.1"), []string{"10.91.0.7"}, generic.EnqueueAfter(manualRetry),
		},
		"Direct": {"one that is reached past the broker", manualSlice("10.84.0.13"), []string{"10.90.0.13"}, generic.EnqueueAfter(manualRetry)},
		"Peers": {
			"a pod of a peer that is none of the foreign cluster's", manualSlice("10.84.0.14"), []string{"mapped:10.84.0.14"},
			generic.EnqueueAfter(manualRetry),
		},
		"OnNode":   {"the node does not matter", on(manualSlice("10.83.0.7"), "liqo-provider"), []string{"10.201.0.7"}, nil},
		"OnNobody": {"nor that there is none of this name", on(manualSlice("10.200.0.7"), "gone"), []string{"mapped:10.200.0.7"}, nil},
		"Mirrored": {
			"a mirror of Endpoints", by(manualSlice("10.83.0.7"), "endpointslicemirroring-controller.k8s.io"), []string{"10.201.0.7"}, nil,
		},
		"Kubernetes": {
			"the foreign cluster itself says which pods it runs", by(on(manualSlice("10.83.0.7"), "liqo-provider"), kubernetesSlices), nil, nil,
		},
		"Native": {
			"a pod here that Kubernetes found", by(on(manualSlice("10.200.0.7"), "worker"), kubernetesSlices), []string{"mapped:10.200.0.7"}, nil,
		},
		"Stranger": {"what is no pod is opened to nobody, and the others are not kept from being",
			manualSlice("192.168.1.7", "169.254.169.254", "db.example", "10.200.0.7"),
			[]string{"mapped:10.200.0.7"}, generic.EnqueueAfter(manualWait)},
		"StrangerOnNode": {"what Liqo reflects without us, it goes on to, at once", on(manualSlice("192.168.1.7", "10.200.0.7"), "worker"),
			[]string{"mapped:192.168.1.7", "mapped:10.200.0.7"}, nil},
		"StrangerThere": {"what is on the foreign cluster's node may be known soon",
			on(manualSlice("10.202.0.99", "10.200.0.7"), "liqo-provider"), []string{"mapped:10.200.0.7"}, generic.EnqueueAfter(manualWait)},
		"NameOnNode": {"what is no address would keep the others from being reflected", on(manualSlice("db.example", "10.200.0.7"), "worker"),
			[]string{"mapped:10.200.0.7"}, generic.EnqueueAfter(manualWait)},
		"RelayOfOthers": {"an address of the broker's external CIDR that is no pod's here", manualSlice("10.202.0.99", "10.200.0.7"),
			[]string{"mapped:10.200.0.7"}, generic.EnqueueAfter(manualWait)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := manualAddresses(t)
			learn(t, a, "10.91.0.7")
			learn(t, a, "10.90.0.13")
			c, passed := startEndpoints(t, a, append(nodes("provider", "peer"), tc.slice)...)
			err := c.Handle(t.Context())
			if errors.Is(tc.err, generic.EnqueueAfter(manualWait)) {
				if !errors.Is(err, tc.err) || passed() != nil {
					t.Errorf("%s: at first, Handle returns %v, want %v, and passes on %v", tc.reason, err, tc.err, passed())
				}
				err = c.Handle(t.Context())
			}
			if !errors.Is(err, tc.err) {
				t.Errorf("%s: Handle returns %v, want %v", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, passed(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestManualEndpointsFollow starts when a relayed pod is not known yet, and goes on when it is gone.
func TestManualEndpointsFollow(t *testing.T) {
	a := manualAddresses(t)
	c, passed := startEndpoints(t, a, append(nodes("provider"), manualSlice("10.202.0.1", "10.200.0.7"))...)
	if err := c.Handle(t.Context()); !errors.Is(err, generic.EnqueueAfter(manualWait)) || passed() != nil {
		t.Fatalf("Handle returns %v and passes on %v before the pod is known", err, passed())
	}
	learn(t, a, "10.91.0.7")
	reflectiontest.Eventually(t, func() bool {
		_ = c.Handle(t.Context())
		return slices.Equal(passed(), []string{"10.91.0.7", "mapped:10.200.0.7"})
	})
	a.Release("10.91.0.7")
	reflectiontest.Eventually(t, func() bool {
		_ = c.Handle(t.Context())
		return slices.Equal(passed(), []string{"mapped:10.200.0.7"})
	})
}

// TestPeersManualEndpoints passes on what a slice of a consumer names of the pods that the broker runs for it.
func TestPeersManualEndpoints(t *testing.T) {
	pod := func(name, ip string, edit func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "twin", Name: name}, Status: corev1.PodStatus{PodIP: ip, Phase: corev1.PodRunning},
		}
		edit(p)
		return p
	}
	same := func(*corev1.Pod) {}
	elsewhere := func(p *corev1.Pod) { p.Namespace = "others" }
	cases := map[string]struct {
		reason    string
		endpoints []string
		pod       *corev1.Pod
		want      []string
		err       error
	}{
		"AtProvider": {
			"a pod of the consumer on the provider", []string{"10.83.0.7", "10.91.0.1"}, pod("a", "10.83.0.7", same),
			[]string{"10.201.0.7", "mapped:10.91.0.1"}, generic.EnqueueAfter(manualRetry),
		},
		"AtAnother": {
			"one on another provider", []string{"10.84.0.7"}, pod("a", "10.84.0.7", same), []string{"mapped:10.84.0.7"},
			generic.EnqueueAfter(manualRetry),
		},
		"Here": {
			"one that the broker runs itself", []string{"10.200.0.7"}, pod("a", "10.200.0.7", same), []string{"mapped:10.200.0.7"},
			generic.EnqueueAfter(manualRetry),
		},
		"AnotherOwner": {
			"a pod of somebody else is not opened", []string{"10.83.0.7"}, pod("a", "10.83.0.7", elsewhere), nil, generic.EnqueueAfter(manualRetry),
		},
		"Ended": {
			"nor the address of a pod that has ended", []string{"10.83.0.7"}, pod("a", "10.83.0.7",
				func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), nil, generic.EnqueueAfter(manualRetry),
		},
		"Node": {
			"nor a node", []string{"10.200.0.1"}, pod("a", "10.200.0.1", func(p *corev1.Pod) { p.Spec.HostNetwork = true }), nil,
			generic.EnqueueAfter(manualRetry),
		},
		"NoPodsPrefix": {
			"nor what a provider calls a pod and is none", []string{"192.168.1.7", "10.83.0.7"}, pod("a", "192.168.1.7", same), nil,
			generic.EnqueueAfter(manualRetry),
		},
		"Own": {
			"the consumer's own endpoints come and go with the slice", []string{"10.91.0.1"}, pod("a", "10.91.0.1", same),
			[]string{"mapped:10.91.0.1"}, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := manualAddresses(t)
			a.SetPeer(cluster.ID("consumer"), addressing.Peer{Pods: viewOf(t, "10.200.0.0/16", "10.91.0.0/16")})
			slice := manualSlice(tc.endpoints...)
			slice.Labels[liqo.LabelManagedBy] = liqo.ManagedByShadowEndpointSlice
			for i := range slice.Endpoints {
				slice.Endpoints[i].NodeName = new("liqo-consumer")
			}
			c, passed := startEndpoints(t, a, append(nodes("provider", "consumer"), slice, tc.pod, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: "twin", Labels: map[string]string{"liqo.io/remote-cluster-id": "consumer"},
				Annotations: map[string]string{"liqo.io/managed-by-namespace-map": "t/m"},
			}})...)
			if err := c.Handle(t.Context()); !errors.Is(err, tc.err) {
				t.Errorf("%s: Handle returns %v, want %v", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, passed(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestManualEndpointsNotReflected has a slice that is not to be reflected, with what this cluster does not know.
func TestManualEndpointsNotReflected(t *testing.T) {
	slice := manualSlice("192.168.1.7")
	slice.Annotations = map[string]string{consts.SkipReflectionAnnotationKey: "true"}
	c, passed := startEndpoints(t, manualAddresses(t), append(nodes("provider"), slice)...)
	told := make(chan string, 10)
	watch := c.Events.StartEventWatcher(func(event *corev1.Event) { told <- event.Reason })
	defer watch.Stop()
	for range 3 {
		if err := c.Handle(t.Context()); err != nil {
			t.Errorf("Handle returns %v: it is looked at again for nothing", err)
		}
	}
	if got := passed(); got != nil {
		t.Errorf("it is reflected: %v", got)
	}
	for range 3 {
		if reason := <-told; reason == reasonNotReflected {
			t.Error("it is said that endpoints are not reflected of a slice that is not to be")
		}
	}
}

// TestPeersManualEndpointsAskNobody has a consumer that writes its slice again and again: the API server here does not notice, and no
// more is remembered than the slice names.
func TestPeersManualEndpointsAskNobody(t *testing.T) {
	a := manualAddresses(t)
	slice := manualSlice("10.83.0.7")
	slice.Labels[liqo.LabelManagedBy] = liqo.ManagedByShadowEndpointSlice
	slice.Endpoints[0].NodeName = new("liqo-consumer")
	objects := append(nodes("provider", "consumer"), slice, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "twin", Labels: map[string]string{"liqo.io/remote-cluster-id": "consumer"},
		Annotations: map[string]string{"liqo.io/managed-by-namespace-map": "t/m"},
	}})
	for i := range 50 {
		objects = append(objects, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "twin", Name: fmt.Sprint(i)},
			Status:     corev1.PodStatus{PodIP: fmt.Sprintf("10.83.0.%d", i), Phase: corev1.PodRunning},
		})
	}
	c, passed := startEndpoints(t, a, objects...)
	for range 10 {
		_ = c.Handle(t.Context()) // It says when it looks again.
	}
	if got := passed(); len(got) != 1 {
		t.Errorf("passed on: %v", got)
	}
	lists := 0
	for _, action := range c.Local.Actions() {
		if action.Matches("list", "pods") {
			lists++
		}
	}
	if lists > 1 { // That of the informer.
		t.Errorf("pods are listed %d times", lists)
	}
}
