// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
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
	"k8s.io/client-go/tools/record"
	metricsv1beta1 "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/address"
	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/reflectiontest"
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
		return nil, errNotMapped
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
	reflectiontest.BeBroker()
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
			pod:    reflectiontest.PodOf("consumer", withAccess(here)),
			want: apiServer{
				Aliases: []corev1.HostAlias{database, alias(there)},
				Env:     environment("kubernetes.default"), Volumes: access(reflectedToken, authority),
			},
		},
		"OfConsumerWithPublicAPIServer": {
			reason: "A consumer whose API server is reached under a name of its own needs no alias.",
			pod: reflectiontest.PodOf("consumer", func(pod *corev1.Pod) {
				pod.Spec.Containers[0].Env = environment("api.example.org")
				pod.Spec.Volumes = access(reflectedToken, authority)
			}),
			want: apiServer{Env: environment("api.example.org"), Volumes: access(reflectedToken, authority)},
		},
		"OfConsumerWithoutAccess": {
			reason: "A pod without access to its own API server does not get access to the broker's.",
			pod:    reflectiontest.PodOf("consumer", func(*corev1.Pod) {}),
			want:   apiServer{Env: color},
		},
		"TokenOfBroker": {
			reason: "A token of the broker is not for the pods of its consumers.",
			pod:    reflectiontest.PodOf("consumer", func(pod *corev1.Pod) { pod.Spec.Volumes = access(issuedToken, authority) }),
			want:   apiServer{Env: color, Volumes: access(authority)},
		},
		"TokenOfProvider": {
			reason: "A pod that asks for the API server of where it runs gets that one.",
			pod: reflectiontest.PodOf("consumer", func(pod *corev1.Pod) {
				pod.Annotations = map[string]string{consts.APIServerSupportAnnotation: consts.APIServerSupportAnnotationValueRemote}
				pod.Spec.Volumes = access(issuedToken, authority)
			}),
			want: apiServer{Env: color, Volumes: access(issuedToken, authority)},
		},
		"OfOtherConsumer": {
			reason: "A pod cannot open to the provider what does not belong to its own cluster.",
			pod:    reflectiontest.PodOf("consumer", withAccess(elsewhere)),
			want:   apiServer{Aliases: []corev1.HostAlias{database}, Env: color, Volumes: access(authority)},
		},
		"OfBrokerItself": {
			reason: "The broker's own API server is nothing that a pod may open to the provider.",
			pod:    reflectiontest.PodOf("consumer", withAccess(ofBroker)),
			want:   apiServer{Aliases: []corev1.HostAlias{database}, Env: color, Volumes: access(authority)},
		},
		"NamespaceBesideToken": {
			reason: "A pod without the token still finds the name of its namespace, as in stock Liqo that of where it runs.",
			pod: reflectiontest.PodOf("consumer", func(pod *corev1.Pod) {
				withAccess(elsewhere)(pod)
				pod.Spec.Volumes = access(authority, ofToken("token", "token"), ofToken(namespaceKey, "file-namespace"))
			}),
			want: apiServer{Aliases: []corev1.HostAlias{database}, Env: color, Volumes: access(authority, downward("namespace"))},
		},
		"TwoAPIServers": {
			reason: "A pod has one API server; each alias would take an address of the broker's external CIDR.",
			pod: reflectiontest.PodOf("consumer", func(pod *corev1.Pod) {
				withAccess(here)(pod)
				pod.Spec.HostAliases = append(pod.Spec.HostAliases, alias("10.202.0.3"))
			}),
			want: apiServer{Aliases: []corev1.HostAlias{database}, Env: color, Volumes: access(authority)},
		},
		"OneAPIServerTwice": {
			reason: "Two aliases of one address are one API server.",
			pod: reflectiontest.PodOf("consumer", func(pod *corev1.Pod) {
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
			pod:    reflectiontest.PodOf("consumer", withAccess("::not")),
			want:   apiServer{Aliases: []corev1.HostAlias{database}, Env: color, Volumes: access(authority)},
		},
		"Unmapped": {
			reason: "While the IPAM does not answer the pod waits: its aliases cannot be changed later.",
			pod:    reflectiontest.PodOf("consumer", withAccess(here)), unmapped: true,
			wantErr: true,
		},
		"OwnPod": {
			reason: "A pod of the broker reaches the broker's API server, as in stock Liqo, and by its full name as well.",
			pod:    reflectiontest.PodOf("", func(pod *corev1.Pod) { pod.Spec.Volumes = access(issuedToken) }),
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
			addresses := address.New(mappingIPAM{mapped: mapped}, "provider", nil)
			for id, seen := range map[cluster.ID]string{"consumer": "10.202.0.0/16", "other": "10.204.0.0/16"} {
				addresses.SetPeer(id, addressing.Peer{
					Pods:     viewOf(t, "10.200.0.0/16", "None"),
					External: viewOf(t, "10.81.0.0/16", seen),
				})
			}
			pods := workload.NewPodReflector(nil, func(string) metricsv1beta1.PodMetricsInterface { return nil }, addresses,
				&workload.PodReflectorConfig{APIServerSupport: forge.APIServerSupportTokenAPI}, &generic.ReflectorConfig{Type: consts.CustomLiqo})
			c := reflectiontest.Start(t, &transit{Reflector: reflectiontest.Unstarted(pods), mapper: addresses}, pods.NewNamespaced, tc.pod)

			if err := c.Handle(t.Context()); (err != nil) != tc.wantErr {
				t.Fatalf("%s\nHandle(): %v", tc.reason, err)
			}
			shadows, err := c.RemoteLiqo.VirtualkubeletV1alpha1().ShadowPods("twin-broker").List(t.Context(), metav1.ListOptions{})
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
		addresses := address.New(mapper, "provider", nil)
		for _, id := range []cluster.ID{"consumer", "other"} {
			addresses.SetPeer(id, addressing.Peer{Pods: viewOf(t, "10.200.0.0/16", "None"), External: viewOf(t, "10.81.0.0/16", "10.202.0.0/16")})
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
		const mayName = 2 // One, and another that it may change to.
		for host := range 50 {
			start("consumer", fmt.Sprintf("10.202.7.%d", host))
		}
		if len(mapper.mapped) != mayName || len(events.Events) != 50-mayName {
			t.Errorf("50 pods take %d addresses and get %d events, want %d addresses", len(mapper.mapped), len(events.Events), mayName)
		}
		if !start("consumer", "10.202.7.0") {
			t.Error("a pod that names the address of the others does not reach it")
		}
		if !start("other", "10.202.7.9") {
			t.Error("what pods of one cluster name counts for another")
		}
		time.Sleep(24 * time.Hour)
		if !start("consumer", "10.202.8.1") {
			t.Error("the API server of a cluster that was peered with again is not reached a day later")
		}
	})
}

// TestTokens reflects the token of a pod from a broker to a provider with Liqo's own reflector.
func TestTokens(t *testing.T) {
	reflectiontest.BeBroker()
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
			pod := reflectiontest.PodOf(tc.origin, func(pod *corev1.Pod) { pod.Spec.Volumes = access(issuedToken) })
			c := reflectiontest.Start(t, &tokenless{Reflector: reflectiontest.Unstarted(tokens)}, namespaced, pod)

			// The fake API issues no token, so that the reflection of one fails. What counts is who asks.
			_ = c.Handle(t.Context())
			asked := false
			for _, action := range c.Local.Actions() {
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
	reflectiontest.BeBroker()
	soon := int64(5)
	wish := []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &soon}}
	pod := reflectiontest.PodOf("consumer", func(pod *corev1.Pod) {
		pod.Spec.Tolerations = wish
		liqo.Hold(pod)
	})
	pods := workload.NewPodReflector(nil, func(string) metricsv1beta1.PodMetricsInterface { return nil }, nil,
		&workload.PodReflectorConfig{APIServerSupport: forge.APIServerSupportDisabled}, &generic.ReflectorConfig{Type: consts.CustomLiqo})
	c := reflectiontest.Start(t, &transit{Reflector: reflectiontest.Unstarted(pods)}, pods.NewNamespaced, pod)
	if err := c.Handle(t.Context()); err != nil {
		t.Fatalf("Handle(): %v", err)
	}
	shadow, err := c.RemoteLiqo.VirtualkubeletV1alpha1().ShadowPods("twin-broker").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wish, shadow.Spec.Pod.Tolerations); diff != "" {
		t.Errorf("tolerations: -want +got\n%s", diff)
	}
}
