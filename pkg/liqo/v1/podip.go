// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// labelPodName and labelPodNamespace are on the IP that Liqo makes for a pod that runs elsewhere; it is called as the pod is, and the pod
// is its owner (liqo/pkg/liqo-controller-manager/ipmapping@v1.2.0).
const (
	labelPodName      = "offloading.liqo.io/pod-name"
	labelPodNamespace = "offloading.liqo.io/pod-namespace"
)

// PodIPSelector selects the IPs that Liqo makes for pods that run elsewhere, and what is labelled like them.
func PodIPSelector() (labels.Selector, error) {
	is, err := labels.NewRequirement(labelPodName, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("select the IPs of pods: %w", err)
	}
	return labels.NewSelector().Add(*is), nil
}

// PodIPs returns the names of the IPs that [PodIPSelector] selects, which are those of their pods.
func PodIPs(ctx context.Context, objects client.Reader) ([]client.ObjectKey, error) {
	selected, err := PodIPSelector()
	if err != nil {
		return nil, err
	}
	var all api.IPList
	if err := objects.List(ctx, &all, client.MatchingLabelsSelector{Selector: selected}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the IPs of pods: %w", err)
	}
	names := make([]client.ObjectKey, len(all.Items))
	for i := range all.Items {
		names[i] = client.ObjectKeyFromObject(&all.Items[i])
	}
	return names, nil
}

// BrokerNodeKinds returns the kinds whose objects say which nodes stand for brokers.
func BrokerNodeKinds() []client.Object {
	return []client.Object{&api.ForeignCluster{}, &api.VirtualNode{}}
}

// BrokerNodesChanged reports whether an update of one of [BrokerNodeKinds] may change which nodes stand for brokers.
func BrokerNodesChanged(before, after client.Object) bool {
	switch was := before.(type) {
	case *api.ForeignCluster:
		is, same := after.(*api.ForeignCluster)
		return same && (was.Spec.ClusterID != is.Spec.ClusterID || isSaidBroker(was) != isSaidBroker(is))
	case *api.VirtualNode:
		is, same := after.(*api.VirtualNode)
		return same && was.Spec.ClusterID != is.Spec.ClusterID
	}
	return false
}

// StaleIP returns the IP that Liqo has made for a pod on a node of a broker, if it has another address than the one under which the pod is
// shown, and whether there is one. Liqo would change the address, and cannot: that of an IP never changes.
func StaleIP(ctx context.Context, objects client.Reader, pod *corev1.Pod) (ip *api.IP, is bool, err error) {
	ip = &api.IP{}
	if err = objects.Get(ctx, client.ObjectKeyFromObject(pod), ip); err != nil {
		return nil, false, client.IgnoreNotFound(fmt.Errorf("get IP %s/%s: %w", pod.Namespace, pod.Name, err))
	}
	if !isStale(ip, pod) {
		return nil, false, nil
	}
	is, err = isOnBroker(ctx, objects, pod.Spec.NodeName)
	return ip, is, err
}

// BarePodIP takes out of an IP what StaleIP does not read.
func BarePodIP(ip *api.IP) {
	ip.Annotations, ip.Finalizers = nil, nil
	ip.Spec, ip.Status = api.IPSpec{IP: ip.Spec.IP}, api.IPStatus{}
}

// isStale reports whether Liqo has made an IP for a pod that is shown under another address now. What a pod of the same name has left is
// not: it goes with that pod.
func isStale(ip *api.IP, pod *corev1.Pod) bool {
	made := ip.Labels[labelPodName] == pod.Name && ip.Labels[labelPodNamespace] == pod.Namespace &&
		slices.ContainsFunc(ip.OwnerReferences, func(o metav1.OwnerReference) bool {
			return o.APIVersion == "v1" && o.Kind == "Pod" && o.Name == pod.Name && o.UID == pod.UID
		})
	return made && ip.DeletionTimestamp.IsZero() && pod.Status.PodIP != "" && ip.Spec.IP != pod.Status.PodIP
}

// isOnBroker reports whether a node stands for a broker, and for nobody else.
func isOnBroker(ctx context.Context, objects client.Reader, node string) (bool, error) {
	var nodes api.VirtualNodeList
	if err := objects.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list VirtualNodes: %w", err)
	}
	found := false
	for i := range nodes.Items {
		if nodes.Items[i].Name != node {
			continue
		}
		if is, err := isBroker(ctx, objects, cluster.ID(nodes.Items[i].Spec.ClusterID)); err != nil || !is {
			return false, err
		}
		found = true
	}
	return found, nil
}
