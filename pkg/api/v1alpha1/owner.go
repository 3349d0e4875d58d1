// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OwnedBy returns the owner of an object that goes when the Provider or PlacementPolicy goes
// that controls it, by its kind. It does not block the deletion: for that, who writes it would
// need a right on the finalizers of the owner.
func OwnedBy(kind string, owner metav1.Object) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: GroupVersion.String(), Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true),
	}}
}
