// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09_test

import (
	"testing"

	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/discovery"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// TestLabels compares what package liqo says of objects, without importing Liqo, with what Liqo calls it.
func TestLabels(t *testing.T) {
	for _, name := range []struct{ got, want string }{
		{liqo.LabelRemoteClusterID, consts.RemoteClusterID},
		{liqo.LabelNodeType, consts.TypeLabel}, {liqo.NodeTypeVirtual, consts.TypeNode},
		{liqo.LabelManagedBy, consts.ManagedByLabelKey}, {liqo.ManagedByShadowPod, consts.ManagedByShadowPodValue},
		{liqo.ManagedByShadowEndpointSlice, consts.ManagedByShadowEndpointSliceValue},
		{liqo.LabelReplicated, consts.ReplicationStatusLabel},
		{liqo.LabelReplication, consts.ReplicationRequestedLabel}, {liqo.ReplicationValue, consts.ReplicationRequestedLabelValue},
		{liqo.LabelOrigin, consts.ReplicationOriginLabel}, {liqo.LabelDestination, consts.ReplicationDestinationLabel},
		{liqo.IdentityKey, consts.ClusterIDConfigMapKey},
		{liqo.OffloadingName, consts.DefaultNamespaceOffloadingName},
		{liqo.TenantNamespaceSelector().String(), discovery.TenantNamespaceLabel},
	} {
		if name.got != name.want {
			t.Errorf("%q is called %q in Liqo", name.got, name.want)
		}
	}
	twin := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "web-1", Labels: map[string]string{consts.RemoteClusterID: "a", consts.SchedulingLiqoLabel: consts.SchedulingLiqoLabelValue},
		Annotations: map[string]string{
			consts.RemoteNamespaceManagedByAnnotationKey: "tenant/map", consts.RemoteNamespaceOriginalNameAnnotationKey: "web",
		},
	}}
	if of, is := liqo.TwinOf(twin); of != cluster.ID("a") || !is || liqo.OriginalName(twin) != "web" || !liqo.Open(twin) {
		t.Errorf("a twin namespace of a: TwinOf() = %q, %t, OriginalName() = %q, Open() = %t", of, is, liqo.OriginalName(twin), liqo.Open(twin))
	}
	tenant := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{discovery.ClusterIDLabel: "a", discovery.TenantNamespaceLabel: "true"},
	}}
	if of, is := liqo.TenantOf(tenant); of != cluster.ID("a") || !is {
		t.Errorf("the tenant namespace of a: TenantOf() = %q, %t", of, is)
	}
	pod := &corev1.Pod{}
	liqo.KeepHere(pod)
	liqo.Admit(pod)
	if pod.Annotations[consts.SkipReflectionAnnotationKey] != "true" || pod.Spec.Tolerations[0].Key != consts.VirtualNodeTolerationKey {
		t.Errorf("a pod that is kept here and admitted to virtual nodes: %v, %v", pod.Annotations, pod.Spec.Tolerations)
	}
}
