// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/workload"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	metricsv1beta1 "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/address"
	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/reflectiontest"
	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// The prefixes of the clusters in these tests: all but the broker have the same pods, and
// each sees the others under prefixes of its own.
const (
	consumerA = cluster.ID("consumer")
	brokerID  = cluster.ID("broker")
	providerA = cluster.ID("provider")
	providerB = cluster.ID("provider-b")
)

// ofConsumer are the addresses as the consumer's virtual kubelet for the provider knows them.
func ofConsumer(t *testing.T) *address.Addresses {
	t.Helper()
	a := address.New(endpointIPAM{}, providerA, nil)
	a.SetPeer(brokerID, addressing.Peer{
		Pods: viewOf(t, "10.201.0.0/16", "10.83.0.0/16"), External: viewOf(t, "10.81.0.0/16", "10.202.0.0/16"),
		Home: viewOf(t, "10.200.0.0/16", "10.87.0.0/16"), HomeExternal: viewOf(t, "10.81.0.0/16", "10.203.0.0/16"), Connected: true,
	})
	a.SetPeer(providerA, addressing.Peer{
		Pods: viewOf(t, "10.200.0.0/16", "10.84.0.0/16"), Home: viewOf(t, "10.200.0.0/16", "10.99.0.0/16"), Connected: true,
	})
	return a
}

// ofBroker are the addresses as the broker's virtual kubelet for the provider knows them.
func ofBroker(t *testing.T) *address.Addresses {
	t.Helper()
	a := address.New(endpointIPAM{}, providerA, nil)
	a.SetPeer(providerA, addressing.Peer{
		Pods: viewOf(t, "10.200.0.0/16", "10.90.0.0/16"), Home: viewOf(t, "10.201.0.0/16", "10.95.0.0/16"), Connected: true,
	})
	a.SetPeer(providerB, addressing.Peer{Pods: viewOf(t, "10.200.0.0/16", "10.91.0.0/16"), Connected: true})
	a.SetPeer(consumerA, addressing.Peer{Pods: viewOf(t, "10.200.0.0/16", "10.87.0.0/16"), Connected: true})
	return a
}

// naming returns a spec that names hosts wherever it can: the first but for the alias of an API server.
func naming(host, apiServer string) *corev1.PodSpec {
	get := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: host}}
	socket := corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: host}}
	container := corev1.Container{
		Lifecycle: &corev1.Lifecycle{
			PostStart: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Host: host}},
			PreStop:   &corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{Host: host}},
		},
		StartupProbe: &corev1.Probe{ProbeHandler: get}, LivenessProbe: &corev1.Probe{ProbeHandler: *get.DeepCopy()},
		ReadinessProbe: &corev1.Probe{ProbeHandler: socket},
	}
	return &corev1.PodSpec{
		InitContainers: []corev1.Container{*container.DeepCopy(), {}}, Containers: []corev1.Container{container},
		HostAliases: []corev1.HostAlias{{IP: host, Hostnames: []string{"db"}}, alias(apiServer)},
		DNSConfig:   &corev1.PodDNSConfig{Nameservers: []string{host}},
	}
}

// TestMapHosts translates all that a spec names.
func TestMapHosts(t *testing.T) {
	cases := map[string]struct {
		reason     string
		host, want string
		event      bool
	}{
		"Translated": {reason: "an address of a pod leads there", host: "10.84.0.13", want: "10.200.0.13"},
		"Unknown": {
			reason: "an address that means something only here must not lead to somebody else", host: "10.83.0.4", want: "192.0.2.1", event: true,
		},
		"Mapped":     {reason: "written as IPv6, it is dialed as IPv4", host: "::ffff:10.83.0.4", want: "192.0.2.1", event: true},
		"MappedPod":  {reason: "the same of one that leads there", host: "::ffff:10.84.0.13", want: "10.200.0.13"},
		"MappedElse": {reason: "and what is not Liqo's stays as it was written", host: "::ffff:198.51.100.7", want: "::ffff:198.51.100.7"},
		"Name":       {reason: "a name is not an address", host: "web.example.org", want: "web.example.org"},
		"Empty":      {reason: "the pod itself is named by nothing", host: "", want: ""},
		"Other":      {reason: "what is not Liqo's stays as it was written", host: "2001:db8:0::1", want: "2001:db8:0::1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			events := record.NewFakeRecorder(10)
			namespace := &transitNamespace{mapper: ofConsumer(t), events: events}
			// Liqo has translated it: it would be taken for that of a pod of this cluster.
			const apiServer = "10.200.0.1"
			spec := naming(tc.host, apiServer)
			if err := namespace.mapHosts("", &corev1.Pod{}, spec); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(naming(tc.want, apiServer), spec); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if len(events.Events) > 1 || tc.event != (len(events.Events) == 1) {
				t.Fatalf("%s: %d events", tc.reason, len(events.Events))
			}
			if tc.event {
				if event := <-events.Events; !strings.Contains(event, reasonHostUnknown) || !strings.HasSuffix(event, ": "+tc.host) {
					t.Errorf("%s: event %q", tc.reason, event)
				}
			}
		})
	}
}

// TestHostsOfPod reflects pods that name a pod of the provider with Liqo's own reflector.
func TestHostsOfPod(t *testing.T) {
	reflectiontest.BeBroker()
	for _, origin := range []string{"", string(consumerA)} {
		t.Run(origin, func(t *testing.T) {
			addresses := ofBroker(t)
			local := reflectiontest.PodOf(origin, func(pod *corev1.Pod) {
				pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{
					PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Host: "10.90.0.13"}},
				}
			})
			pods := workload.NewPodReflector(nil, func(string) metricsv1beta1.PodMetricsInterface { return nil }, addresses,
				&workload.PodReflectorConfig{APIServerSupport: forge.APIServerSupportDisabled}, &generic.ReflectorConfig{Type: consts.CustomLiqo})
			c := reflectiontest.Start(t, &transit{Reflector: reflectiontest.Unstarted(pods), mapper: addresses}, pods.NewNamespaced, local)
			if err := c.Handle(t.Context()); err != nil {
				t.Fatalf("Handle(): %v", err)
			}
			shadow, err := c.RemoteLiqo.VirtualkubeletV1alpha1().ShadowPods("twin-broker").Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := shadow.Spec.Pod.Containers[0].Lifecycle.PreStop.HTTPGet.Host; got != "10.200.0.13" {
				t.Errorf("the hook calls %s, want 10.200.0.13", got)
			}
			if kept := local.Spec.Containers[0].Lifecycle.PreStop.HTTPGet.Host; kept != "10.90.0.13" {
				t.Errorf("the local pod calls %s now", kept)
			}
		})
	}
}
