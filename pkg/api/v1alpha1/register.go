// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of the broker's objects.
const Group = "brokering.liqo.io"

// GroupVersion is the group and version of the objects of this package.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// AddToScheme registers the objects of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Provider{}, &ProviderList{}, &Consumer{}, &ConsumerList{},
		&PlacementPolicy{}, &PlacementPolicyList{}, &PlacementDecision{}, &PlacementDecisionList{}, &ProviderQuery{}, &ProviderQueryList{},
		&ProviderHistory{}, &ProviderHistoryList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
