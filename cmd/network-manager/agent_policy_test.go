// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// sliceAsked returns how the agent of cluster home asks cluster broker for the node of provider a.
func sliceAsked(t *testing.T) *api.ResourceSlice {
	t.Helper()
	scheme, err := daemon.Kinds(v1.Line{}.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	record := &api.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "broker"}, Spec: api.ForeignClusterSpec{ClusterID: "broker"}}
	record.Status.TenantNamespace.Local = "liqo-tenant-broker"
	v1.SayBroker(record, true)
	of, err := v1.BrokerNodesOf(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(record).Build(), "home", "broker")
	if err != nil {
		t.Fatal(err)
	}
	before, wanted := of.Asking(nodename.OfSlice("broker", cluster.Identity{ID: "a", Name: "a"}), "a")
	slice, is := wanted.(*api.ResourceSlice)
	if before != nil || !is {
		t.Fatalf("Asking() = %v, %v", before, wanted)
	}
	return slice
}

// TestAgentSlicesPolicy holds which ResourceSlices the agent may make, change and delete where it may at all.
func TestAgentSlicesPolicy(t *testing.T) {
	const slices = "resourceslices"
	tenant := map[string]string{"liqo.io/remote-cluster-id": "broker", "liqo.io/tenant-namespace": "true"}
	with := func(by func(*api.ResourceSlice)) map[string]any {
		s := sliceAsked(t)
		by(s)
		return asObject(t, s)
	}
	own, nothing := with(func(*api.ResourceSlice) {}), map[string]any(nil)
	issued := with(func(s *api.ResourceSlice) {
		s.Spec.CSR, s.Finalizers = []byte("x"), []string{"crdreplicator.liqo.io/resource"}
	})
	bounded := func(s *api.ResourceSlice) {
		s.Spec.Resources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	}
	owned := func(s *api.ResourceSlice) { s.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Name: "x"}} }
	held := func(s *api.ResourceSlice) { s.Finalizers = []string{"x/y"} }
	unlabelled := func(s *api.ResourceSlice) { delete(s.Labels, liqo.LabelBrokerManaged) }
	unannotated := func(s *api.ResourceSlice) { s.Annotations = nil }
	replicated := func(s *api.ResourceSlice) { s.Labels["liqo.io/replicated"] = "true" }
	cases := map[string]written{
		"Create":  {"It asks for a node.", slices, tenant, nothing, own, false},
		"Bounded": {"And goes on when people have said how much.", slices, tenant, with(bounded), with(bounded), false},
		"Repair": {
			"And asks for it again as it is to be.", slices, tenant, with(func(s *api.ResourceSlice) { s.Spec.Class = "default" }), own, false,
		},
		"Issued": {"Whatever Liqo has written.", slices, tenant, issued, issued, false},
		"Delete": {"And for no more.", slices, tenant, issued, nothing, false},

		"Elsewhere": {"It asks nobody else.", slices, map[string]string{"liqo.io/remote-cluster-id": "broker"}, nothing, own, true},
		"Nobody":    {"It is no peer's.", slices, map[string]string{"liqo.io/tenant-namespace": "true"}, own, nothing, true},
		"OtherTenant": {
			"Nor another peer.", slices, map[string]string{"liqo.io/remote-cluster-id": "x", "liqo.io/tenant-namespace": "true"}, nothing, own, true,
		},
		"Status":      {"It grants itself nothing.", slices + "/status", tenant, own, own, true},
		"Theirs":      {"It deletes none of people.", slices, tenant, with(unlabelled), nothing, true},
		"TheirOwn":    {"Also with the label.", slices, tenant, with(unannotated), nothing, true},
		"OfPeer":      {"Nor of the peer.", slices, tenant, with(replicated), nothing, true},
		"Taken":       {"It takes none over.", slices, tenant, with(unlabelled), own, true},
		"Unlabelled":  {"It makes none that is not its own.", slices, tenant, nothing, with(unlabelled), true},
		"Unannotated": {"Nor one of no provider.", slices, tenant, nothing, with(unannotated), true},
		"Replicated":  {"Nor one of the peer.", slices, tenant, nothing, with(replicated), true},
		"Name": {
			"Nor one that could be people's.", slices, tenant, nothing, with(func(s *api.ResourceSlice) { s.Name = "broker" }), true,
		},
		"LongName": {
			"Nor one for which a certificate has no room.", slices, tenant, nothing,
			with(func(s *api.ResourceSlice) {
				s.Name = strings.Replace(s.Name, "-a-", "-"+strings.Repeat("a", 40)+"-", 1)
			}), true,
		},
		"Default": {
			"It is not granted all.", slices, tenant, nothing, with(func(s *api.ResourceSlice) { s.Spec.Class = "default" }), true,
		},
		"Provider": {
			"It asks no other.", slices, tenant, nothing, with(func(s *api.ResourceSlice) { s.Spec.ProviderClusterID = new("x") }), true,
		},
		"Destination": {
			"Nor sends it to one.", slices, tenant, nothing, with(func(s *api.ResourceSlice) { s.Labels["liqo.io/remoteID"] = "x" }), true,
		},
		"Of": {
			"Nor says so.", slices, tenant, own, with(func(s *api.ResourceSlice) { s.Labels["liqo.io/remote-cluster-id"] = "x" }), true,
		},
		"Amount":      {"It does not say how much.", slices, tenant, nothing, with(bounded), true},
		"AmountLater": {"Nor later.", slices, tenant, own, with(bounded), true},
		"CSR":         {"It signs nothing.", slices, tenant, nothing, with(func(s *api.ResourceSlice) { s.Spec.CSR = []byte("x") }), true},
		"CSRLater": {
			"Nor later.", slices, tenant, issued,
			with(func(s *api.ResourceSlice) { s.Finalizers = []string{"crdreplicator.liqo.io/resource"} }), true,
		},
		"Consumer": {
			"It asks for nobody else.", slices, tenant, own, with(func(s *api.ResourceSlice) { s.Spec.ConsumerClusterID = new("x") }), true,
		},
		"Held":         {"It keeps nothing from going.", slices, tenant, nothing, with(held), true},
		"HeldLater":    {"Nor later.", slices, tenant, own, with(held), true},
		"Owned":        {"Nor has it go.", slices, tenant, nothing, with(owned), true},
		"OwnedLater":   {"Nor later.", slices, tenant, own, with(owned), true},
		"LabelLater":   {"It disowns none.", slices, tenant, own, with(unlabelled), true},
		"AnnotatLater": {"Nor that.", slices, tenant, own, with(unannotated), true},
	}
	checkPolicy(t, agentName, "agent-slices.brokering.liqo.io", cases)
}

// ipOfPod returns an IP as Liqo makes it for a pod.
func ipOfPod() *api.IP {
	return &api.IP{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web",
			Labels:          map[string]string{"offloading.liqo.io/pod-name": "web", "offloading.liqo.io/pod-namespace": "shop"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "pod"}},
		},
		Spec: api.IPSpec{IP: "10.69.0.12"},
	}
}

// TestAgentPolicyDeletes holds what the agent may delete.
func TestAgentPolicyDeletes(t *testing.T) {
	const ips, pods = "ips", "pods"
	own, tenant := map[string]string{"kubernetes.io/metadata.name": "shop"}, map[string]string{"liqo.io/tenant-namespace": "true"}
	ip := func(by func(*api.IP)) map[string]any {
		all := ipOfPod()
		by(all)
		return asObject(t, all)
	}
	kubelet := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "liqo-tenant-b", Name: "vk", Labels: map[string]string{"offloading.liqo.io/component": "virtual-kubelet"},
	}}
	// What is labelled like an IP of Liqo is a pod all the same.
	marked := &corev1.Pod{ObjectMeta: ipOfPod().ObjectMeta}
	cases := map[string]written{
		"IP":      {"Liqo makes it again.", ips, own, ip(func(*api.IP) {}), nil, false},
		"Kubelet": {"As it does virtual kubelets.", pods, tenant, asObject(t, kubelet), nil, false},

		"People":       {"What people open stays.", ips, own, ip(func(ip *api.IP) { ip.Labels, ip.OwnerReferences = nil, nil }), nil, true},
		"PeopleTenant": {"Also in tenant namespaces.", ips, tenant, ip(func(ip *api.IP) { ip.Labels, ip.OwnerReferences = nil, nil }), nil, true},
		"Unlabelled":   {"An owner alone is not Liqo's mark.", ips, own, ip(func(ip *api.IP) { ip.Labels = nil }), nil, true},
		"Name": {"Nor is the label of another pod.", ips, own, ip(func(ip *api.IP) {
			ip.Labels["offloading.liqo.io/pod-name"] = "api"
		}), nil, true},
		"Namespace": {"Or of one elsewhere.", ips, own, ip(func(ip *api.IP) {
			ip.Labels["offloading.liqo.io/pod-namespace"] = "office"
		}), nil, true},
		"Ownerless": {"Labels alone are not, either.", ips, own, ip(func(ip *api.IP) { ip.OwnerReferences = nil }), nil, true},
		"OwnerKind": {"Its owner is a pod.", ips, own, ip(func(ip *api.IP) { ip.OwnerReferences[0].Kind = "Service" }), nil, true},
		"OwnerGroup": {"Not what is called so.", ips, own, ip(func(ip *api.IP) {
			ip.OwnerReferences[0].APIVersion = "example.com/v1"
		}), nil, true},
		"OwnerName":     {"That pod.", ips, own, ip(func(ip *api.IP) { ip.OwnerReferences[0].Name = "api" }), nil, true},
		"Pod":           {"Pods of people stay.", pods, own, asObject(t, marked), nil, true},
		"PodTenant":     {"Wherever they are.", pods, tenant, asObject(t, marked), nil, true},
		"KubeletsNames": {"And what is labelled as a virtual kubelet outside of tenant namespaces.", pods, own, asObject(t, kubelet), nil, true},
	}
	checkPolicy(t, agentName, "agent.brokering.liqo.io", cases)
	// It is asked about both.
	policy := installedPolicy(t, "agent", "agent.brokering.liqo.io")
	for _, of := range []struct{ group, resource string }{{"", pods}, {"ipam.liqo.io", ips}} {
		if !slices.ContainsFunc(policy.MatchConstraints.ResourceRules, func(r admissionregistrationv1.NamedRuleWithOperations) bool {
			return slices.Contains(r.APIGroups, of.group) && slices.Contains(r.Resources, of.resource) &&
				slices.Contains(r.Operations, admissionregistrationv1.Delete)
		}) {
			t.Errorf("the policy is not asked when %s are deleted", of.resource)
		}
	}
}

// TestBare holds that the agent's cache knows pods of DaemonSets, for which no node is kept, and drops what it does not read.
func TestBare(t *testing.T) {
	for kind, want := range map[string]bool{"DaemonSet": true, "ReplicaSet": false} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n", Hostname: "h"}}
		pod.Annotations = map[string]string{"x": "y"}
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Controller: new(true)}}
		bare(pod)
		if v1.IsOfDaemonSet(pod) != want || (len(pod.OwnerReferences) > 0) != want || pod.Annotations != nil || pod.Spec.Hostname != "" ||
			pod.Spec.NodeName != "n" {
			t.Errorf("of a pod of a %s stays %+v", kind, pod)
		}
	}
}
