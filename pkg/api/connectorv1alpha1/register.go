// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package connectorv1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the objects of this package.
var GroupVersion = schema.GroupVersion{Group: "brokering.liqo.io", Version: "v1alpha1"}

// AddToScheme registers the objects of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Registry{}, &RegistryList{}, &CatalogPage{}, &CatalogPageList{}, &Offer{}, &OfferList{},
		&Purchase{}, &PurchaseList{}, &Sale{}, &SaleList{}, &SalesLedger{}, &SalesLedgerList{}, &CapacityRequest{}, &CapacityRequestList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
