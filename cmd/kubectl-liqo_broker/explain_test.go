// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/test/golden"
)

// decision is what a policy has decided for rome.
func decision(p *v1alpha1.PlacementPolicy) *v1alpha1.PlacementDecision {
	yes, away := true, ago(2*time.Minute)
	d := &v1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Name: v1alpha1.DecisionName(p.Name, "33333333-dddd"),
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: v1alpha1.GroupVersion.String(), Kind: "PlacementPolicy", Name: p.Name, UID: p.UID, Controller: &yes},
		},
	}, Policy: p.Name}
	d.Consumer, d.ConsumerName = "33333333-dddd", "rome"
	d.Chosen = []v1alpha1.ChosenProvider{
		{ID: "11111111-aaaa", Name: "milan", Substitute: true}, {ID: "22222222-cccc", Name: "oslo\x1b[31m", AwaySinceTime: &away},
		{ID: "far", Barred: true},
	}
	d.Better = []v1alpha1.BetterProvider{{ID: "22222222-bbbb", SinceTime: ago(90 * time.Second)}}
	d.Explained = []v1alpha1.ExplainedProvider{
		{
			ID: "22222222-bbbb", Name: "turin", Score: "90.0",
			Terms: []v1alpha1.ExplainedTerm{{KPI: "priceCPU", Value: "0.01", Unit: "EUR/h", Normalized: "1.00", Weight: -5}},
		},
		{
			ID: "11111111-aaaa", Name: "milan", Chosen: true, Score: "0.0",
			Terms: []v1alpha1.ExplainedTerm{{KPI: "priceCPU", Unknown: "not measured", Normalized: "0.00", Weight: -5}},
		},
		{ID: "22222222-cccc", Name: "oslo\x1b[31m", Chosen: true, Excluded: "Not ready: virtual node liqo-oslo\x1b[0m"},
	}
	d.NotExplained = 1
	return d
}

// decidedFor is the workload with policies: one that rome's namespace wishes for, and one that has decided nothing.
func decidedFor() []client.Object {
	cheapest := policy("cheapest", condition(v1alpha1.ConditionDecided, metav1.ConditionTrue, v1alpha1.ReasonDecided,
		"Decided for 1 consumers"))
	cheapest.UID, cheapest.Spec.AppliesTo.Scope = types.UID("1"), v1alpha1.ScopeOnRequest
	stale := decision(cheapest)
	stale.Name, stale.OwnerReferences[0].UID = v1alpha1.DecisionName("cheapest", "44444444-eeee"), "of a policy that is gone"
	stale.Consumer = "44444444-eeee"
	idle := policy("idle")
	idle.Spec.AppliesTo = v1alpha1.AppliesTo{Scope: v1alpha1.ScopeConsumers, Consumers: []string{"44444444-eeee"}}
	wish := liqotest.ShadowPod("shop-rome-abc", "web-1", map[string]string{liqo.LabelPolicy: "cheapest"})
	milan := cluster.Identity{ID: "11111111-aaaa", Name: "milan"}
	rome := cluster.Identity{ID: "33333333-dddd", Name: "rome"}
	plain := liqotest.TwinNamespace("plain", rome)
	through := liqotest.TwinNamespace("x-"+v09.UniqueName(milan)+"-y", rome)
	through.Annotations["liqo.io/original-name"] = "through"
	offloading := liqotest.Offloading("plain", "11111111-aaaa", "22222222-bbbb")
	liqotest.PutInForce(plain, offloading)
	liqotest.Refuse(offloading, milan, now)
	waits := pod("plain", "waits", "", "")
	waits.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/4 nodes are available:\n4 Insufficient cpu."},
	}
	suspended := liqotest.TwinNamespace("suspended", cluster.Identity{ID: "44444444-eeee", Name: "paris"})
	return append(workload(), suspended, cheapest, decision(cheapest), stale, idle, wish, plain, through, offloading, waits)
}

func TestExplain(t *testing.T) {
	for name, line := range map[string]string{
		"explain_policy.txt":              "explain cheapest",
		"explain_policy_idle.txt":         "explain idle",
		"explain_namespace.txt":           "explain shop",
		"explain_namespace.yaml":          "explain shop-rome-abc -o yaml",
		"explain_namespace_plain.txt":     "explain plain",
		"explain_namespace_through.txt":   "explain through",
		"explain_namespace_suspended.txt": "explain suspended",
		"explain_pod.txt":                 "explain plain/waits",
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, err := newCLI(t, decidedFor()...).run(t, line)
			if err != nil || errOut != "" {
				t.Fatalf("%v; %s", err, errOut)
			}
			if strings.Contains(out, "\x1b") {
				t.Errorf("control characters in %q", out)
			}
			golden.Check(t, name, out)
		})
	}
	for _, name := range []string{"nothing", "plain/nothing", "nothing/waits", "not-a-twin", ""} {
		_, _, err := newCLI(t, decidedFor()...).runArgs(t, []string{"explain", name})
		if err == nil || !strings.Contains(err.Error(), "is called \""+name+"\"") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// heldOn is the workload with a pod that stays on a provider, which is wanted so or not.
func heldOn(scheduling v1alpha1.Scheduling) []client.Object {
	objects := decidedFor()
	for _, o := range objects {
		if p, is := o.(*v1alpha1.Provider); is && p.Name == "11111111-aaaa" {
			p.Spec.Scheduling = scheduling
			p.Status.Held = []v1alpha1.HeldPod{
				{Namespace: "other", Pod: "db-0", Reason: "of another namespace"}, {Namespace: "plain", Pod: "db-1", Reason: "of another pod"},
				{Namespace: "plain", Pod: "db-0", Reason: "it is the last ready replica of its workload"},
			}
		}
	}
	return append(objects, pod("plain", "db-0", "liqo-milan", "10.1.0.7"))
}

// TestExplainHeld asks about a pod that a drain leaves.
func TestExplainHeld(t *testing.T) {
	out, _, err := newCLI(t, heldOn(v1alpha1.SchedulingDrained)...).run(t, "explain plain/db-0")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "explain_pod_held.txt", out)
	out, _, err = newCLI(t, heldOn(v1alpha1.SchedulingActive)...).run(t, "explain plain/db-0")
	if err != nil || strings.Contains(out, "last ready") {
		t.Errorf("pods may stay again, and it says: %s, %v", out, err)
	}
}
