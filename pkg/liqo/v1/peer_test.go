// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

func TestOwnIdentity(t *testing.T) {
	stored := &corev1.ConfigMap{Data: map[string]string{"CLUSTER_ID": "a"}}
	stored.Namespace, stored.Name = "liqo", liqo.IdentityName
	if got, err := OwnIdentity(stored); err != nil || got != (cluster.Identity{ID: "a", Name: "a"}) {
		t.Errorf("OwnIdentity() = %v, %v: the ID is the name", got, err)
	}
	stored.Data = map[string]string{"CLUSTER_NAME": "a"}
	if got, err := OwnIdentity(stored); err == nil {
		t.Errorf("OwnIdentity() without an ID = %v", got)
	}
}

// tenantNamespace returns a namespace with labels of a tenant namespace.
func tenantNamespace(name, id string) corev1.Namespace {
	return corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{liqo.LabelTenantNamespace: "true", liqo.LabelRemoteClusterID: id},
	}}
}

func TestTenantOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		labels map[string]string
		want   cluster.ID
		is     bool
	}{
		"Tenant": {"It has both labels.", map[string]string{"liqo.io/tenant-namespace": "true", "liqo.io/remote-cluster-id": "a"}, "a", true},
		"Twin":   {"A twin has the ID alone.", map[string]string{"liqo.io/remote-cluster-id": "a"}, "a", false},
		"Nobody": {"It is of no cluster.", map[string]string{"liqo.io/tenant-namespace": "true"}, "", false},
		"Liqo0.9": {"The other line has other labels.", map[string]string{
			"discovery.liqo.io/tenant-namespace": "true", "discovery.liqo.io/cluster-id": "a",
		}, "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, is := TenantOf(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}}); got != tc.want || is != tc.is {
				t.Errorf("%s\nTenantOf() = %q, %t", tc.reason, got, is)
			}
		})
	}
}

func TestPeer(t *testing.T) {
	made := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	ended := &metav1.Time{Time: made.Add(time.Hour)}
	proxy := "http://10.70.0.2:8118"
	record := func(change func(*api.ForeignCluster)) *api.ForeignCluster {
		fc := &api.ForeignCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "record-of-a", CreationTimestamp: metav1.NewTime(made)},
			Spec:       api.ForeignClusterSpec{ClusterID: "a"},
		}
		change(fc)
		return fc
	}
	ready := func(fc *api.ForeignCluster) {
		fc.Status.Modules.Authentication.Conditions = []api.Condition{{Type: api.AuthTenantStatus, Status: api.StatusReady}}
	}
	tenant := func(namespace, id string, change func(*api.Tenant)) []api.Tenant {
		t := api.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "may", UID: "permit"}, Spec: api.TenantSpec{ClusterID: id}}
		change(&t)
		return []api.Tenant{t}
	}
	identity := func(namespace, id string, change func(*api.Identity)) []api.Identity {
		i := api.Identity{Spec: api.IdentitySpec{ClusterID: id, Type: api.IdentityControlPlane}}
		i.Namespace = namespace
		i.Status.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: "kubeconfig"}
		change(&i)
		return []api.Identity{i}
	}
	asIs, asItIs := func(*api.Tenant) {}, func(*api.Identity) {}
	up := liqo.Peering{Exists: true, Established: true}
	cases := map[string]struct {
		reason     string
		record     *api.ForeignCluster
		tenants    []api.Tenant
		identities []api.Identity
		want       liqo.Peer
	}{
		"Stranger": {
			reason: "Somebody has made a namespace for it, and no more.",
			record: record(func(*api.ForeignCluster) {}), want: liqo.Peer{},
		},
		"Consumer": {
			reason: "Its Tenant is ready.",
			record: record(ready), tenants: tenant("tenant-a", "a", asIs), want: liqo.Peer{Incoming: up},
		},
		"Cordoned": {
			reason: "It keeps what it has.", record: record(ready), want: liqo.Peer{Incoming: up},
			tenants: tenant("tenant-a", "a", func(t *api.Tenant) { t.Spec.TenantCondition = api.TenantCordoned }),
		},
		"ConsumerInNegotiation": {
			reason: "Liqo has not issued its certificate.",
			record: record(func(fc *api.ForeignCluster) { fc.Status.Role = api.RoleConsumer }), tenants: tenant("tenant-a", "a", asIs),
			want: liqo.Peer{Incoming: liqo.Peering{Exists: true}},
		},
		"Drained": {
			reason: "Liqo takes its rights back.", record: record(ready), want: liqo.Peer{Incoming: liqo.Peering{Exists: true, Ending: true}},
			tenants: tenant("tenant-a", "a", func(t *api.Tenant) { t.Spec.TenantCondition = api.TenantDrained }),
		},
		"ConsumerLeaves": {
			reason: "Its Tenant is being deleted.", record: record(ready), want: liqo.Peer{Incoming: liqo.Peering{Exists: true, Ending: true}},
			tenants: tenant("tenant-a", "a", func(t *api.Tenant) { t.DeletionTimestamp = ended }),
		},
		"TenantInTheNameOfAnother": {
			reason: "Who was let in to peer as b says that it is a.", record: record(ready), tenants: tenant("tenant-b", "a", asIs),
		},
		"TenantOfAnother": {
			reason: "It is in the namespace of a, and of b.", record: record(ready), tenants: tenant("tenant-a", "b", asIs),
		},
		"RoleAlone": {
			reason: "A consumer without a Tenant has no rights.",
			record: record(func(fc *api.ForeignCluster) { ready(fc); fc.Status.Role = api.RoleConsumer }),
		},
		"Provider": {
			reason: "This cluster can authenticate there.", record: record(func(*api.ForeignCluster) {}),
			identities: identity("tenant-a", "a", asItIs), want: liqo.Peer{Outgoing: up},
		},
		"ProviderInNegotiation": {
			reason: "There are no credentials yet.", record: record(func(fc *api.ForeignCluster) { fc.Status.Role = api.RoleProvider }),
			identities: identity("tenant-a", "a", func(i *api.Identity) { i.Status.KubeconfigSecretRef = nil }),
			want:       liqo.Peer{Outgoing: liqo.Peering{Exists: true}},
		},
		"ProviderLeaves": {
			reason: "The identity is being deleted.", record: record(func(*api.ForeignCluster) {}),
			identities: identity("tenant-a", "a", func(i *api.Identity) { i.DeletionTimestamp = ended }),
			want:       liqo.Peer{Outgoing: liqo.Peering{Exists: true, Ending: true}},
		},
		"IdentityOfASlice": {
			reason: "It is for a virtual kubelet.", record: record(func(*api.ForeignCluster) {}),
			identities: identity("tenant-a", "a", func(i *api.Identity) { i.Spec.Type = api.IdentityResourceSlice }),
		},
		"CredentialsByHand": {
			reason: "Only the role tells of them.", want: liqo.Peer{Outgoing: up},
			record: record(func(fc *api.ForeignCluster) {
				fc.Status.Role, fc.Status.Modules.Offloading.Enabled = api.RoleProvider, true
			}),
		},
		"ProviderHasGone": {
			reason: "Liqo forgets to take the role back.", record: record(func(fc *api.ForeignCluster) {
				fc.Status.Role, fc.Status.Modules.Networking.Enabled, fc.Status.Modules.Authentication.Enabled = api.RoleProvider, true, true
			}),
		},
		"Both": {
			reason:  "Each cluster provides to the other.",
			record:  record(func(fc *api.ForeignCluster) { ready(fc); fc.Status.Role = api.RoleConsumerAndProvider }),
			tenants: tenant("tenant-a", "a", asIs), identities: identity("tenant-a", "a", asItIs), want: liqo.Peer{Incoming: up, Outgoing: up},
		},
		"InBandThere": {
			reason: "The provider is reached by a proxy.", record: record(func(*api.ForeignCluster) {}),
			identities: identity("tenant-a", "a", func(i *api.Identity) { i.Spec.AuthParams.ProxyURL = &proxy }),
			want:       liqo.Peer{Outgoing: up, InBand: true},
		},
		"InBandHere": {
			reason: "The consumer reaches this cluster by a proxy.", record: record(ready),
			tenants: tenant("tenant-a", "a", func(t *api.Tenant) { t.Spec.ProxyURL = &proxy }), want: liqo.Peer{Incoming: up, InBand: true},
		},
		"NoProxy": {
			reason: "An empty text is none.", record: record(ready),
			tenants: tenant("tenant-a", "a", func(t *api.Tenant) { t.Spec.ProxyURL = new(string) }), want: liqo.Peer{Incoming: up},
		},
		"Price": {
			reason: "It is noted on the record.",
			record: record(func(fc *api.ForeignCluster) { liqo.SetCorePrice(fc, "0.01 EUR/h") }), want: liqo.Peer{CorePrice: "0.01 EUR/h"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.Identity, tc.want.Record = cluster.Identity{ID: "a", Name: "a"}, "record-of-a"
			tc.want.Known, tc.want.Tenant = made, "tenant-a"
			namespaces := []corev1.Namespace{tenantNamespace("tenant-b", "b"), tenantNamespace("tenant-a", "a"), {}}
			got := PeerOf(FactsAbout(tc.record, namespaces, tc.tenants, tc.identities))
			if tc.want.Incoming.Exists {
				tc.want.Permit = liqo.Permit{Name: "may", UID: "permit"}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nPeerOf(): -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

func TestIsOwnedBy(t *testing.T) {
	peer := &liqo.Peer{Permit: liqo.Permit{Name: "a", UID: "now"}}
	cases := map[string]struct {
		reason string
		owners []types.UID
		peer   *liqo.Peer
		want   bool
	}{
		"Now":      {"It is of this peering.", []types.UID{"now"}, peer, true},
		"Also":     {"Whatever else it is of.", []types.UID{"other", "now"}, peer, true},
		"Before":   {"One of the same name has ended.", []types.UID{"before"}, peer, false},
		"Free":     {"It goes with no peering.", nil, peer, false},
		"NoPermit": {"Who may not consume has nothing.", []types.UID{""}, &liqo.Peer{}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := &corev1.ConfigMap{}
			for _, uid := range tc.owners {
				owner := OwnerOf(&liqo.Peer{Permit: liqo.Permit{Name: "a", UID: uid}})
				o.OwnerReferences = append(o.OwnerReferences, owner)
			}
			if got := IsOwnedBy(o, tc.peer); got != tc.want {
				t.Errorf("%s: %t", tc.reason, got)
			}
		})
	}
}

// TestNamespaceOfPeer holds that of several tenant namespaces that counts which is used, and none if that is none.
func TestNamespaceOfPeer(t *testing.T) {
	record := &api.ForeignCluster{Spec: api.ForeignClusterSpec{ClusterID: "a"}}
	two := []corev1.Namespace{tenantNamespace("first", "a"), tenantNamespace("second", "a")}
	if got := FactsAbout(record, two, nil, nil).Namespace; got != "" {
		t.Errorf("of two namespaces, neither of them used: %q", got)
	}
	tenants := []api.Tenant{{ObjectMeta: metav1.ObjectMeta{Namespace: "second"}, Spec: api.TenantSpec{ClusterID: "a"}}}
	if got := FactsAbout(record, two, tenants, nil).Namespace; got != "second" {
		t.Errorf("the Tenant is in the second namespace: %q", got)
	}
	if got := FactsAbout(record, nil, nil, nil).Namespace; got != "" {
		t.Errorf("without namespaces: %q", got)
	}
}
