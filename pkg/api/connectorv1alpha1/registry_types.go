// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package connectorv1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionEnrolled is true while a registry knows this cluster as a party, and has approved it.
const ConditionEnrolled = "Enrolled"

// Reasons of the condition Enrolled of Registries.
const (
	ReasonEnrolled = "Enrolled"
	// ReasonAwaitsAdmission: the administrator of the registry has to approve the cluster.
	ReasonAwaitsAdmission = "AwaitsAdmission"
	// ReasonRevoked: the administrator of the registry does not want the cluster any more.
	ReasonRevoked = "Revoked"
	// ReasonRefused: the registry does not take what the cluster says of itself.
	ReasonRefused = "Refused"
	// ReasonUnreachable: the registry does not answer.
	ReasonUnreachable = "Unreachable"
	// ReasonInvalidRegistry: what the spec names is not there, or cannot be used.
	ReasonInvalidRegistry = "InvalidRegistry"
)

// ConditionFollowing is true while the registry is followed.
const ConditionFollowing = "Following"

// Reasons of the condition Following of Registries, besides ReasonUnreachable and ReasonInvalidRegistry.
const (
	ReasonFollowing = "Following"
	// ReasonMisbehaving: the registry has shown what its owner has not signed, or what is older than what was seen.
	ReasonMisbehaving = "Misbehaving"
)

// ConditionComplete is false while a registry shows more than there is room for.
const ConditionComplete = "Complete"

// Reasons of the condition Complete of Registries.
const (
	ReasonAllKept = "AllKept"
	// ReasonNoRoom: what came when there was no room for more is left out.
	ReasonNoRoom = "NoRoom"
)

// Registry is a registry that this cluster uses: it finds offers there, and publishes its own.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=creg,categories={liqo,brokering}
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.url`
// +kubebuilder:printcolumn:name="Enrolled",type=string,JSONPath=`.status.conditions[?(@.type == 'Enrolled')].status`
// +kubebuilder:printcolumn:name="Following",type=string,JSONPath=`.status.conditions[?(@.type == 'Following')].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.status == 'False')].reason`
// +kubebuilder:printcolumn:name="Parties",type=integer,JSONPath=`.status.parties`
// +kubebuilder:printcolumn:name="Offers",type=integer,JSONPath=`.status.offers`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Registry struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is Kubernetes' own.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what people want.
	// +required
	Spec RegistrySpec `json:"spec"`
	// status is what the connector sees.
	// +optional
	Status RegistryStatus `json:"status,omitempty"`
}

// RegistrySpec says which registry it is, and for what it is used.
type RegistrySpec struct {
	// url is where the registry is.
	// +kubebuilder:validation:Pattern=`^https://[^/?#@]+(/[^?#]*)?$`
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=512
	// +required
	URL string `json:"url"`
	// fingerprint is that of the registry's key, as `registry serve` prints it. Without it, the certificate of the registry must be
	// signed by one of the authorities in caBundle, or else by one that the connector's image knows.
	// +kubebuilder:validation:Pattern=`^[a-z2-7]{52}$`
	// +kubebuilder:validation:MaxLength=52
	// +optional
	Fingerprint string `json:"fingerprint,omitempty"`
	// caBundle is certificates of authorities, as PEM.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	CABundle string `json:"caBundle,omitempty"`
	// tokenSecret is a Secret in the namespace of the connector with an enrolment token under the key `token`. With it, the registry
	// approves the cluster at once.
	// +kubebuilder:default={}
	// +optional
	TokenSecret SecretReference `json:"tokenSecret,omitempty"`
	// publish is whether the cluster's offers are published there.
	// +kubebuilder:default=true
	// +optional
	Publish *bool `json:"publish,omitempty"`
}

// SecretReference names a Secret in the namespace of the connector.
type SecretReference struct {
	// name is that of the Secret; without one there is none.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
}

// RegistryStatus is what the connector sees of a registry.
type RegistryStatus struct {
	// position is how far the registry was followed; it counts together with the CatalogPages.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Position string `json:"position,omitempty"`
	// parties is how many parties the registry lists.
	// +optional
	Parties int32 `json:"parties,omitempty"`
	// offers is how many offers the registry lists.
	// +optional
	Offers int32 `json:"offers,omitempty"`
	// leaseTime is until when the registry takes the cluster for alive.
	// +optional
	LeaseTime *metav1.Time `json:"leaseTime,omitempty"`
	// observedGeneration is the generation of the spec that the status answers to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Enrolled, Following and Complete.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RegistryList is a list of Registries.
//
// +kubebuilder:object:root=true
type RegistryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Registry `json:"items"`
}

// CatalogPage is a part of what a registry has shown, as the connector remembers it, so that it knows the catalog without the registry. It
// is not meant for people.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Registry",type=string,JSONPath=`.registry`
// +kubebuilder:printcolumn:name="Offers",type=integer,JSONPath=`.offers`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CatalogPage struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is Kubernetes' own.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// registry is the name of the Registry.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Registry string `json:"registry,omitempty"`
	// offers is how many offers are in the page.
	// +optional
	Offers int32 `json:"offers,omitempty"`
	// data is compressed text of the connector's own: signed documents. What it cannot read or verify counts as not there.
	// +kubebuilder:validation:MaxLength=1048576
	// +optional
	Data []byte `json:"data,omitempty"`
}

// CatalogPageList is a list of CatalogPages.
//
// +kubebuilder:object:root=true
type CatalogPageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CatalogPage `json:"items"`
}
