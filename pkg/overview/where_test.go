// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

// TestFollowed holds that a namespace follows what a pod in it wishes, what it is bound to, and else the default.
func TestFollowed(t *testing.T) {
	rome := cluster.Identity{ID: "rome", Name: "rome"}
	twin := func(name string) corev1.Namespace {
		ns := liqotest.TwinNamespace(name, rome)
		ns.Annotations["liqo.io/original-name"] = "original-" + name
		return *ns
	}
	wishing := func(namespace, policy string) corev1.Pod {
		return *liqotest.Pod(liqotest.ShadowPod(namespace, "a", map[string]string{liqo.LabelPolicy: policy}), "")
	}
	policy := func(name string, to v1alpha1.AppliesTo) v1alpha1.PlacementPolicy {
		p := v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.Spec.AppliesTo = to
		return p
	}
	own := wishing("own", "fast")
	own.Labels = map[string]string{liqo.LabelPolicy: "fast"} // Somebody made it on the broker: it is no consumer's.
	o := OnBroker{
		Namespaces: []corev1.Namespace{
			twin("plain"), twin("bound"), twin("wishing"), twin("vain"), twin("own"), {ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}},
		},
		Pods: []corev1.Pod{wishing("wishing", "fast"), wishing("vain", "none"), wishing("kube-system", "fast"), own},
	}
	usual := policy("usual", v1alpha1.AppliesTo{Scope: v1alpha1.ScopeDefault})
	fast := policy("fast", v1alpha1.AppliesTo{Scope: v1alpha1.ScopeOnRequest})
	named := policy("named", v1alpha1.AppliesTo{
		Scope: v1alpha1.ScopeNamespaces, Namespaces: &v1alpha1.NamespaceBinding{Names: []string{"original-bound"}},
	})
	for name, tc := range map[string]struct {
		policies []v1alpha1.PlacementPolicy
		want     map[string]string
	}{
		"none":       {want: map[string]string{}},
		"no default": {[]v1alpha1.PlacementPolicy{fast, named}, map[string]string{"wishing": "fast", "bound": "named"}},
		"all": {[]v1alpha1.PlacementPolicy{usual, fast, named}, map[string]string{
			"plain": "usual", "bound": "named", "wishing": "fast", "vain": "usual", "own": "usual",
		}},
	} {
		if diff := cmp.Diff(tc.want, o.Followed(tc.policies)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestWhys holds that the scheduler says why a pod waits, and a provider that is to be drained why one stays.
func TestWhys(t *testing.T) {
	provider := func(scheduling v1alpha1.Scheduling, pod string) v1alpha1.Provider {
		p := v1alpha1.Provider{}
		p.Spec.Scheduling = scheduling
		p.Status.Held = []v1alpha1.HeldPod{{Namespace: "shop", Pod: pod, Reason: "it is the only copy"}}
		return p
	}
	why := (&OnBroker{Providers: []v1alpha1.Provider{
		provider(v1alpha1.SchedulingDrained, "held"), provider(v1alpha1.SchedulingActive, "free"),
	}}).Whys()
	pod := func(status corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse, Message: "not ready"},
			{Type: corev1.PodScheduled, Status: status, Message: "0/3 nodes are available"},
		}}}
	}
	for name, tc := range map[string]struct {
		placed Placed
		want   string
	}{
		"it waits": {Placed{Object: pod(corev1.ConditionFalse)}, "0/3 nodes are available"},
		"it runs":  {Placed{Object: pod(corev1.ConditionTrue)}, ""},
		"it is held": {
			Placed{Twin: "shop", Pod: "held", Object: pod(corev1.ConditionTrue)},
			"The provider is to be drained, and the pod stays: it is the only copy",
		},
		"its provider is active":            {Placed{Twin: "shop", Pod: "free", Object: pod(corev1.ConditionTrue)}, ""},
		"one of its name elsewhere is held": {Placed{Twin: "pay", Pod: "held", Object: pod(corev1.ConditionTrue)}, ""},
	} {
		if got := why(&tc.placed); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestAtHomeIsBounded holds that of a namespace with thousands of pods at home not all are named.
func TestAtHomeIsBounded(t *testing.T) {
	var pods []corev1.Pod
	for i := range 5000 {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("job-%04d", i)}}
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "job", Controller: new(true)}}
		pods = append(pods, p)
	}
	found := AtHome(nil, []liqo.Offloading{{Namespace: "shop", Remote: true}}, nil, pods)
	const rest = "job-0019; then the same for 4980 more"
	if len(found) != 1 || len(found[0].Do) > 1<<10 || !strings.HasSuffix(found[0].Do, rest) {
		t.Errorf("to do is %+v", found)
	}
}
