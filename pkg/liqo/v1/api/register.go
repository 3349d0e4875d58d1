// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The groups of Liqo 1.x. Liqo 0.9 has kinds of the same names in others, but for NamespaceOffloadings, which have another version there.
const (
	CoreGroup           = "core.liqo.io"
	AuthenticationGroup = "authentication.liqo.io"
	OffloadingGroup     = "offloading.liqo.io"
	NetworkingGroup     = "networking.liqo.io"
	IPAMGroup           = "ipam.liqo.io"
)

// Beta is the version of all groups but IPAMGroup, whose version Alpha is.
const (
	Beta  = "v1beta1"
	Alpha = "v1alpha1"
)

const (
	// ForeignClusterKind is the kind of Liqo's record of a peer.
	ForeignClusterKind = "ForeignCluster"
	// TenantKind is the kind of what lets a peer consume.
	TenantKind = "Tenant"
)

// AddToScheme registers the objects of this package.
func AddToScheme(s *runtime.Scheme) error {
	for _, of := range []struct {
		group, version string
		kinds          []runtime.Object
	}{
		{CoreGroup, Beta, []runtime.Object{&ForeignCluster{}, &ForeignClusterList{}}},
		{AuthenticationGroup, Beta, []runtime.Object{
			&Tenant{}, &TenantList{}, &Identity{}, &IdentityList{}, &ResourceSlice{}, &ResourceSliceList{}, &Renew{}, &RenewList{},
		}},
		{OffloadingGroup, Beta, []runtime.Object{
			&NamespaceMap{}, &NamespaceMapList{}, &NamespaceOffloading{}, &NamespaceOffloadingList{},
			&VirtualNode{}, &VirtualNodeList{}, &ShadowPod{}, &ShadowPodList{},
		}},
		{NetworkingGroup, Beta, []runtime.Object{
			&Configuration{}, &ConfigurationList{}, &Connection{}, &ConnectionList{}, &FirewallConfiguration{}, &FirewallConfigurationList{},
		}},
		{IPAMGroup, Alpha, []runtime.Object{&Network{}, &NetworkList{}, &IP{}, &IPList{}}},
	} {
		version := schema.GroupVersion{Group: of.group, Version: of.version}
		s.AddKnownTypes(version, of.kinds...)
		metav1.AddToGroupVersion(s, version)
	}
	return nil
}
