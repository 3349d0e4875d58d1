// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package virtualkubelet

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	discoveryv1alpha1 "github.com/liqotech/liqo/apis/discovery/v1alpha1"
	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	liqofake "github.com/liqotech/liqo/pkg/client/clientset/versioned/fake"
	liqoinformers "github.com/liqotech/liqo/pkg/client/informers/externalversions"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/liqonet/ipam"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/configuration"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/workload"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	metricsv1beta1 "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/utils/trace"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// mappingIPAM maps endpoints for the foreign cluster.
type mappingIPAM struct {
	ipam.IpamClient
	mapped map[string]string
}

func (m mappingIPAM) MapEndpointIP(_ context.Context, request *ipam.MapRequest, _ ...grpc.CallOption) (*ipam.MapResponse, error) {
	ip, ok := m.mapped[request.GetIp()]
	if !ok || request.GetClusterID() != "provider" {
		return nil, errRefused
	}
	return &ipam.MapResponse{Ip: ip}, nil
}

// What leads a pod to an API server.
func alias(ip string) corev1.HostAlias {
	return corev1.HostAlias{IP: ip, Hostnames: []string{"kubernetes.default", "kubernetes.default.svc"}}
}

func environment(host string) []corev1.EnvVar {
	return forge.RemoteContainerEnvVariablesAPIServerSupport([]corev1.EnvVar{{Name: "COLOR", Value: "red"}}, "", host, "443")
}

func access(sources ...corev1.VolumeProjection) []corev1.Volume {
	return []corev1.Volume{{Name: "kube-api-access-x", VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: sources},
	}}}
}

var (
	reflectedToken = corev1.VolumeProjection{Secret: &corev1.SecretProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: "web-token"},
	}}
	issuedToken = corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}
	authority   = corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
		LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt.aaaaa"},
	}}
)

// podOf returns a pod on the virtual node, offloaded here by an origin unless that is empty.
func podOf(origin string, edit func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "twin", Name: "web", UID: "1", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			NodeName:           "liqo-provider",
			ServiceAccountName: "default",
			Containers:         []corev1.Container{{Name: "web", Env: []corev1.EnvVar{{Name: "COLOR", Value: "red"}}}},
		},
	}
	if origin != "" {
		pod.Labels[forge.LiqoOriginClusterIDKey] = origin
		pod.Labels[liqo.LabelManagedBy] = liqo.ManagedByShadowPod
	}
	edit(pod)
	return pod
}

// clusters are the broker with one object, and the provider.
type clusters struct {
	local, remote *fake.Clientset
	remoteLiqo    *liqofake.Clientset
	events        record.EventBroadcaster
	// seen is what the broker has seen of the provider.
	seen informers.SharedInformerFactory
	// handle reflects the object.
	handle func(context.Context) error
}

// startReflector starts a reflector of the broker for the provider; namespaced makes its part for a namespace.
func startReflector(
	t *testing.T, reflector manager.Reflector, namespaced func(*options.NamespacedOpts) manager.NamespacedReflector, objects ...runtime.Object,
) *clusters {
	t.Helper()
	c := &clusters{
		local: fake.NewSimpleClientset(objects...), remote: fake.NewSimpleClientset(),
		remoteLiqo: liqofake.NewSimpleClientset(), events: record.NewBroadcaster(),
	}
	t.Cleanup(c.events.Shutdown)
	handlers := func(options.Keyer, ...options.EventFilter) cache.ResourceEventHandler {
		return cache.ResourceEventHandlerFuncs{}
	}
	localFactory, remoteFactory := informers.NewSharedInformerFactory(c.local, 0), informers.NewSharedInformerFactory(c.remote, 0)
	remoteLiqo := liqoinformers.NewSharedInformerFactory(c.remoteLiqo, 0)

	c.seen = remoteFactory

	reflector.Start(t.Context(), options.New(c.local, localFactory.Core().V1().Pods()).
		WithHandlerFactory(handlers).WithEventBroadcaster(quietInTransit{c.events}))
	forgingOpts := forge.NewForgingOpts(nil, nil)
	opts := options.NewNamespaced().
		WithLocal("twin", c.local, localFactory).WithLiqoLocal(liqofake.NewSimpleClientset(), nil).
		WithRemote("twin-broker", c.remote, remoteFactory).WithLiqoRemote(c.remoteLiqo, remoteLiqo).
		WithHandlerFactory(handlers).WithEventBroadcaster(quietInTransit{c.events}).WithForgingOpts(&forgingOpts).
		WithReflectionType(consts.DenyList)
	reflector.StartNamespace(opts)
	reflected := namespaced(opts)
	done := t.Context().Done()
	localFactory.Start(done)
	remoteFactory.Start(done)
	remoteLiqo.Start(done)
	localFactory.WaitForCacheSync(done)
	remoteFactory.WaitForCacheSync(done)
	remoteLiqo.WaitForCacheSync(done)
	c.handle = func(ctx context.Context) error {
		return reflected.Handle(trace.ContextWithTrace(ctx, trace.New("test")), "web")
	}
	return c
}

// unstarted is a reflector whose parts for a namespace the test makes itself.
type unstarted struct{ manager.Reflector }

func (unstarted) StartNamespace(*options.NamespacedOpts) {}

// beBroker says to Liqo's forge, which keeps it in package variables, where it runs: once,
// because informers of tests that have ended may still read it.
var beBroker = sync.OnceFunc(func() {
	forge.Init(discoveryv1alpha1.ClusterIdentity{ClusterID: "broker", ClusterName: "broker"},
		discoveryv1alpha1.ClusterIdentity{ClusterID: "provider", ClusterName: "provider"}, "liqo-provider", "10.0.0.9")
})

// apiServer is all in a pod that speaks of an API server.
type apiServer struct {
	Aliases []corev1.HostAlias
	Env     []corev1.EnvVar
	Volumes []corev1.Volume
}

// apiServerOf returns what the pod of a ShadowPod has.
func apiServerOf(shadow *vkv1alpha1.ShadowPod) apiServer {
	spec := &shadow.Spec.Pod
	return apiServer{Aliases: spec.HostAliases, Env: spec.Containers[0].Env, Volumes: spec.Volumes}
}

// TestAPIServerOfPod reflects a pod from a broker to a provider with Liqo's own reflector.
func TestAPIServerOfPod(t *testing.T) {
	const (
		ofBroker  = "192.0.2.1"  // The broker's API server, as the broker's pods reach it.
		here      = "10.202.0.2" // The consumer's, as the broker sees it.
		there     = "10.82.0.5"  // The same, as the provider sees it.
		elsewhere = "10.204.0.2" // In the external CIDR of another consumer.
	)
	t.Setenv("KUBERNETES_SERVICE_HOST", ofBroker)
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	beBroker()
	withAccess := func(ip string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.HostAliases = []corev1.HostAlias{{IP: "192.0.2.7", Hostnames: []string{"db"}}, alias(ip)}
			pod.Spec.Containers[0].Env = environment("kubernetes.default")
			pod.Spec.Volumes = access(reflectedToken, authority)
		}
	}
	database := corev1.HostAlias{IP: "192.0.2.7", Hostnames: []string{"db"}}
	color := []corev1.EnvVar{{Name: "COLOR", Value: "red"}}

	cases := map[string]struct {
		reason   string
		pod      *corev1.Pod
		unmapped bool
		want     apiServer
		wantErr  bool
	}{
		"OfConsumer": {
			reason: "The alias of the consumer's API server leads there from the provider, and there is no second one.",
			pod:    podOf("consumer", withAccess(here)),
			want: apiServer{
				Aliases: []corev1.HostAlias{database, alias(there)},
				Env:     environment("kubernetes.default"), Volumes: access(reflectedToken, authority),
			},
		},
		"OfConsumerWithPublicAPIServer": {
			reason: "A consumer whose API server is reached under a name of its own needs no alias.",
			pod: podOf("consumer", func(pod *corev1.Pod) {
				pod.Spec.Containers[0].Env = environment("api.example.org")
				pod.Spec.Volumes = access(reflectedToken, authority)
			}),
			want: apiServer{Env: environment("api.example.org"), Volumes: access(reflectedToken, authority)},
		},
		"OfConsumerWithoutAccess": {
			reason: "A pod without access to its own API server does not get access to the broker's.",
			pod:    podOf("consumer", func(*corev1.Pod) {}),
			want:   apiServer{Env: color},
		},
		"TokenOfBroker": {
			reason: "A token of the broker is not for the pods of its consumers.",
			pod:    podOf("consumer", func(pod *corev1.Pod) { pod.Spec.Volumes = access(issuedToken, authority) }),
			want:   apiServer{Env: color, Volumes: access(authority)},
		},
		"TokenOfProvider": {
			reason: "A pod that asks for the API server of where it runs gets that one.",
			pod: podOf("consumer", func(pod *corev1.Pod) {
				pod.Annotations = map[string]string{consts.APIServerSupportAnnotation: consts.APIServerSupportAnnotationValueRemote}
				pod.Spec.Volumes = access(issuedToken, authority)
			}),
			want: apiServer{Env: color, Volumes: access(issuedToken, authority)},
		},
		"OfOtherConsumer": {
			reason: "A pod cannot open to the provider what does not belong to its own cluster.",
			pod:    podOf("consumer", withAccess(elsewhere)),
			want:   apiServer{Aliases: []corev1.HostAlias{database}, Env: color, Volumes: access(authority)},
		},
		"OfBrokerItself": {
			reason: "The broker's own API server is nothing that a pod may open to the provider.",
			pod:    podOf("consumer", withAccess(ofBroker)),
			want:   apiServer{Aliases: []corev1.HostAlias{database}, Env: color, Volumes: access(authority)},
		},
		"NamespaceBesideToken": {
			reason: "A pod without the token still finds the name of its namespace, as in stock Liqo that of where it runs.",
			pod: podOf("consumer", func(pod *corev1.Pod) {
				withAccess(elsewhere)(pod)
				pod.Spec.Volumes = access(authority, ofToken("token", "token"), ofToken(namespaceKey, "file-namespace"))
			}),
			want: apiServer{Aliases: []corev1.HostAlias{database}, Env: color, Volumes: access(authority, downward("namespace"))},
		},
		"TwoAPIServers": {
			reason: "A pod has one API server; each alias would take an address of the broker's external CIDR.",
			pod: podOf("consumer", func(pod *corev1.Pod) {
				withAccess(here)(pod)
				pod.Spec.HostAliases = append(pod.Spec.HostAliases, alias("10.202.0.3"))
			}),
			want: apiServer{Aliases: []corev1.HostAlias{database}, Env: color, Volumes: access(authority)},
		},
		"OneAPIServerTwice": {
			reason: "Two aliases of one address are one API server.",
			pod: podOf("consumer", func(pod *corev1.Pod) {
				withAccess(here)(pod)
				pod.Spec.HostAliases = append(pod.Spec.HostAliases, alias(here))
			}),
			want: apiServer{
				Aliases: []corev1.HostAlias{database, alias(there), alias(there)},
				Env:     environment("kubernetes.default"), Volumes: access(reflectedToken, authority),
			},
		},
		"NoAddress": {
			reason: "An alias that is no address leads nowhere.",
			pod:    podOf("consumer", withAccess("::not")),
			want:   apiServer{Aliases: []corev1.HostAlias{database}, Env: color, Volumes: access(authority)},
		},
		"Unmapped": {
			reason: "While the IPAM does not answer the pod waits: its aliases cannot be changed later.",
			pod:    podOf("consumer", withAccess(here)), unmapped: true,
			wantErr: true,
		},
		"OwnPod": {
			reason: "A pod of the broker reaches the broker's API server, as in stock Liqo, and by its full name as well.",
			pod:    podOf("", func(pod *corev1.Pod) { pod.Spec.Volumes = access(issuedToken) }),
			want: apiServer{
				Aliases: []corev1.HostAlias{{
					IP: "10.82.0.2", Hostnames: []string{"kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
				}},
				Env: environment("kubernetes.default"),
				Volumes: access(corev1.VolumeProjection{Secret: &corev1.SecretProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: "web-token"},
					Items:                []corev1.KeyToPath{{Key: forge.ServiceAccountTokenKey("kube-api-access-x", "token"), Path: "token"}},
				}}),
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mapped := map[string]string{ofBroker: "10.82.0.2", here: there, elsewhere: "10.82.0.6"}
			if tc.unmapped {
				delete(mapped, here)
			}
			addresses := newAddresses(mappingIPAM{mapped: mapped}, "provider", nil)
			for id, seen := range map[cluster.ID]string{"consumer": "10.202.0.0/16", "other": "10.204.0.0/16"} {
				addresses.setPeer(id, addressing.Peer{
					Pods:     mustView(t, "10.200.0.0/16", "None"),
					External: mustView(t, "10.81.0.0/16", seen),
				})
			}
			pods := workload.NewPodReflector(nil, func(string) metricsv1beta1.PodMetricsInterface { return nil }, addresses,
				&workload.PodReflectorConfig{APIServerSupport: forge.APIServerSupportTokenAPI}, &generic.ReflectorConfig{Type: consts.CustomLiqo})
			c := startReflector(t, &transit{Reflector: unstarted{pods}, mapper: addresses}, pods.NewNamespaced, tc.pod)

			if err := c.handle(t.Context()); (err != nil) != tc.wantErr {
				t.Fatalf("%s\nHandle(): %v", tc.reason, err)
			}
			shadows, err := c.remoteLiqo.VirtualkubeletV1alpha1().ShadowPods("twin-broker").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if tc.wantErr {
				if len(shadows.Items) > 0 {
					t.Errorf("%s\nthere is a ShadowPod", tc.reason)
				}
				return
			}
			if len(shadows.Items) != 1 {
				t.Fatalf("%s\ngot %d ShadowPods, want one", tc.reason, len(shadows.Items))
			}
			if diff := cmp.Diff(tc.want, apiServerOf(&shadows.Items[0])); diff != "" {
				t.Errorf("%s\nShadowPod: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// mappedAll counts the addresses that the IPAM maps.
type mappedAll struct {
	ipam.IpamClient
	mapped map[string]bool
}

func (m *mappedAll) MapEndpointIP(_ context.Context, request *ipam.MapRequest, _ ...grpc.CallOption) (*ipam.MapResponse, error) {
	m.mapped[request.GetIp()] = true
	return &ipam.MapResponse{Ip: "10.82.0.5"}, nil
}

// TestAPIServersAreFew lets pods of a cluster name many addresses as that of its API server.
func TestAPIServersAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mapper := &mappedAll{mapped: map[string]bool{}}
		addresses := newAddresses(mapper, "provider", nil)
		for _, id := range []cluster.ID{"consumer", "other"} {
			addresses.setPeer(id, addressing.Peer{Pods: mustView(t, "10.200.0.0/16", "None"), External: mustView(t, "10.81.0.0/16", "10.202.0.0/16")})
		}
		events := record.NewFakeRecorder(100)
		namespace := &transitNamespace{mapper: addresses, events: events}
		start := func(origin cluster.ID, ip string) (reaches bool) {
			t.Helper()
			spec := &corev1.PodSpec{HostAliases: []corev1.HostAlias{alias(ip)}}
			if err := namespace.mapAliases(t.Context(), origin, &corev1.Pod{}, spec); err != nil {
				t.Fatal(err)
			}
			return len(spec.HostAliases) == 1
		}
		for host := range 50 {
			start("consumer", fmt.Sprintf("10.202.7.%d", host))
		}
		if len(mapper.mapped) != apiServersPerCluster || len(events.Events) != 50-apiServersPerCluster {
			t.Errorf("50 pods take %d addresses and get %d events, want %d addresses", len(mapper.mapped), len(events.Events), apiServersPerCluster)
		}
		if !start("consumer", "10.202.7.0") {
			t.Error("a pod that names the address of the others does not reach it")
		}
		if !start("other", "10.202.7.9") {
			t.Error("what pods of one cluster name counts for another")
		}
		time.Sleep(apiServerHold)
		if !start("consumer", "10.202.8.1") {
			t.Error("the API server of a cluster that was peered with again is not reached a day later")
		}
	})
}

// TestTokens reflects the token of a pod from a broker to a provider with Liqo's own reflector.
func TestTokens(t *testing.T) {
	beBroker()
	cases := map[string]struct {
		reason string
		origin string
		want   bool
	}{
		"OwnPod":     {"A pod of the broker authenticates at the broker's API server.", "", true},
		"OfConsumer": {"No provider gets an identity at the broker for a pod of a consumer.", "consumer", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var namespaced func(*options.NamespacedOpts) manager.NamespacedReflector
			tokens := configuration.NewServiceAccountReflector(true, &generic.ReflectorConfig{Type: consts.CustomLiqo})
			if made, ok := tokens.(*configuration.ServiceAccountReflector); ok {
				namespaced = made.NewNamespaced
			}
			pod := podOf(tc.origin, func(pod *corev1.Pod) { pod.Spec.Volumes = access(issuedToken) })
			c := startReflector(t, &tokenless{Reflector: unstarted{tokens}}, namespaced, pod)

			// The fake API issues no token, so that the reflection of one fails. What counts is who asks.
			_ = c.handle(t.Context())
			asked := false
			for _, action := range c.local.Actions() {
				asked = asked || action.GetResource().Resource == "serviceaccounts" && action.GetSubresource() == "token"
			}
			if asked != tc.want {
				t.Errorf("%s\nasked for a token: got %t, want %t", tc.reason, asked, tc.want)
			}
		})
	}
}

// TestTolerationsOfPod reflects a pod that the broker holds on lost nodes: the
// provider is to see what the consumer wishes.
func TestTolerationsOfPod(t *testing.T) {
	beBroker()
	soon := int64(5)
	wish := []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &soon}}
	pod := podOf("consumer", func(pod *corev1.Pod) {
		pod.Spec.Tolerations = wish
		liqo.Hold(pod)
	})
	pods := workload.NewPodReflector(nil, func(string) metricsv1beta1.PodMetricsInterface { return nil }, nil,
		&workload.PodReflectorConfig{APIServerSupport: forge.APIServerSupportDisabled}, &generic.ReflectorConfig{Type: consts.CustomLiqo})
	c := startReflector(t, &transit{Reflector: unstarted{pods}}, pods.NewNamespaced, pod)
	if err := c.handle(t.Context()); err != nil {
		t.Fatalf("Handle(): %v", err)
	}
	shadow, err := c.remoteLiqo.VirtualkubeletV1alpha1().ShadowPods("twin-broker").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wish, shadow.Spec.Pod.Tolerations); diff != "" {
		t.Errorf("tolerations: -want +got\n%s", diff)
	}
}
