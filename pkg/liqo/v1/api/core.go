// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ForeignCluster is what Liqo knows of a peer. Liqo itself makes it, as soon as any other object here names the cluster, and keeps its
// status: nobody else writes it. It is in no namespace.
//
// +kubebuilder:object:root=true
type ForeignCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ForeignClusterSpec   `json:"spec,omitempty"`
	Status ForeignClusterStatus `json:"status,omitempty"`
}

// ForeignClusterSpec says which cluster it is.
type ForeignClusterSpec struct {
	// ClusterID is the ID of the peer, which people choose: a DNS label. It never changes.
	ClusterID string `json:"clusterID"`
}

// ForeignClusterStatus is what Liqo sees of a peer. Liqo empties all but the conditions before it looks, and writes what it has seen by
// then if it cannot look at the rest: for a moment a peer may seem to have no role and no namespace.
type ForeignClusterStatus struct {
	// ObservedGeneration is the generation at which Liqo has looked last; zero if it never has.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Role is what the peer is to this cluster.
	Role Role `json:"role"`
	// Modules are the parts of Liqo, and how each of them stands with the peer.
	Modules Modules `json:"modules,omitempty"`
	// APIServerURL is where the API server of the peer is; empty unless the peer provides.
	APIServerURL string `json:"apiServerUrl,omitempty"`
	// ForeignProxyURL is the proxy by which that is reached, in the network of the peering; empty if it is reached without.
	ForeignProxyURL string `json:"foreignProxyUrl,omitempty"`
	// TenantNamespace are the namespaces of the peering on both sides.
	TenantNamespace TenantNamespaces `json:"tenantNamespace"`
	// Conditions are those of the peer as a whole: APIServerStatus.
	Conditions []Condition `json:"conditions,omitempty"`
}

// Role is what a peer is to this cluster.
type Role string

// The roles of a peer.
const (
	RoleConsumer            Role = "Consumer"
	RoleProvider            Role = "Provider"
	RoleConsumerAndProvider Role = "ConsumerAndProvider"
	RoleUnknown             Role = "Unknown"
)

// Modules are the parts of Liqo.
type Modules struct {
	Networking     Module `json:"networking"`
	Authentication Module `json:"authentication"`
	Offloading     Module `json:"offloading"`
}

// Module is how a part of Liqo stands with a peer.
type Module struct {
	// Enabled tells that there is any object of this part that names the peer.
	Enabled    bool        `json:"enabled"`
	Conditions []Condition `json:"conditions,omitempty"`
}

// ConditionType says of what a condition of a ForeignCluster is.
type ConditionType string

// The conditions of a ForeignCluster that this project reads.
const (
	// APIServerStatus is whether the API server of a peer that provides answers: Established or Error.
	APIServerStatus ConditionType = "APIServerStatus"
	// NetworkConnectionStatus is whether the tunnel to the peer is up: Established, Pending, Error, or NotReady without one.
	NetworkConnectionStatus ConditionType = "NetworkConnectionStatus"
	// AuthIdentityControlPlaneStatus is whether this cluster can authenticate at a peer that provides: Ready or NotReady.
	AuthIdentityControlPlaneStatus ConditionType = "AuthIdentityControlPlaneStatus"
	// AuthTenantStatus is whether a peer that consumes can authenticate here: Ready or NotReady.
	AuthTenantStatus ConditionType = "AuthTenantStatus"
)

// ConditionStatus is how a condition of a ForeignCluster stands.
type ConditionStatus string

// The values of a condition of a ForeignCluster.
const (
	StatusNone         ConditionStatus = "None"
	StatusPending      ConditionStatus = "Pending"
	StatusEstablished  ConditionStatus = "Established"
	StatusError        ConditionStatus = "Error"
	StatusReady        ConditionStatus = "Ready"
	StatusNotReady     ConditionStatus = "NotReady"
	StatusSomeNotReady ConditionStatus = "SomeNotReady"
)

// Condition is one thing that Liqo has seen of a peer, and since when.
type Condition struct {
	Type               ConditionType   `json:"type"`
	Status             ConditionStatus `json:"status"`
	LastTransitionTime metav1.Time     `json:"lastTransitionTime,omitempty"`
	Reason             string          `json:"reason,omitempty"`
	// Message may quote any error.
	Message string `json:"message,omitempty"`
}

// TenantNamespaces are the namespaces of a peering.
type TenantNamespaces struct {
	// Local is the one here; empty if there is none yet.
	Local string `json:"local,omitempty"`
	// Remote is the one at the peer; empty unless the peer provides.
	Remote string `json:"remote,omitempty"`
}

// ForeignClusterList is a list of ForeignClusters.
//
// +kubebuilder:object:root=true
type ForeignClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ForeignCluster `json:"items"`
}

// StorageClass is a class of volumes that a cluster has for others.
type StorageClass struct {
	Name string `json:"storageClassName"`
	// Default tells that it is taken for volumes that name none.
	Default bool `json:"default,omitempty"`
}

// IngressClass is a class of ingresses that a cluster has for others.
type IngressClass struct {
	Name string `json:"ingressClassName"`
	// Default tells that it is taken for ingresses that name none.
	Default bool `json:"default,omitempty"`
}

// LoadBalancerClass is a class of load balancers that a cluster has for others.
type LoadBalancerClass struct {
	Name string `json:"loadBalancerClassName"`
	// Default tells that it is taken for Services that name none.
	Default bool `json:"default,omitempty"`
}
