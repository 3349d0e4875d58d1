// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Tenant is a cluster that may consume here. It is in the tenant namespace of that cluster.
//
// +kubebuilder:object:root=true
type Tenant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TenantSpec   `json:"spec,omitempty"`
	Status TenantStatus `json:"status,omitempty"`
}

// TenantSpec says who the consumer is, and how far it may go.
type TenantSpec struct {
	// ClusterID is the ID of the consumer. It never changes.
	ClusterID string `json:"clusterID,omitempty"`
	// AuthzPolicy is whether Liqo asks for a key of the consumer before it accepts anything; nil is KeysExchange.
	AuthzPolicy *AuthzPolicy `json:"authzPolicy,omitempty"`
	// PublicKey is the key of the consumer, CSR its request for a certificate, and Signature the nonce that was put to it, signed.
	PublicKey []byte `json:"publicKey,omitempty"`
	CSR       []byte `json:"csr,omitempty"`
	Signature []byte `json:"signature,omitempty"`
	// ProxyURL is the proxy by which the consumer reaches the API server here; nil if it needs none.
	ProxyURL *string `json:"proxyURL,omitempty"`
	// TenantCondition is how far the consumer may go; empty is Active.
	TenantCondition TenantCondition `json:"tenantCondition,omitempty"`
}

// AuthzPolicy is what Liqo asks of a consumer.
type AuthzPolicy string

// The policies of a Tenant.
const (
	KeysExchange        AuthzPolicy = "KeysExchange"
	TolerateNoHandshake AuthzPolicy = "TolerateNoHandshake"
)

// TenantCondition is how far a consumer may go.
type TenantCondition string

// The conditions of a Tenant.
const (
	// TenantActive may use what it was granted, and ask for more.
	TenantActive TenantCondition = "Active"
	// TenantCordoned may use what it was granted, and is granted no more.
	TenantCordoned TenantCondition = "Cordoned"
	// TenantDrained may do nothing: Liqo takes its rights back, and deletes what it has put here.
	TenantDrained TenantCondition = "Drained"
)

// TenantStatus is what Liqo has done for a consumer.
type TenantStatus struct {
	// TenantNamespace is where the consumer may write; empty until it may.
	TenantNamespace string `json:"tenantNamespace,omitempty"`
	// AuthParams are what Liqo has issued for the consumer; nil until it has.
	AuthParams *IssuedParams `json:"authParams,omitempty"`
}

// IssuedParams are what a consumer authenticates with here, without how it reaches the API server.
type IssuedParams struct {
	// SignedCRT is the certificate of its control plane in PEM; empty where Liqo gives peers no certificates.
	SignedCRT []byte `json:"signedCRT,omitempty"`
}

// TenantList is a list of Tenants.
//
// +kubebuilder:object:root=true
type TenantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Tenant `json:"items"`
}

// Identity is how this cluster authenticates at one that provides, in the tenant namespace of that cluster. Certificates are left out.
//
// +kubebuilder:object:root=true
type Identity struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   IdentitySpec   `json:"spec,omitempty"`
	Status IdentityStatus `json:"status,omitempty"`
}

// IdentitySpec says where an identity is for.
type IdentitySpec struct {
	// ClusterID is the ID of the provider.
	ClusterID string `json:"clusterID,omitempty"`
	// Type is for what it is used.
	Type IdentityType `json:"type,omitempty"`
	// AuthParams are how the provider is reached.
	AuthParams AuthParams `json:"authParams,omitempty"`
	// Namespace is the tenant namespace of this cluster at the provider.
	Namespace *string `json:"namespace,omitempty"`
}

// IdentityType is for what an identity is used.
type IdentityType string

// The types of identities.
const (
	// IdentityControlPlane copies what this cluster asks of the provider, and what that answers.
	IdentityControlPlane IdentityType = "ControlPlane"
	// IdentityResourceSlice runs pods on one ResourceSlice.
	IdentityResourceSlice IdentityType = "ResourceSlice"
)

// AuthParams are how an API server is reached, without what authenticates there.
type AuthParams struct {
	APIServer string `json:"apiServer,omitempty"`
	// ProxyURL is the proxy by which it is reached; nil if none is needed.
	ProxyURL *string `json:"proxyURL,omitempty"`
}

// IdentityStatus is what Liqo has made of an identity.
type IdentityStatus struct {
	// KubeconfigSecretRef names the Secret with the credentials; nil until there is one.
	KubeconfigSecretRef *corev1.LocalObjectReference `json:"kubeconfigSecretRef,omitempty"`
}

// IdentityList is a list of Identities.
//
// +kubebuilder:object:root=true
type IdentityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Identity `json:"items"`
}

// ResourceSlice is what a consumer asks of a provider, and what that grants. It is in the tenant namespace of the other cluster on both
// sides: the consumer writes the spec, and Liqo copies it to the provider; the provider writes the status, and Liqo copies that back. What
// authenticates the consumer is left out of the status.
//
// +kubebuilder:object:root=true
type ResourceSlice struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ResourceSliceSpec   `json:"spec,omitempty"`
	Status ResourceSliceStatus `json:"status,omitempty"`
}

// ResourceSliceSpec is what a consumer asks for.
type ResourceSliceSpec struct {
	// ConsumerClusterID and ProviderClusterID are who asks and who is asked.
	ConsumerClusterID *string `json:"consumerClusterID,omitempty"`
	ProviderClusterID *string `json:"providerClusterID,omitempty"`
	// Resources are how much; none leaves that to the provider.
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// Class is who answers at the provider: Liqo itself for SliceClassDefault and for none, and whoever has taken that name for others.
	Class string `json:"class,omitempty"`
	// CSR is the request for the certificate of the virtual kubelet.
	CSR []byte `json:"csr,omitempty"`
}

// Classes of ResourceSlices.
const (
	// SliceClassDefault is that of those which Liqo itself answers: it grants whatever is asked for.
	SliceClassDefault = "default"
	// SliceClassBroker is that of those which a broker answers.
	SliceClassBroker = "liqo-broker"
)

// ResourceSliceStatus is what a provider grants. The virtual node of the consumer is made of it.
type ResourceSliceStatus struct {
	// Conditions are a list that is written as a whole.
	Conditions []ResourceSliceCondition `json:"conditions,omitempty"`
	// Resources are what the node has. A virtual kubelet removes no key: what is withdrawn is written as zero.
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// StorageClasses, IngressClasses and LoadBalancerClasses are what the provider has of each. Nothing of a kind is copied to a provider
	// that lists none of its classes.
	StorageClasses      []StorageClass      `json:"storageClasses,omitempty"`
	IngressClasses      []IngressClass      `json:"ingressClasses,omitempty"`
	LoadBalancerClasses []LoadBalancerClass `json:"loadBalancerClasses,omitempty"`
	// NodeLabels are put on the node. A label that is taken out here stays there.
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`
	// NodeSelector is put on the pods that come from the node.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
}

// SliceConditionType says what of a ResourceSlice was decided.
type SliceConditionType string

// The conditions of a ResourceSlice. It is in force if both are SliceAccepted.
const (
	// SliceAuthentication is whether Liqo has issued the certificate.
	SliceAuthentication SliceConditionType = "Authentication"
	// SliceResources is whether the resources are granted.
	SliceResources SliceConditionType = "Resources"
)

// SliceConditionStatus is what was decided.
type SliceConditionStatus string

// What may be decided of a ResourceSlice.
const (
	SliceAccepted SliceConditionStatus = "Accepted"
	SliceDenied   SliceConditionStatus = "Denied"
)

// ResourceSliceCondition is what was decided of a ResourceSlice, when and why.
type ResourceSliceCondition struct {
	Type               SliceConditionType   `json:"type"`
	Status             SliceConditionStatus `json:"status"`
	LastTransitionTime metav1.Time          `json:"lastTransitionTime,omitempty"`
	Reason             string               `json:"reason,omitempty"`
	Message            string               `json:"message,omitempty"`
}

// ResourceSliceList is a list of ResourceSlices.
//
// +kubebuilder:object:root=true
type ResourceSliceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ResourceSlice `json:"items"`
}

// Renew is how a consumer asks for a certificate that lasts longer. Liqo copies it as a ResourceSlice, and the answer is left out.
//
// +kubebuilder:object:root=true
type Renew struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RenewSpec `json:"spec,omitempty"`
}

// RenewSpec says whose certificate it is.
type RenewSpec struct {
	// ConsumerClusterID is who asks.
	ConsumerClusterID string `json:"consumerClusterID,omitempty"`
	// PublicKey is the key of the consumer, and CSR its request.
	PublicKey []byte `json:"publicKey,omitempty"`
	CSR       []byte `json:"csr,omitempty"`
	// IdentityType is for what the certificate is used.
	IdentityType IdentityType `json:"identityType,omitempty"`
	// ResourceSliceRef names the ResourceSlice; nil for an identity of the control plane.
	ResourceSliceRef *corev1.LocalObjectReference `json:"resourceSliceRef,omitempty"`
}

// RenewList is a list of Renews.
//
// +kubebuilder:object:root=true
type RenewList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Renew `json:"items"`
}
