// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

// federation is as large as a benchmark wants it. Each consumer has equally many
// namespaces, and its own policy.
type federation struct {
	providers, consumers, namespaces, pods int
	// chosen is how many providers a policy chooses; zero if there are no policies.
	chosen int
	// window is for how long is looked at what a change causes; 20 seconds if zero.
	window time.Duration
}

// large is the federation that the broker is to hold.
var large = federation{providers: 1000, consumers: 20, namespaces: 1000, pods: 5, chosen: 3}

// identity returns the nth cluster of a kind, with an ID as Liqo makes it.
func identity(kind string, n int) cluster.Identity {
	return cluster.Identity{ID: cluster.ID(fmt.Sprintf("%08x-1f2e-4d3c-8b5a-%012x", kind[0], n)), Name: fmt.Sprintf("%s-%04d", kind, n)}
}

func (f federation) provider(n int) cluster.Identity { return identity("provider", n) }

func (f federation) consumer(n int) cluster.Identity { return identity("consumer", n%f.consumers) }

// namespace is the name of the twin of a namespace.
func (f federation) namespace(n int) string {
	return fmt.Sprintf("shop-%04d-%s-c0ffee", n, f.consumer(n).Name)
}

// region is where a provider is; each consumer wishes another one.
func (f federation) region(n int) string { return fmt.Sprintf("region-%d", n%f.consumers) }

// selected returns the providers of a namespace.
func (f federation) selected(n int) []cluster.Identity {
	var selected []cluster.Identity
	for p := range f.providers {
		if f.chosen == 0 || len(selected) < f.chosen && f.region(p) == f.region(n) {
			selected = append(selected, f.provider(p))
		}
	}
	return selected
}

func (f federation) offer(n int) *v09.ResourceOffer {
	o := liqotest.Offer(f.provider(n), corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods: resource.MustParse("440"),
	})
	o.Spec.Prices = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(fmt.Sprint(1 + n%97)), corev1.ResourceMemory: resource.MustParse("1"),
	}
	for i := range 20 {
		o.Spec.Images = append(o.Spec.Images, corev1.ContainerImage{
			Names: []string{fmt.Sprintf("reader.example.org/library/image-%d:v1.2.3", i)}, SizeBytes: 1 << 27,
		})
	}
	return o
}

func (f federation) node(n int) *corev1.Node {
	node := liqotest.VirtualNode(f.provider(n), true)
	node.Labels["topology.kubernetes.io/region"] = f.region(n)
	node.Annotations = map[string]string{"description": "What a network plugin may write with every heartbeat, at some length"}
	return node
}

func (f federation) tunnel(n int) *v09.TunnelEndpoint {
	tunnel := liqotest.Tunnel(f.provider(n), fmt.Sprintf("%dms", 5+n%89), time.Now())
	tunnel.Spec.BackendConfig = map[string]string{"port": "5871"}
	return tunnel
}

func (f federation) policy(n int) *v1alpha1.PlacementPolicy {
	p := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "of-" + f.consumer(n).Name}}
	p.Spec.AppliesTo = v1alpha1.AppliesTo{Scope: v1alpha1.ScopeConsumers, Consumers: []string{string(f.consumer(n).ID)}}
	p.Spec.Filters = []v1alpha1.Filter{v1alpha1.Filter(fmt.Sprintf(`labels["topology.kubernetes.io/region"] == %q`, f.region(n)))}
	p.Spec.Weights = map[string]v1alpha1.Weight{"priceCPU": -10, "roundTripTime": -5}
	p.Spec.MaxProviders = new(int32(f.chosen))
	return p
}

func (f federation) twin(n int) *corev1.Namespace {
	return liqotest.TwinNamespace(f.namespace(n), f.consumer(n))
}

func (f federation) shadow(n, pod int) *v09.ShadowPod {
	shadow := liqotest.ShadowPod(f.namespace(n), fmt.Sprintf("web-5d4f8c7b9-%05d", pod), map[string]string{
		"app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "shop", "pod-template-hash": "5d4f8c7b9",
	})
	shadow.Spec.Pod = f.spec()
	return shadow
}

// spec is that of a pod of two containers.
func (f federation) spec() corev1.PodSpec {
	container := func(name string) corev1.Container {
		return corev1.Container{
			Name: name, Image: "reader.example.org/shop/" + name + ":v1.2.3",
			Env: []corev1.EnvVar{{Name: "A", Value: "one"}, {Name: "B", Value: "two"}, {Name: "C", Value: "three"}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
			},
		}
	}
	return corev1.PodSpec{Containers: []corev1.Container{container("web"), container("log")}}
}

// pod returns the pod that Liqo makes, on one of the selected providers.
func (f federation) pod(n, pod int, selected []cluster.Identity) *corev1.Pod {
	ids := make([]cluster.ID, len(selected))
	for i, id := range selected {
		ids[i] = id.ID
	}
	p := liqotest.Pod(f.shadow(n, pod), "liqo-"+selected[pod%len(selected)].Name, ids...)
	p.UID = ""
	requirements := p.Spec
	p.Spec = f.spec()
	p.Spec.NodeName, p.Spec.Affinity, p.Spec.Tolerations = requirements.NodeName, requirements.Affinity, requirements.Tolerations
	return p
}

// offloading returns what the broker makes for a namespace, with what Liqo says of it.
func (f federation) offloading(n int, selected []cluster.Identity) *v09.NamespaceOffloading {
	ids := make([]cluster.ID, len(selected))
	for i, id := range selected {
		ids[i] = id.ID
	}
	o := liqotest.Offloading(f.namespace(n), ids...)
	o.Labels = map[string]string{"app.kubernetes.io/managed-by": "liqo-broker"}
	putInForce(f.twin(n), o, selected)
	return o
}

// putInForce does what Liqo does with an offloading.
func putInForce(ns *corev1.Namespace, o *v09.NamespaceOffloading, selected []cluster.Identity) {
	liqotest.PutInForce(ns, o, selected...)
	for _, conditions := range o.Status.RemoteNamespacesConditions {
		for i := range conditions {
			conditions[i].Reason, conditions[i].Message = "RemoteNamespaceCreated", "Namespace correctly offloaded on this cluster"
			conditions[i].LastTransitionTime = metav1.Now()
		}
	}
}

// TestFederation checks that the federation is what it says.
func TestFederation(t *testing.T) {
	all := federation{providers: 7, consumers: 2}
	if got := len(all.selected(1)); got != 7 {
		t.Errorf("without a policy %d of 7 providers are selected", got)
	}
	some := federation{providers: 7, consumers: 2, chosen: 2}
	for _, p := range some.selected(1) {
		if p != some.provider(1) && p != some.provider(3) {
			t.Errorf("selected %s, which is elsewhere", p)
		}
	}
}
