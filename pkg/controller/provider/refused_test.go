// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/watch"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// TestRefused has provider A, which offers 2 cores, and provider B. One of them says of
// itself what is true of the other one, or what nobody can mean.
func TestRefused(t *testing.T) {
	offer := func(in cluster.Identity, by cluster.ID, cpu, node string) *v09.ResourceOffer {
		o := liqotest.Offer(in, amount("1"))
		o.Name, o.Spec.ClusterID, o.Spec.NodeName = "more", string(by), node
		o.Spec.ResourceQuota.Hard[corev1.ResourceCPU] = resource.MustParse(cpu)
		return o
	}
	node := func(name string, says cluster.Identity) *corev1.Node {
		n := liqotest.VirtualNode(says, true)
		n.Name = name
		return n
	}
	good, up := liqotest.Offer(providerA, amount("2")), liqotest.VirtualNode(providerA, true)
	pod := liqotest.Pod(liqotest.ShadowPod("web-consumer", "web", nil), "liqo-provider-b")
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: amount("1")}}}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		cpu     string
		why     string
		message string
		used    string
		refused string // What the ObjectsRefused condition says; empty if there is none.
	}{
		"Negative": {
			reason:  "An offer of B in the name of A does A no harm.",
			objects: []client.Object{good, up, offer(providerB, providerA.ID, "-1", "liqo-provider-a")}, cpu: "2", why: v1alpha1.ReasonOffering,
		},
		"Inflated": {
			reason:  "Nor is it of use to anybody.",
			objects: []client.Object{good, up, offer(providerB, providerA.ID, "1000", "liqo-provider-a")}, cpu: "2", why: v1alpha1.ReasonOffering,
		},
		"OwnBadOffer": {
			reason:  "A bad offer drops itself, and not the other offers of the cluster.",
			objects: []client.Object{good, up, offer(providerA, providerA.ID, "-1", "more")}, cpu: "2", why: v1alpha1.ReasonOffering,
			refused: "InvalidOffer offer more: invalid offer: cpu is negative (-1)",
		},
		"InTheNameOfB": {
			reason:  "So does one that is made in another cluster's name.",
			objects: []client.Object{good, up, offer(providerA, providerB.ID, "1", "more"), node("more", providerA)}, cpu: "2",
			why: v1alpha1.ReasonOffering, refused: `InvalidOffer offer more: spec.clusterId is "id-b", in the tenant namespace of "id-a"`,
		},
		"OnlyBad": {
			reason:  "Without a good offer nothing counts.",
			objects: []client.Object{offer(providerA, providerB.ID, "1", "liqo-provider-a"), up}, why: v1alpha1.ReasonInvalidOffer,
			message: `offer more: spec.clusterId is "id-b"`, refused: `InvalidOffer offer more: spec.clusterId is "id-b"`,
		},
		"NodeSaysB": {
			reason:  "A node of A that says it is B's is of use to neither.",
			objects: []client.Object{good, node("liqo-provider-a", providerB)}, why: v1alpha1.ReasonNodeRefused,
			message: `node liqo-provider-a: it says that it is of cluster "id-b"`, refused: `NodeRefused node liqo-provider-a: it says`,
		},
		"OneNodeSaysB": {
			reason:  "It does the other nodes no harm.",
			objects: []client.Object{good, up, offer(providerA, providerA.ID, "1", "more"), node("more", providerB)}, cpu: "2",
			why: v1alpha1.ReasonOffering, refused: `NodeRefused node more: it says that it is of cluster "id-b"`,
		},
		"NodeOfB": {
			reason:  "A node of B that says it is A's does A no harm, and what runs there is not A's.",
			objects: []client.Object{good, up, liqotest.Offer(providerB, amount("8")), node("liqo-provider-b", providerA), pod}, cpu: "2",
			why: v1alpha1.ReasonOffering, used: "0",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := append(slices.Clone(tc.objects), liqotest.ForeignCluster(providerA, true, false),
				liqotest.ForeignCluster(providerB, true, false), newProvider(active))
			c := snapshottest.NewClient(t, interceptor.Funcs{}, objects...)
			if err := settle(t, c); err != nil {
				t.Fatalf("%s\nReconcile(): %v", tc.reason, err)
			}
			status := get(t, c).Status
			ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
			if status.Offered.Cpu().String() != stringOr(tc.cpu, "0") || ready.Reason != tc.why || !strings.Contains(ready.Message, tc.message) {
				t.Errorf("%s\noffered %s cpu, Ready %s %q; want %s, %s %q",
					tc.reason, status.Offered.Cpu(), ready.Reason, ready.Message, stringOr(tc.cpu, "0"), tc.why, tc.message)
			}
			if tc.used != "" && status.Used.Cpu().String() != tc.used {
				t.Errorf("%s\nused %s cpu, want %s", tc.reason, status.Used.Cpu(), tc.used)
			}
			got := ""
			if refused := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionObjectsRefused); refused != nil {
				got = refused.Reason + " " + refused.Message
			}
			if !strings.HasPrefix(got, tc.refused) || tc.refused == "" && got != "" {
				t.Errorf("%s\nObjectsRefused: %q, want %q", tc.reason, got, tc.refused)
			}
		})
	}
}

func stringOr(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// TestRefusalPasses takes back what was refused.
func TestRefusalPasses(t *testing.T) {
	bad := liqotest.Offer(providerA, amount("-1"))
	c := snapshottest.NewClient(t, interceptor.Funcs{}, liqotest.ForeignCluster(providerA, true, false), newProvider(active), bad)
	for _, want := range []bool{true, false} {
		if err := settle(t, c); err != nil {
			t.Fatal(err)
		}
		if got := meta.IsStatusConditionTrue(get(t, c).Status.Conditions, v1alpha1.ConditionObjectsRefused); got != want {
			t.Errorf("ObjectsRefused is %v, want %v", got, want)
		}
		if !want {
			return
		}
		if err := c.Delete(t.Context(), bad); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTaintOfStrangers closes nodes that say they are of a provider that has not offered
// them, so that no pod that wants the provider comes there.
func TestTaintOfStrangers(t *testing.T) {
	stranger := liqotest.VirtualNode(providerA, true)
	stranger.Name = "liqo-provider-b"
	c := snapshottest.NewClient(t, interceptor.Funcs{}, liqotest.ForeignCluster(providerA, true, false),
		liqotest.ForeignCluster(providerB, true, false),
		newProvider(active), liqotest.Offer(providerA, amount("2")), liqotest.Offer(providerB, amount("2")),
		liqotest.VirtualNode(providerA, true), stranger)
	if err := settle(t, c); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"liqo-provider-a": false, "liqo-provider-b": true} {
		var node corev1.Node
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, &node); err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == liqo.TaintCordoned }); got != want {
			t.Errorf("%s is closed: %v, want %v", name, got, want)
		}
	}
}

// TestStrangerHidesNoLoss has a provider that is lost, and a ready node of another one that
// says it is the provider's.
func TestStrangerHidesNoLoss(t *testing.T) {
	stranger, down := liqotest.VirtualNode(providerA, true), liqotest.VirtualNode(providerA, false)
	stranger.Name, down.Status.Conditions[0].LastTransitionTime = "liqo-provider-b", metav1.Now()
	c := snapshottest.NewClient(t, interceptor.Funcs{}, liqotest.ForeignCluster(providerA, true, false),
		liqotest.ForeignCluster(providerB, true, false),
		newProvider(active), liqotest.Offer(providerA, amount("2")), liqotest.Offer(providerB, amount("2")), down, stranger)
	if err := settle(t, c); err != nil {
		t.Fatal(err)
	}
	if get(t, c).UnreachableSince() == nil {
		t.Error("the provider is not lost")
	}
}

// TestClusterNameTaken has two clusters that Liqo calls by one unique name, of which it has
// 24 bits of a hash of the ID.
func TestClusterNameTaken(t *testing.T) {
	first, second := cluster.Identity{ID: "id-1363", Name: "twin"}, cluster.Identity{ID: "id-1561", Name: "twin"}
	peer := func(id cluster.Identity, at time.Time) *v09.ForeignCluster {
		fc := liqotest.ForeignCluster(id, true, false)
		fc.Name, fc.CreationTimestamp = string(id.ID), metav1.NewTime(at)
		fc.Status.TenantNamespace.Local = "tenant-" + string(id.ID)
		return fc
	}
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	older, younger := peer(first, noon), peer(second, noon.Add(time.Second))
	offer := liqotest.Offer(second, amount("2"))
	offer.Namespace = v09.TenantNamespace(younger)
	c := snapshottest.NewClient(t, interceptor.Funcs{}, older, younger, offer, liqotest.VirtualNode(second, true))
	r := New(Config{Client: c, Reader: snapshottest.Reader(c, ""), Clock: clock.RealClock{}, Plans: plans()})
	reason := func(id cluster.Identity) string {
		t.Helper()
		request := watch.Provider(id.ID)[0]
		for range 2 {
			if _, err := r.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
		p := &v1alpha1.Provider{}
		if err := c.Get(t.Context(), request.NamespacedName, p); err != nil {
			t.Fatal(err)
		}
		return meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady).Reason
	}
	if got := reason(first); got != v1alpha1.ReasonNoOffer {
		t.Errorf("the older one: %s", got)
	}
	if got := reason(second); got != v1alpha1.ReasonClusterNameTaken {
		t.Errorf("the younger one: %s", got)
	}
	if err := c.Delete(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	if got := reason(second); got != v1alpha1.ReasonOffering {
		t.Errorf("the younger one, when the other one is gone: %s", got)
	}
}
