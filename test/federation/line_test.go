// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	liqoline "github.com/capacitorset/liqo-broker/pkg/liqo/line"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/report"
)

// newCluster returns a cluster with a line of Liqo that has some objects.
func newCluster(t *testing.T, of liqoline.Line, name string, objects ...client.Object) *Cluster {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	return &Cluster{WithWatch: c, Name: name, ID: cluster.ID("id-" + name), Line: of}
}

// TestTraits holds that what tests say of a line are the kinds that the line itself has.
func TestTraits(t *testing.T) {
	for _, of := range []liqoline.Line{v09.Line{}, v1.Line{}} {
		t.Run(of.Name(), func(t *testing.T) {
			c, kinds := newCluster(t, of, "a"), of.Kinds()
			for said, kind := range map[string]client.Object{
				c.Traits().ForeignClusters + " ForeignCluster": kinds.Record, c.OffloadingAPI() + " NamespaceOffloading": kinds.Offloading,
				c.Traits().ShadowPods + " ShadowPod": kinds.Wish,
			} {
				is, err := apiutil.GVKForObject(kind, c.Scheme())
				if err != nil {
					t.Fatal(err)
				}
				if got := is.GroupVersion().String() + " " + is.Kind; got != said {
					t.Errorf("the kind %s is said to be %s", got, said)
				}
			}
			for trait, has := range map[Trait]bool{OurKubelets: of.HasPlugin(), DirectPaths: of.DirectPaths()} {
				if c.Has(trait) != has {
					t.Errorf("%s: %t, and the line itself says %t", trait, c.Has(trait), has)
				}
			}
		})
	}
	label := line09{}.traits().KubeletLabel
	if value, is := v09.VirtualKubeletSelector().RequiresExactMatch(label); !is || value != "virtual-kubelet" {
		t.Errorf("label %s of virtual kubelets of Liqo 0.9 is %q", label, value)
	}
}

// TestNamesOfLines holds what is called after a cluster.
func TestNamesOfLines(t *testing.T) {
	for of, want := range map[liqoline.Line][]string{
		v09.Line{}: {"liqo-b", "liqo", "liqo-gateway"}, v1.Line{}: {"b", "liqo-tenant-id-b", "gw-id-b"},
	} {
		a, b := newCluster(t, of, "a"), newCluster(t, of, "b")
		gateway := (&Federation{}).Gateway(a, b)
		if got := []string{b.NodeName(), gateway.namespace, gateway.pod}; !slices.Equal(got, want) || gateway.on != a {
			t.Errorf("Liqo %s: the node and the gateway at %s are %v, want %v", of.Name(), gateway.on.Name, got, want)
		}
		if one := gateway == (&Federation{}).Gateway(a, newCluster(t, of, "c")); one != a.Has(OneGateway) {
			t.Errorf("Liqo %s: one gateway leads to two clusters: %t", of.Name(), one)
		}
	}
}

// TestParted holds until when a peering has not ended.
func TestParted(t *testing.T) {
	record09 := func(change func(*v09.ForeignCluster)) client.Object {
		fc := liqotest.ForeignCluster(cluster.Identity{ID: "id-b", Name: "b"}, false, false)
		fc.Finalizers = []string{"liqo.io/held"}
		change(fc)
		return fc
	}
	record1 := func(id string, role api.Role) client.Object {
		fc := &api.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: api.ForeignClusterSpec{ClusterID: id}}
		fc.Status.Role, fc.Status.Modules.Offloading.Enabled = role, true
		return fc
	}
	ending := func(fc *v09.ForeignCluster) { fc.DeletionTimestamp = new(metav1.Now()) }
	for name, tc := range map[string]struct {
		reason string
		of     liqoline.Line
		has    client.Object
		parted bool
	}{
		"Ending09": {"Liqo removes the provider.", v09.Line{}, record09(ending), false},
		"Kept09":   {"The provider consumes still.", v09.Line{}, record09(func(*v09.ForeignCluster) {}), true},
		"Other09": {"It is another cluster that is removed.", v09.Line{}, record09(func(fc *v09.ForeignCluster) {
			ending(fc)
			fc.Spec.ClusterIdentity.ClusterID = "id-c"
		}), true},
		"Uses1":  {"The provider is one still.", v1.Line{}, record1("id-b", api.RoleProvider), false},
		"Kept1":  {"The provider consumes still.", v1.Line{}, record1("id-b", api.RoleConsumer), true},
		"Other1": {"It is another provider that is used.", v1.Line{}, record1("id-c", api.RoleProvider), true},
	} {
		t.Run(name, func(t *testing.T) {
			consumer, provider := newCluster(t, tc.of, "a", tc.has), newCluster(t, tc.of, "b")
			if err := consumer.line().parted(t.Context(), consumer, provider); (err == nil) != tc.parted {
				t.Errorf("%s It has parted: %v", tc.reason, err)
			}
			now := liqoline.Empty(tc.has)
			if err := consumer.Get(t.Context(), client.ObjectKeyFromObject(tc.has), now); err != nil {
				t.Fatal(err)
			}
			if looked := now.GetLabels()["federation.test/looked-at"] != ""; looked != (tc.of == v09.Line{} && !tc.parted) {
				t.Errorf("%s Liqo is made to look: %t", tc.reason, looked)
			}
		})
	}
}

// TestServed holds how a broker with each line serves its consumer.
func TestServed(t *testing.T) {
	consumer, other := cluster.Identity{ID: "id-a", Name: "a"}, cluster.Identity{ID: "id-c", Name: "c"}
	offer := func(to cluster.Identity, name, node string) client.Object {
		o := liqotest.OfferTo(to, nil)
		o.Name, o.Spec.NodeName = name, node
		return o
	}
	relays := func(of cluster.Identity, pods ...string) client.Object {
		m := &v09.NatMapping{ObjectMeta: metav1.ObjectMeta{Name: of.Name}}
		m.Spec.ClusterID, m.Spec.ClusterMappings = string(of.ID), map[string]string{}
		for _, pod := range pods {
			m.Spec.ClusterMappings[pod] = "192.0.2.1"
		}
		return m
	}
	ip := func(name string) client.Object {
		return &api.IP{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: name}}
	}
	for of, tc := range map[liqoline.Line]struct {
		has            []client.Object
		relays, offers int
		stations       []string
	}{
		v09.Line{}: {
			has: []client.Object{
				offer(consumer, "all", ""), offer(consumer, "single", "node"), offer(other, "other", "node"),
				relays(consumer, "10.0.0.1", "10.0.0.2"), relays(other, "10.0.0.3"),
			},
			relays: 2, offers: 2, stations: []string{"the node"},
		},
		v1.Line{}: {
			has: []client.Object{ip("one"), ip("two"), ip("three")}, relays: 3,
			stations: []string{"the ResourceSlice at the broker", "the ResourceSlice at the consumer", "the VirtualNode", "the node"},
		},
	} {
		t.Run(of.Name(), func(t *testing.T) {
			f := &Federation{Consumer: newCluster(t, of, "a"), Broker: newCluster(t, of, "b", tc.has...)}
			if got, err := f.Relays(t.Context()); err != nil || got != tc.relays {
				t.Errorf("the broker has %d addresses for pods of others, want %d: %v", got, tc.relays, err)
			}
			if err := f.EndNodes(t.Context()); err != nil {
				t.Fatal(err)
			}
			var left v09.ResourceOfferList
			if err := f.Broker.List(t.Context(), &left); err != nil || len(left.Items) != tc.offers {
				t.Errorf("offers are left that are not for a single provider, or to others: %d, want %d: %v", len(left.Items), tc.offers, err)
			}
			if got := (&GrantWatch{stations: f.stations()}).Stations(); !slices.Equal(got, tc.stations) {
				t.Errorf("stations %q, want %q", got, tc.stations)
			}
		})
	}
}

// TestViewsAcknowledged holds when the agent of a consumer has taken note of what the broker tells it.
func TestViewsAcknowledged(t *testing.T) {
	granted := map[string]netip.Prefix{"b": netip.MustParsePrefix("10.60.0.0/16")}
	told := func(views map[string]netip.Prefix) client.Object {
		text, err := (&report.Report{At: time.Unix(100, 0), Views: views}).Format()
		if err != nil {
			t.Fatal(err)
		}
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-id-a", Name: report.Name}, Data: map[string]string{report.Key: text},
		}
	}
	slice := &api.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-id-a", Name: "b"}}
	slice.Status.NodeLabels = liqo.LabelViews(nil, granted)
	for name, tc := range map[string]struct {
		reason string
		of     liqoline.Line
		has    []client.Object
		want   bool
	}{
		"NoAgent":  {"There is nobody who would.", v09.Line{}, nil, true},
		"Silent":   {"The agent has told nothing.", v1.Line{}, []client.Object{slice}, false},
		"NotYet":   {"The agent does not know the views.", v1.Line{}, []client.Object{slice, told(nil)}, false},
		"Same":     {"It has just these.", v1.Line{}, []client.Object{slice, told(granted)}, true},
		"NoOffers": {"Nothing is granted.", v1.Line{}, []client.Object{told(granted)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Federation{Consumer: newCluster(t, tc.of, "a"), Broker: newCluster(t, tc.of, "b", tc.has...)}
			if err := f.ViewsAcknowledged(t.Context()); (err == nil) != tc.want {
				t.Errorf("%s %v", tc.reason, err)
			}
		})
	}
}

// TestCredentials holds where Liqo keeps by what a consumer shows a broker who it is.
func TestCredentials(t *testing.T) {
	secret := func(namespace, name string, of map[string]string, data map[string][]byte) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: of}, Data: data}
	}
	of := func(broker string) map[string]string {
		return map[string]string{"discovery.liqo.io/local-identity": "true", "discovery.liqo.io/cluster-id": broker}
	}
	pem := map[string][]byte{"certificate": []byte("c"), "private-key": []byte("k")}
	atB, atC := secret("n", "b", of("id-b"), pem), secret("n", "c", of("id-c"), pem)
	tenant := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo-tenant-id-b", Labels: map[string]string{
		"liqo.io/remote-cluster-id": "id-b", "liqo.io/tenant-namespace": "true",
	}}}
	record := &api.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "id-b"}, Spec: api.ForeignClusterSpec{ClusterID: "id-b"}}
	identity := &api.Identity{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant.Name, Name: "b"},
		Spec:       api.IdentitySpec{ClusterID: "id-b", Type: api.IdentityControlPlane, Namespace: new("liqo-tenant-id-a")},
	}
	identity.Status.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: "kubeconfig"}
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"b": {Server: "https://192.0.2.1"}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"a": {ClientCertificateData: []byte("c"), ClientKeyData: []byte("k")}},
		Contexts:  map[string]*clientcmdapi.Context{"x": {Cluster: "b", AuthInfo: "a"}}, CurrentContext: "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	kept := secret(tenant.Name, "kubeconfig", nil, map[string][]byte{"kubeconfig": kubeconfig})
	for name, tc := range map[string]struct {
		reason string
		of     liqoline.Line
		has    []client.Object
		found  bool
	}{
		"Has09":     {"There are some at this broker.", v09.Line{}, []client.Object{atB, atC}, true},
		"None09":    {"There are some at another broker.", v09.Line{}, []client.Object{atC}, false},
		"Several09": {"Nobody knows which ones it shows.", v09.Line{}, []client.Object{atB, secret("m", "b", of("id-b"), pem)}, false},
		"Has1":      {"Its kubeconfig has them.", v1.Line{}, []client.Object{tenant, record, identity, kept}, true},
		"Unknown1":  {"It knows no such cluster.", v1.Line{}, []client.Object{tenant, identity, kept}, false},
		"None1":     {"Liqo has not got them yet.", v1.Line{}, []client.Object{tenant, record}, false},
	} {
		t.Run(name, func(t *testing.T) {
			peer, broker := newCluster(t, tc.of, "a", tc.has...), newCluster(t, tc.of, "b")
			got, err := peer.CredentialsAt(t.Context(), broker)
			if (err == nil) != tc.found {
				t.Fatalf("%s They are %+v, %v", tc.reason, got, err)
			}
			if tc.found && (string(got.Certificate) != "c" || string(got.Key) != "k" || len(got.Data) == 0) {
				t.Errorf("%s They are %+v", tc.reason, got)
			}
		})
	}
}
