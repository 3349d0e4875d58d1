// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// Identity returns what a cluster is called. Liqo 1.x knows no names: people choose the ID, which is one.
func Identity(id string) cluster.Identity { return cluster.Identity{ID: cluster.ID(id), Name: id} }

// OwnIdentity returns what this cluster is called, as ConfigMap [liqo.IdentityName] says.
func OwnIdentity(stored *corev1.ConfigMap) (cluster.Identity, error) {
	id := stored.Data[liqo.IdentityKey]
	if id == "" {
		key := types.NamespacedName{Namespace: stored.Namespace, Name: stored.Name}
		return cluster.Identity{}, fmt.Errorf("ConfigMap %s does not have %s", key, liqo.IdentityKey)
	}
	return Identity(id), nil
}

// TenantOf returns the peer whose tenant namespace a namespace is.
func TenantOf(namespace *corev1.Namespace) (cluster.ID, bool) {
	id := namespace.Labels[liqo.LabelRemoteClusterID]
	_, tenant := namespace.Labels[liqo.LabelTenantNamespace]
	return cluster.ID(id), tenant && id != ""
}

// Facts are the objects here that tell of one peer.
type Facts struct {
	// Record is what Liqo sees of it.
	Record *api.ForeignCluster
	// Namespace is its tenant namespace; empty if there is none, or one of several.
	Namespace string
	// Tenant is what lets it consume; nil if nothing does.
	Tenant *api.Tenant
	// Identity is how this cluster authenticates there; nil if nobody has made one, also where people have put credentials there by hand.
	Identity *api.Identity
}

// FactsAbout finds what tells of a peer. Who is about to peer may make a Tenant in the tenant namespace that was made for it, which says
// what it likes: an object counts only for the cluster in whose tenant namespace it is, and of several the one that was there first.
func FactsAbout(record *api.ForeignCluster, namespaces []corev1.Namespace, tenants []api.Tenant, identities []api.Identity) Facts {
	f, id := Facts{Record: record}, record.Spec.ClusterID
	var own []string
	for i := range namespaces {
		if of, is := TenantOf(&namespaces[i]); is && string(of) == id {
			own = append(own, namespaces[i].Name)
		}
	}
	if f.Tenant = firstMade(tenants, func(t *api.Tenant) bool {
		return t.Spec.ClusterID == id && slices.Contains(own, t.Namespace)
	}); f.Tenant != nil {
		f.Namespace = f.Tenant.Namespace
	}
	if f.Identity = firstMade(identities, func(i *api.Identity) bool {
		return i.Spec.ClusterID == id && i.Spec.Type == api.IdentityControlPlane && slices.Contains(own, i.Namespace)
	}); f.Identity != nil {
		f.Namespace = cmp.Or(f.Namespace, f.Identity.Namespace)
	}
	if f.Namespace == "" && len(own) == 1 {
		f.Namespace = own[0]
	}
	return f
}

// firstMade returns the oldest of the objects that count, or nil if none does. Of those that were made in the same second it is the first
// one by namespace and name, in whatever order they are listed.
func firstMade[T any, P interface {
	*T
	client.Object
}](all []T, counts func(P) bool,
) P {
	var first P
	for i := range all {
		if o := P(&all[i]); counts(o) && (first == nil || isBefore(o, first)) {
			first = o
		}
	}
	return first
}

func isBefore(a, b client.Object) bool {
	return cmp.Or(
		a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
		cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()),
	) < 0
}

// PeerOf returns the peer of which facts tell.
func PeerOf(f Facts) liqo.Peer {
	var permit liqo.Permit
	if f.Tenant != nil {
		permit = liqo.Permit{Name: f.Tenant.Name, UID: f.Tenant.UID}
	}
	return liqo.Peer{
		Identity: Identity(f.Record.Spec.ClusterID), Record: f.Record.Name, Known: f.Record.CreationTimestamp.Time, Tenant: f.Namespace,
		Outgoing: f.outgoing(), Incoming: f.incoming(), InBand: f.inBand(), CorePrice: liqo.CorePrice(f.Record),
		Permit: permit,
	}
}

// OwnerOf returns the owner of what there is for as long as a peer consumes: Kubernetes deletes it with the peering.
func OwnerOf(p *liqo.Peer) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: schema.GroupVersion{Group: api.AuthenticationGroup, Version: api.Beta}.String(), Kind: api.TenantKind,
		Name: p.Permit.Name, UID: p.Permit.UID,
	}
}

// IsOwnedBy reports whether an object is of the peering over which a peer consumes now, and not of one that has ended.
func IsOwnedBy(o client.Object, p *liqo.Peer) bool {
	return p.Permit.UID != "" && slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		return r.UID == p.Permit.UID
	})
}

// incoming is the peering over which the peer consumes. It goes by the Tenant, and not by the role in the record, which Liqo takes back
// for a moment when it cannot look.
func (f *Facts) incoming() liqo.Peering {
	if f.Tenant == nil {
		return liqo.Peering{}
	}
	ending := !f.Tenant.DeletionTimestamp.IsZero() || f.Tenant.Spec.TenantCondition == api.TenantDrained
	ready := condition(f.Record.Status.Modules.Authentication.Conditions, api.AuthTenantStatus) == api.StatusReady
	return liqo.Peering{Exists: true, Established: ready && !ending, Ending: ending}
}

// outgoing is the peering over which the peer provides. Where credentials were put there by hand only the role tells of them. Liqo 1.2.0
// leaves the role of a peer that has gone as it was, while neither an identity nor a virtual node is left of it
// (Reconcile in liqo/pkg/liqo-controller-manager/core/foreigncluster-controller@v1.2.0).
func (f *Facts) outgoing() liqo.Peering {
	if f.Identity == nil {
		said := f.Record.Status
		provides := (said.Role == api.RoleProvider || said.Role == api.RoleConsumerAndProvider) &&
			(said.Modules.Offloading.Enabled || condition(said.Modules.Authentication.Conditions, api.AuthIdentityControlPlaneStatus) != "")
		return liqo.Peering{Exists: provides, Established: provides}
	}
	ending := !f.Identity.DeletionTimestamp.IsZero()
	secret := f.Identity.Status.KubeconfigSecretRef
	return liqo.Peering{Exists: true, Established: secret != nil && secret.Name != "" && !ending, Ending: ending}
}

// inBand reports whether one of the two clusters reaches the API server of the other by a proxy in the network of the peering.
func (f *Facts) inBand() bool {
	here := f.Identity != nil && isSet(f.Identity.Spec.AuthParams.ProxyURL)
	there := f.Tenant != nil && isSet(f.Tenant.Spec.ProxyURL)
	return here || there || f.Record.Status.ForeignProxyURL != ""
}

func isSet(text *string) bool { return text != nil && *text != "" }

// condition returns how a condition of a ForeignCluster stands; empty if there is none.
func condition(all []api.Condition, of api.ConditionType) api.ConditionStatus {
	for i := range all {
		if all[i].Type == of {
			return all[i].Status
		}
	}
	return ""
}
