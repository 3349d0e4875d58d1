// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package patched

import (
	"context"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1alpha1 "github.com/liqotech/liqo/apis/discovery/v1alpha1"
	liqoinformers "github.com/liqotech/liqo/pkg/client/informers/externalversions"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/liqonet/ipam"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/workload"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	metricsv1beta1 "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/utils/trace"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/reflectiontest"
)

const (
	consumerID, brokerID, providerID = "consumer-id", "broker-id", "provider-id"
	virtualNode                      = "liqo-target"
	virtualNodeIP                    = "10.0.0.9"
)

// TestMain says to Liqo's forge, which keeps it in package variables, where it runs: the virtual kubelet of a broker for a
// provider.
func TestMain(m *testing.M) {
	forge.Init(
		discoveryv1alpha1.ClusterIdentity{ClusterID: brokerID, ClusterName: "broker"},
		discoveryv1alpha1.ClusterIdentity{ClusterID: providerID, ClusterName: "provider"},
		virtualNode, virtualNodeIP)
	os.Exit(m.Run())
}

func TestHostIPs(t *testing.T) {
	cases := map[string]struct {
		remote []corev1.HostIP
		want   []corev1.HostIP
		reason string
	}{
		"Provider130": {
			remote: []corev1.HostIP{{IP: "172.30.0.3"}, {IP: "fd00::3"}},
			want:   []corev1.HostIP{{IP: virtualNodeIP}},
			reason: "The API server of the consumer refuses a first host IP that is not hostIP.",
		},
		"Provider128": {
			reason: "A status without hostIPs is valid and stays as it is.",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			remote := &corev1.PodStatus{HostIP: "172.30.0.3", HostIPs: tc.remote}
			got := forge.LocalPodStatus(remote, func(ip string) string { return ip }, 0)
			if diff := cmp.Diff(tc.want, got.HostIPs); diff != "" {
				t.Errorf("%s\nhostIPs: -want, +got:\n%s", tc.reason, diff)
			}
			if got.HostIP != virtualNodeIP {
				t.Errorf("%s\nhostIP: got %s, want %s", tc.reason, got.HostIP, virtualNodeIP)
			}
		})
	}
}

func TestRelayedEndpoints(t *testing.T) {
	nodes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for name, labels := range map[string]map[string]string{
		"worker":    {"kubernetes.io/os": "linux"},
		virtualNode: {consts.RemoteClusterID: providerID},
		"consumer":  {consts.RemoteClusterID: providerID}, // A node of the broker that happens to have the consumer's name.
	} {
		if err := nodes.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}); err != nil {
			t.Fatal(err)
		}
	}
	reflectedBy := func(origin string) map[string]string {
		return map[string]string{
			forge.LiqoOriginClusterIDKey: origin,
			discoveryv1.LabelManagedBy:   forge.EndpointSliceManagedBy,
		}
	}

	cases := map[string]struct {
		labels map[string]string
		node   string
		want   bool
		reason string
	}{
		"OfConsumer": {
			labels: reflectedBy(consumerID), node: "consumer-worker", want: true,
			reason: "The provider needs the endpoints of the consumer's Services.",
		},
		"OfConsumerWithNameOfLocalNode": {
			labels: reflectedBy(consumerID), node: "consumer", want: true,
			reason: "The name of a consumer's node says nothing about a node of the broker.",
		},
		"OfTarget": {
			labels: reflectedBy(providerID), node: "provider-worker", want: false,
			reason: "An endpoint that comes from the target cluster must not go back to it.",
		},
		"Local": {
			node: "worker", want: true,
			reason: "The broker's own endpoints are reflected, as in stock Liqo.",
		},
		"OnVirtualNode": {
			node: virtualNode, want: false,
			reason: "What runs on the target is there natively, as in stock Liqo.",
		},
		"UnknownNode": {
			node: "gone", want: false,
			reason: "A slice of the broker itself cannot name a node that the broker does not have, as in stock Liqo.",
		},
		"NativeSliceOfReflectedService": {
			labels: map[string]string{forge.LiqoOriginClusterIDKey: consumerID}, node: virtualNode, want: false,
			reason: "Slices that Kubernetes makes for a reflected Service inherit its labels, and are the broker's own.",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			slice := &discoveryv1.EndpointSlice{
				ObjectMeta:  metav1.ObjectMeta{Name: "web-abcde", Namespace: "twin", Labels: tc.labels},
				AddressType: discoveryv1.AddressTypeIPv4,
				Endpoints:   []discoveryv1.Endpoint{{NodeName: &tc.node, Addresses: []string{"10.80.0.7"}}},
			}
			same := func(addresses []string) []string { return addresses }
			got := forge.RemoteShadowEndpointSlice(slice, nil, corev1listers.NewNodeLister(nodes), "twin", same, &forge.ForgingOpts{})
			if reflected := len(got.Spec.Template.Endpoints) == 1; reflected != tc.want {
				t.Errorf("%s\nreflected: got %t, want %t", tc.reason, reflected, tc.want)
			}
		})
	}
}

// changingIPAM answers each question for the same address with the next of its answers.
type changingIPAM struct {
	ipam.IpamClient
	answers []string
}

func (c *changingIPAM) GetHomePodIP(context.Context, *ipam.GetHomePodIPRequest, ...grpc.CallOption) (*ipam.GetHomePodIPResponse, error) {
	answer := c.answers[0]
	c.answers = c.answers[1:]
	return &ipam.GetHomePodIPResponse{HomeIP: answer}, nil
}

func TestTranslationIsAskedEachTime(t *testing.T) {
	relay, direct := "10.202.0.77", "10.201.0.13"
	reflector := newPodReflector(t, &changingIPAM{answers: []string{relay, direct}})

	var info workload.PodInfo
	for _, want := range []string{relay, direct} {
		got, err := reflector.MapPodIP(t.Context(), &info, "10.200.0.13")
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("MapPodIP(...): got %s, want %s", got, want)
		}
	}
}

// newPodReflector returns a pod reflector between two empty clusters.
func newPodReflector(t *testing.T, ipamClient ipam.IpamClient) *workload.NamespacedPodReflector {
	t.Helper()
	reflector, _ := newPodReflectorAndClient(t, ipamClient)
	return reflector
}

// newPodReflectorAndClient returns the client of the local cluster too.
func newPodReflectorAndClient(t *testing.T, ipamClient ipam.IpamClient) (*workload.NamespacedPodReflector, kubernetes.Interface) {
	t.Helper()
	opts := namespacedOptions(t)
	return newPodReflectorOf(t, ipamClient, opts), opts.LocalClient
}

func newPodReflectorOf(t *testing.T, ipamClient ipam.IpamClient, opts *options.NamespacedOpts) *workload.NamespacedPodReflector {
	t.Helper()
	noMetrics := func(string) metricsv1beta1.PodMetricsInterface { return nil }
	namespaced := startPodReflector(t, ipamClient, opts, noMetrics).NewNamespaced(opts)

	pods, ok := namespaced.(*workload.NamespacedPodReflector)
	if !ok {
		t.Fatalf("got a reflector of type %T", namespaced)
	}
	return pods
}

// startPodReflector returns a pod reflector without namespaces.
func startPodReflector(
	t *testing.T, ipamClient ipam.IpamClient, opts *options.NamespacedOpts, metrics workload.MetricsFactory,
) *workload.PodReflector {
	t.Helper()
	reflector := workload.NewPodReflector(nil, metrics, ipamClient, &workload.PodReflectorConfig{},
		&generic.ReflectorConfig{Type: consts.CustomLiqo})
	reflector.Start(
		t.Context(), options.New(opts.LocalClient, opts.LocalFactory.Core().V1().Pods()).WithEventBroadcaster(opts.EventBroadcaster),
	)
	return reflector
}

// namespacedOptions returns the options of a reflector between two empty clusters.
func namespacedOptions(t *testing.T, objects ...runtime.Object) *options.NamespacedOpts {
	t.Helper()
	client, liqoClient := fake.NewSimpleClientset(objects...), reflectiontest.NewLiqo()
	factory, liqoFactory := informers.NewSharedInformerFactory(client, 0), liqoinformers.NewSharedInformerFactory(liqoClient, 0)
	broadcaster := record.NewBroadcaster()
	t.Cleanup(broadcaster.Shutdown)
	return options.NewNamespaced().
		WithLocal("home", client, factory).WithLiqoLocal(liqoClient, liqoFactory).
		WithRemote("twin", client, factory).WithLiqoRemote(liqoClient, liqoFactory).
		WithHandlerFactory(func(options.Keyer, ...options.EventFilter) cache.ResourceEventHandler {
			return cache.ResourceEventHandlerFuncs{}
		}).
		WithEventBroadcaster(broadcaster).WithForgingOpts(&forge.ForgingOpts{})
}

func TestUnreadyWithoutCondition(t *testing.T) {
	reflector := newPodReflector(t, &changingIPAM{})
	local := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "home", Name: "web", Labels: map[string]string{consts.RemoteUnavailableKey: consts.RemoteUnavailableValue},
	}}
	remote := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "twin", Name: "web"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}

	// The pod does not exist in the API, so that the update that follows fails; the stock reflector does not get there.
	ctx := trace.ContextWithTrace(t.Context(), trace.New("test"))
	if err := reflector.HandleStatus(ctx, local, remote, &workload.PodInfo{}); err == nil {
		t.Error("HandleStatus(...): updated a pod that does not exist")
	}
}

// judgeIPAM says that a pod is ready if it has a certain address.
type judgeIPAM struct {
	changingIPAM
	ready string
}

func (j *judgeIPAM) AdjustReady(remote *corev1.Pod, ready *corev1.PodCondition) {
	ready.Status = map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[remote.Status.PodIP == j.ready]
}

func TestAdjustReady(t *testing.T) {
	const well, lost = "10.200.0.13", "10.200.0.14"
	for address, want := range map[string]corev1.ConditionStatus{well: corev1.ConditionTrue, lost: corev1.ConditionFalse} {
		t.Run(address, func(t *testing.T) {
			reflector, client := newPodReflectorAndClient(t, &judgeIPAM{changingIPAM{answers: []string{address}}, well})
			local, err := client.CoreV1().Pods("home").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}},
				metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			remote := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "twin", Name: "web"}, Status: corev1.PodStatus{
				Phase: corev1.PodRunning, PodIP: address, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionUnknown}},
			}}
			ctx := trace.ContextWithTrace(t.Context(), trace.New("test"))
			if err := reflector.HandleStatus(ctx, local, remote, &workload.PodInfo{}); err != nil {
				t.Fatal(err)
			}
			local, err = client.CoreV1().Pods("home").Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := local.Status.Conditions; len(got) != 1 || got[0].Status != want {
				t.Errorf("got conditions %v, want one with status %s", got, want)
			}
		})
	}
}
