// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/overview"
)

// fakeCluster1 is a cluster with Liqo 1.x of a version, where a transit closes what it has to.
func fakeCluster1(t *testing.T, version string, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1.Line{}.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	manager := runs(liqoNamespace, "liqo-controller-manager", "liqo/controller-manager:"+version)
	closed := &api.FirewallConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: install.TransitName, Name: v1.TransitFirewall}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper(scheme)).WithObjects(objects...).
		WithObjects(manager, closed, node).Build(), interceptor.Funcs{
		Patch: apply,
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if review, is := o.(*authorizationv1.SelfSubjectAccessReview); is {
				review.Status.Allowed = true
				return nil
			}
			return c.Create(ctx, o, options...)
		},
	})
}

// runs is a Deployment all of whose pods are ready.
func runs(namespace, name, image string, args ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "it", Image: image, Args: args}}
	d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas, d.Status.ReadyReplicas = 1, 1, 1, 1
	return d
}

// peer1 is a peer with Liqo 1.x: its record, its tenant namespace, and a tunnel to it that is up or not.
func peer1(id string, state api.ConnectionState) []client.Object {
	record := &api.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: id}}
	record.Spec.ClusterID = id
	meta := metav1.ObjectMeta{Namespace: "liqo-tenant-" + id, Name: id, Labels: map[string]string{liqo.LabelRemoteClusterID: id}}
	return []client.Object{
		record, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: meta.Namespace, Labels: map[string]string{
			liqo.LabelTenantNamespace: "true", liqo.LabelRemoteClusterID: id,
		}}}, list1(meta), &api.Connection{ObjectMeta: meta, Status: api.ConnectionStatus{Value: state}},
	}
}

// list1 is a Configuration with a network of the peer, and behind it a view that the agent has listed.
func list1(meta metav1.ObjectMeta) *api.Configuration {
	c := &api.Configuration{ObjectMeta: meta}
	c.Annotations = map[string]string{"brokering.liqo.io/views": `{"views":["10.69.0.0/16"]}`}
	c.Spec.Remote.CIDR.Pod = []string{"10.201.0.0/16", "10.69.0.0/16"}
	c.Status.Remote = c.Spec.Remote.DeepCopy()
	c.Status.Conditions = []metav1.Condition{{Type: api.NetworkCIDRsConfigured, Status: metav1.ConditionTrue}}
	return c
}

// identity1 are this cluster's credentials at a peer, which provides.
func identity1(id string) client.Object {
	i := &api.Identity{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-" + id, Name: id}}
	i.Spec.ClusterID, i.Spec.Type, i.Spec.Namespace = id, api.IdentityControlPlane, new("liqo-tenant-own")
	i.Status.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: "kubeconfig"}
	return i
}

// consumes1 lets a peer, rome, consume.
func consumes1() []client.Object {
	const id = "rome"
	t := &api.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-" + id, Name: id}}
	t.Spec.ClusterID = id
	all := peer1(id, api.Connected)
	record, _ := all[0].(*api.ForeignCluster)
	record.Status.Modules.Authentication.Conditions = []api.Condition{{Type: api.AuthTenantStatus, Status: api.StatusReady}}
	return append(all, t)
}

// slice1 is what consumer asks of provider, in the tenant namespace of the one that is not own, and how it was answered.
func slice1(name, consumer, provider string, status api.SliceConditionStatus, reason string) *api.ResourceSlice {
	peer := provider
	s := &api.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if provider == "own" {
		peer, s.Labels = consumer, map[string]string{liqo.LabelReplicated: liqo.ReplicationValue, liqo.LabelOrigin: consumer}
	}
	s.Namespace, s.Spec.ConsumerClusterID, s.Spec.ProviderClusterID = "liqo-tenant-"+peer, &consumer, &provider
	if status != "" {
		s.Status.Conditions = []api.ResourceSliceCondition{
			{Type: api.SliceAuthentication, Status: api.SliceAccepted}, {Type: api.SliceResources, Status: status, Reason: reason, Message: "so"},
		}
	}
	return s
}

// gateway1 is that to a peer, of which one replica is wanted.
func gateway1(id string, ready int32) client.Object {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "liqo-tenant-" + id, Name: "gw-" + id, Labels: map[string]string{"networking.liqo.io/component": "gateway"},
	}}
	d.Status.ReadyReplicas = ready
	return d
}

// called1 is what this cluster is called.
func called1() client.Object {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: liqoNamespace, Name: liqo.IdentityName}, Data: map[string]string{liqo.IdentityKey: "own"},
	}
}

// broker1 is peer milan, which people have said to be a broker, and that grants something by each of some ResourceSlices.
func broker1(state api.ConnectionState, slices ...client.Object) []client.Object {
	all := append(peer1("milan", state), identity1("milan"), called1())
	v1.SayBroker(all[0], true)
	return append(all, slices...)
}

// saying is peer milan, of which people have written something in the place of its being a broker.
func saying(value string) []client.Object {
	all := append(peer1("milan", api.Connected), identity1("milan"), called1())
	all[0].SetAnnotations(map[string]string{"brokering.liqo.io/broker": value})
	return all
}

// saidAgo has it said a while ago that the tunnels are up.
func saidAgo(ago time.Duration, objects []client.Object) []client.Object {
	for _, o := range objects {
		if c, is := o.(*api.Connection); is {
			c.Status.Latency.Timestamp = metav1.NewTime(now.Add(-ago))
		}
	}
	return objects
}

// pods1 are pods of a consumer: at a provider, at the broker itself, and one at home that should not be.
func pods1() []client.Object {
	made := func(name, node, address string) client.Object {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		p.Spec.NodeName, p.Status.PodIP, p.Status.Phase = node, address, corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		return p
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "milan", Labels: map[string]string{
		liqo.LabelNodeType: liqo.NodeTypeVirtual, liqo.LabelRemoteClusterID: "milan",
	}}}
	o := v1.OffloadingTo("shop", v1.Identity("own"), "milan")
	o.Spec.PodOffloadingStrategy = api.PodsRemote
	return []client.Object{
		node, o, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, made("away", "milan", "10.69.0.7"),
		made("odd", "milan", "10.201.0.7"), made("home", "worker", "10.3.0.7"),
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "closed"}},
	}
}

// TestLiqo1 looks at clusters with Liqo 1.x: at what was installed, at peers, and at what goes between them.
func TestLiqo1(t *testing.T) {
	const alone, agent, waits = "This cluster is neither a broker nor a consumer", "run the agent", "let the agent read these credentials"
	const seals = "offload no namespace that has keys of this cluster"
	granted := slice1("milan", "own", "milan", api.SliceAccepted, "Granted")
	denied := slice1("second", "own", "milan", api.SliceDenied, "OneNode")
	for name, tc := range map[string]struct {
		version string
		objects []client.Object
		broker  bool // It is installed.
		roles   []string
		// says are parts of the things of which something is to be said.
		problems, notes, well []string
	}{
		"Stock": {"v1.2.0", nil, false, []string{}, nil, []string{alone, "There is no peer"}, nil},
		"Other": {"v1.1.0", nil, false, []string{}, nil, []string{"and of 1.x v1.2.0 was tried", alone, "There is no peer"}, nil},
		"Broker": {
			"v1.2.0", []client.Object{called1()}, true, []string{"broker"}, nil,
			[]string{
				"There is no peer", "No cluster provides", "A consumer is denied what it asks for by ResourceSlice liqo-tenant-rome/rome: so",
			}, nil,
		},
		"Catalog": {
			"v1.2.0", []client.Object{runs(install.BrokerName, install.BrokerName, "x/liqo-broker:v0.0.9", "--with-catalog")}, false,
			[]string{"catalog"}, nil, []string{"The images have tag v0.0.9", "No replica of the daemon has ever led", "There is no peer"}, nil,
		},
		"Guarded": {
			"v1.2.0", []client.Object{runs(install.GuardName, install.GuardName, "x/liqo-broker:v0.1.0")}, false, []string{"guarded"},
			[]string{"run the guard", "add the rules that hold without the guard", "There is no Service liqo-broker-guard"},
			[]string{"There is no peer"}, nil,
		},
		"Consumer": {
			"v1.2.0", broker1(api.Connected, append(pods1(), granted, denied)...), false, []string{"consumer"},
			[]string{agent, seals, waits, "Pods of namespace shop run at home"},
			[]string{
				"milan (milan) denies what ResourceSlice second asks for: so (OneNode)", "no path is known: shop/odd", "Namespace shop is offloaded",
			},
			[]string{
				"milan (milan) grants something for ResourceSlice milan", "0 pods are reached directly, and 1 through a broker",
				"The peering with milan (milan) is out-of-band (it provides: yes, it consumes: no)", "The tunnel to milan (milan) is connected",
			},
		},
		"Denied": {
			"v1.2.0", broker1(api.Connected, denied), false, []string{"consumer"},
			[]string{agent, seals, waits, "milan (milan) denies what ResourceSlice second asks for: so (OneNode)"}, nil, nil,
		},
		"GrantedAlone": {
			"v1.2.0", broker1(api.Connected, slice1("milan", "own", "milan", api.SliceAccepted, "ResourceSliceResourcesAccepted")), false,
			[]string{"consumer"},
			[]string{agent, seals, waits, "milan (milan) grants ResourceSlice liqo-tenant-milan/milan as Liqo does by itself"}, nil,
			[]string{"milan (milan) grants something for ResourceSlice milan"},
		},
		"Mistyped": {
			"v1.2.0", saying("yes"), false, []string{},
			[]string{`Whether milan is a broker says "yes" on its ForeignCluster, which counts for nothing: brokering.liqo.io/broker=true would`},
			[]string{"This cluster uses others as Liqo does by itself"}, nil,
		},
		"SaidNo": {
			"v1.2.0", saying("false"), false, []string{}, nil, []string{"This cluster uses others as Liqo does by itself"},
			nil,
		},
		"NoAnswer": {
			"v1.2.0", broker1(api.Connected, slice1("milan", "own", "milan", "", "")), false, []string{"consumer"},
			[]string{agent, seals, waits, "milan (milan) has not answered ResourceSlice milan"}, nil, nil,
		},
		"AsksNothing": {
			"v1.2.0", broker1(api.ConnectionError), false, []string{"consumer"},
			[]string{agent, seals, waits, "This cluster asks milan (milan) for nothing", "The tunnel to milan (milan) is not connected"}, nil, nil,
		},
		"ConsumerSilent": {
			"v1.2.0", saidAgo(3*time.Minute, broker1(api.Connected, granted)), false, []string{"consumer"},
			[]string{agent, seals, waits, "milan (milan) is called connected, but its gateway has not said so since 2026-11-01T11:57:00Z"}, nil, nil,
		},
		"ConsumerHeard": {
			"v1.2.0", saidAgo(2*time.Minute, broker1(api.Connected, granted)), false, []string{"consumer"},
			[]string{agent, seals, waits}, nil, []string{"The tunnel to milan (milan) is connected"},
		},
		"ConsumerStopped": {
			"v1.2.0", broker1(api.Connected, granted, gateway1("milan", 0)), false, []string{"consumer"},
			[]string{agent, seals, waits, "0 of 1 replicas of Liqo's gateway to milan (milan) are ready: its tunnel does not work"}, nil,
			[]string{"The tunnel to milan (milan) is connected"},
		},
		"ProviderStopped": {
			"v1.2.0", append(consumes1(), called1(), slice1("rome", "rome", "own", api.SliceAccepted, ""), gateway1("rome", 0)), false,
			[]string{"provider"}, []string{"0 of 1 replicas of Liqo's gateway to rome (rome) are ready"}, nil, nil,
		},
		"ProviderGateway": {
			"v1.2.0", append(consumes1(), called1(), slice1("rome", "rome", "own", api.SliceAccepted, ""), gateway1("rome", 1)), false,
			[]string{"provider"}, nil, nil, nil,
		},
		"BrokerStopped": {
			"v1.2.0", append(consumes1(), called1(), gateway1("rome", 0)), true, []string{"broker"},
			[]string{"0 of 1 replicas of Liqo's gateway to rome (rome) are ready"},
			[]string{"No cluster provides", "A consumer is denied what it asks for by ResourceSlice liqo-tenant-rome/rome: so"}, nil,
		},
		"Provider": {
			"v1.2.0", append(consumes1(), called1(), slice1("rome", "rome", "own", api.SliceAccepted, "")), false, []string{"provider"}, nil,
			nil, []string{"rome (rome) was granted what it asks for. A provider needs nothing"},
		},
		"ProviderDenies": {
			"v1.2.0", append(consumes1(), called1(), slice1("rome", "rome", "own", api.SliceDenied, "")), false, []string{"provider"},
			[]string{"rome (rome) was not granted what it asks for"}, nil, nil,
		},
		"ProviderOfNothingThatConsumes": {
			"v1.2.0", append(consumes1(), called1(), identity1("rome"), slice1("rome", "own", "rome", api.SliceAccepted, "")), false,
			[]string{"provider"}, []string{"rome (rome) asks for nothing"}, []string{"This cluster uses others as Liqo does by itself"}, nil,
		},
		"ProviderOfNothing": {
			"v1.2.0", append(consumes1(), called1()), false, []string{"provider"}, []string{"rome (rome) asks for nothing"}, nil, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeCluster1(t, tc.version, tc.objects...)
			if tc.broker {
				broker(t, c)
			}
			d, err := Run(t.Context(), Config{Client: c, Now: now, Plugin: "v0.1.0", Observe: observed1})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(d.Roles, tc.roles) || d.Healthy != (len(tc.problems) == 0) || d.Liqo != tc.version {
				t.Errorf("it is %q with Liqo %s, well: %t, want %q\n%s", d.Roles, d.Liqo, d.Healthy, tc.roles, d)
			}
			for state, want := range map[State][]string{Problem: tc.problems, Note: tc.notes, Unknown: nil, OK: tc.well} {
				var got []Check
				for _, check := range d.Checks {
					if check.State == state {
						got = append(got, check)
					}
				}
				missing := slices.ContainsFunc(want, func(part string) bool {
					return !slices.ContainsFunc(got, func(c Check) bool { return strings.Contains(c.What, part) })
				})
				if missing || len(got) != len(want) && state != OK {
					t.Errorf("%s: %v, want %q", state, got, want)
				}
			}
			if text := d.String(); strings.Contains(text, "resourceoffers") || strings.Contains(text, "tunnelendpoints") ||
				strings.Contains(text, "liqo-gateway") {
				t.Errorf("it names what Liqo 1.x does not have:\n%s", text)
			}
		})
	}
}

// TestDenied1 says on a consumer what to do about what its broker denies, by why it does.
func TestDenied1(t *testing.T) {
	for why, do := range map[string]string{
		"AgentMissing": "Let the agent run, which tells the broker what this cluster reaches: kubectl liqo-broker prepare",
		"ViewUnknown":  "it says which ones it refuses, and why: kubectl logs -n liqo-broker-agent deploy/liqo-broker-agent",
		"OneNode":      "If that is not meant, on the broker: kubectl liqo-broker diagnose",
	} {
		c := fakeCluster1(t, "v1.2.0", broker1(api.Connected, slice1("milan", "own", "milan", api.SliceDenied, why))...)
		d, err := Run(t.Context(), Config{Client: c, Now: now, Plugin: "v0.1.0", Observe: observed1})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(d.Checks, func(c Check) bool {
			return c.State == Problem && strings.Contains(c.What, "milan asks for: so ("+why+")") && strings.Contains(c.Do, do)
		}) {
			t.Errorf("it does not say %q of %s:\n%s", do, why, d)
		}
	}
}

// observed1 is what a broker with Liqo 1.x has: a consumer that is denied something.
func observed1(ctx context.Context, c client.Client) (overview.Observed, error) {
	o, err := nothing(ctx, c)
	o.Liqo, o.Consumers = v1.Line{}, []v1alpha1.Consumer{{}}
	o.Consumers[0].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	o.Offers = []liqo.Offer{
		{Tenant: "liqo-tenant-rome", Name: "rome", Denied: "so"}, {FromPeer: true, Denied: "of a provider"}, {Accepted: true},
	}
	if err == nil {
		o.Gateways, err = v1.Line{}.Gateways(ctx, c, liqoNamespace)
	}
	return o, err
}
