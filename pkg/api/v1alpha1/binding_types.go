// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NamespaceBinding names namespaces of consumers. A namespace is meant that has one of
// the names, if there are any, and that the selector matches, if there is one.
//
// +kubebuilder:validation:XValidation:rule="has(self.names) || has(self.selector)",message="give names or a selector"
type NamespaceBinding struct {
	// Names are what the consumers themselves call the namespaces.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +listType=set
	// +optional
	Names []string `json:"names,omitempty"`
	// Selector is over the labels that the namespaces have on the broker. Those that they
	// have on the consumer do not cross.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}
