// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transittest has the cluster of a broker with Liqo 1.x for tests of the transit: consumer c, which was granted provider p and not
// q, and a namespace of it that the broker offloads. What it does not have is Liqo itself.
package transittest

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

const (
	// Own is the broker.
	Own = "broker"
	// Liqo is the namespace of its Liqo.
	Liqo = "liqo"
	// Twin is the namespace of consumer c.
	Twin = "web-c"
)

// World is a cluster that counts what is written.
type World struct {
	client.Client

	Writes int
	// Fail, if it is set, is asked about each write.
	Fail func(client.Object) error
}

// New returns the cluster, with others in it.
func New(t *testing.T, others ...client.Object) *World {
	t.Helper()
	scheme, err := daemon.Kinds(v1.Line{}.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	w := &World{}
	written := func(o client.Object) error {
		w.Writes++
		if w.Fail == nil {
			return nil
		}
		return w.Fail(o)
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects(), others...)...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if err := written(o); err != nil {
				return err
			}
			return c.Create(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			if err := written(o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if err := written(o); err != nil {
				return err
			}
			return c.Delete(ctx, o, options...)
		},
	})
	for _, i := range (v1.Line{}).Indexes() {
		b = b.WithIndex(i.Object, i.Field, i.Extract)
	}
	w.Client = b.Build()
	return w
}

// Tenant returns the tenant namespace of a peer.
func Tenant(id string) string { return api.TenantNamePrefix + "-" + id }

// Permit returns what lets a peer consume.
func Permit(id string) liqo.Permit { return liqo.Permit{Name: id, UID: types.UID("permit-of-" + id)} }

// Made gives an object a namespace, a name and labels.
func Made[T client.Object](o T, namespace, name string, labels map[string]string) T {
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(labels)
	return o
}

func objects() []client.Object {
	external := &api.Network{Status: api.NetworkStatus{CIDR: "10.70.0.0/16"}}
	pods := &api.Network{Status: api.NetworkStatus{CIDR: "10.201.0.0/16"}}
	proxy := &api.IP{Spec: api.IPSpec{IP: "10.80.0.9"}, Status: api.IPStatus{IP: "10.70.0.2"}}
	twin := Made(&corev1.Namespace{}, "", Twin, map[string]string{liqo.LabelRemoteClusterID: "c"})
	twin.Annotations = map[string]string{"liqo.io/managed-by-namespace-map": Tenant("c") + "/c"}
	slice := Made(&api.ResourceSlice{}, Tenant("c"), "broker", map[string]string{
		liqo.LabelReplicated: liqo.ReplicationValue, liqo.LabelOrigin: "c",
	})
	slice.Spec.Class, slice.Spec.ConsumerClusterID, slice.Spec.ProviderClusterID = v1.SliceClass, new("c"), new(Own)
	slice.Status.NodeLabels = map[string]string{"view.brokering.liqo.io/p": "10.69.0.0_16", "view.brokering.liqo.io/x": "nonsense"}
	all := []client.Object{
		Made(external, Liqo, "external", map[string]string{api.LabelNetworkType: api.NetworkTypeExternal}),
		Made(pods, Liqo, "pods", map[string]string{api.LabelNetworkType: api.NetworkTypePods}),
		Made(proxy, Liqo, "api-server-proxy", map[string]string{api.LabelIPType: api.IPTypeProxy}),
		twin, slice, Made(&api.NamespaceOffloading{}, Twin, liqo.OffloadingName, nil),
	}
	for _, p := range []struct{ id, pods string }{{"c", "10.200.0.0/16"}, {"p", "10.69.0.0/16"}, {"q", "10.65.0.0/16"}} {
		all = append(all, Peer(p.id, p.pods, p.id == "c")...)
	}
	return all
}

// Peer returns what Liqo has for a peer.
func Peer(id, pods string, consumes bool) []client.Object {
	of := map[string]string{liqo.LabelRemoteClusterID: id}
	record := Made(&api.ForeignCluster{Spec: api.ForeignClusterSpec{ClusterID: id}}, "", id, of)
	ns := Made(&corev1.Namespace{}, "", Tenant(id), map[string]string{liqo.LabelRemoteClusterID: id, liqo.LabelTenantNamespace: "true"})
	c := Made(&api.Configuration{}, ns.Name, id, of)
	c.Status.Remote = &api.ClusterNetworks{CIDR: api.CIDRs{Pod: []string{pods}, External: []string{"10.99.0.0/16"}}}
	all := []client.Object{record, ns, c}
	if consumes {
		tenant := Made(&api.Tenant{Spec: api.TenantSpec{ClusterID: id}}, ns.Name, id, nil)
		tenant.UID = Permit(id).UID
		return append(all, tenant)
	}
	i := &api.Identity{Spec: api.IdentitySpec{ClusterID: id, Type: api.IdentityControlPlane}}
	return append(all, Made(i, ns.Name, id, nil))
}

// Endpoints returns an EndpointSlice that Liqo has made of what consumer c asked for.
func Endpoints(name string, addresses ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(8080))}}}
	for _, address := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}, NodeName: new("c")})
	}
	s.UID = types.UID("uid-of-" + name)
	return Made(s, Twin, name, map[string]string{
		liqo.LabelManagedBy: liqo.ManagedByShadowEndpointSlice, api.LabelOriginCluster: "c", discoveryv1.LabelServiceName: "web",
		discoveryv1.LabelManagedBy: api.EndpointsReflected,
	})
}
