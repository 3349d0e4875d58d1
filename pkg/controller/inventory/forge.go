// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

// The kinds of SIG Multicluster (KEP-4322 and KEP-5313), in the version that all releases of their definitions serve.
var (
	GroupVersion          = schema.GroupVersion{Group: "multicluster.x-k8s.io", Version: "v1alpha1"}
	ClusterProfileKind    = GroupVersion.WithKind("ClusterProfile")
	PlacementDecisionKind = GroupVersion.WithKind("PlacementDecision")
)

const (
	// Manager is what the objects name as their cluster manager and as their scheduler.
	Manager = "liqo-broker"

	managerLabel = "x-k8s.io/cluster-manager"
	keyLabel     = "multicluster.x-k8s.io/decision-key"
	indexLabel   = "multicluster.x-k8s.io/decision-index"

	// idProperty is the property that KEP-2149 gives the ID of a cluster. The others are the broker's own.
	idProperty = "cluster.clusterset.k8s.io"
	ownPrefix  = "brokering.liqo.io/"

	// maxProperty is the longest name of a property, and maxSlice how many clusters one object with a decision has.
	maxProperty = 253
	maxSlice    = 100
)

// Profile returns the ClusterProfile of a provider in a namespace, with its status. It goes with the Provider. A property whose name
// would be too long is left out.
func Profile(p *v1alpha1.Provider, namespace string) *unstructured.Unstructured {
	profile := object(ClusterProfileKind, namespace, p.Name, v1alpha1.OwnedBy("Provider", p))
	profile.SetLabels(map[string]string{managerLabel: Manager})
	spec := map[string]any{"clusterManager": map[string]any{"name": Manager}}
	if p.Status.ClusterName != "" {
		spec["displayName"] = p.Status.ClusterName
	}
	profile.Object["spec"] = spec
	profile.Object["status"] = map[string]any{"conditions": conditions(p.Status.Conditions), "properties": properties(p)}
	return profile
}

// conditions returns what others know as a healthy control plane, which is whether the provider can be reached, and the broker's
// own: whether pods can be placed there.
func conditions(all []metav1.Condition) []any {
	names := map[string]string{
		v1alpha1.ConditionReachable: "ControlPlaneHealthy", v1alpha1.ConditionReady: ownPrefix + v1alpha1.ConditionReady,
	}
	found := []any{}
	for _, c := range all {
		if name, ok := names[c.Type]; ok {
			found = append(found, map[string]any{
				"type": name, "status": string(c.Status), "reason": c.Reason, "message": c.Message,
				"lastTransitionTime": c.LastTransitionTime.UTC().Format(time.RFC3339),
			})
		}
	}
	return found
}

// properties returns the ID of the cluster, what it offers and what of that is free, and its KPIs, in order of name.
func properties(p *v1alpha1.Provider) []any {
	found := map[string]map[string]any{}
	add := func(name, value string, observed *metav1.Time) {
		if len(name) > maxProperty {
			return
		}
		found[name] = map[string]any{"name": name, "value": value}
		if observed != nil {
			found[name]["lastObservedTime"] = observed.UTC().Format(time.RFC3339)
		}
	}
	add(idProperty, p.Name, nil)
	for prefix, list := range map[string]corev1.ResourceList{"offered.": p.Status.Offered, "free.": p.Status.Free} {
		for resource, quantity := range list {
			add(ownPrefix+prefix+string(resource), quantity.String(), nil)
		}
	}
	for prefix, kpis := range map[string][]v1alpha1.KPI{"kpi.": p.Status.KPIs, "query.": p.Status.QueriedKPIs} {
		for i := range kpis {
			kpi := &kpis[i]
			add(ownPrefix+prefix+kpi.Name, strings.TrimSpace(string(kpi.Value)+" "+kpi.Unit), &kpi.MeasuredTime)
		}
	}
	sorted := make([]any, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		sorted = append(sorted, found[name])
	}
	return sorted
}

// Decisions returns what a decision chose, in as many PlacementDecisions as it takes, at least one. They go with it. A provider that
// cannot be used now, or that gets no new pods, is not in them.
func Decisions(d *v1alpha1.PlacementDecision, namespace string) []*unstructured.Unstructured {
	chosen := []any{}
	for i := range d.Chosen {
		c := &d.Chosen[i]
		if c.Barred || c.AwaySinceTime != nil {
			continue
		}
		// A reference has a place and a name, and nothing else: what the definition does not know, the API server refuses to apply.
		decision := map[string]any{"clusterProfileRef": map[string]any{"namespace": namespace, "name": c.ID}}
		if reason := why(d, c); reason != "" {
			decision["reason"] = reason
		}
		chosen = append(chosen, decision)
	}

	// All objects of one decision have its key, and say which part they are.
	key := Key(d.Name)
	parts := slices.Collect(slices.Chunk(chosen, maxSlice))
	if len(parts) == 0 {
		parts = [][]any{{}}
	}
	slicesOf := make([]*unstructured.Unstructured, len(parts))
	for i, part := range parts {
		index := strconv.Itoa(i)
		slice := object(PlacementDecisionKind, namespace, key+"-"+index, v1alpha1.OwnedBy("PlacementDecision", d))
		slice.SetLabels(map[string]string{managerLabel: Manager, keyLabel: key, indexLabel: index})
		slice.Object["decisions"], slice.Object["schedulerName"] = part, Manager
		slicesOf[i] = slice
	}
	return slicesOf
}

// why says why a provider was chosen, as far as the decision explains it.
func why(d *v1alpha1.PlacementDecision, c *v1alpha1.ChosenProvider) string {
	if c.Substitute {
		return "stands in for a provider that cannot be used"
	}
	for i := range d.Explained {
		if e := &d.Explained[i]; e.ID == c.ID && e.Score != "" {
			return fmt.Sprintf("policy %s: score %s", d.Policy, e.Score)
		}
	}
	return ""
}

// Key returns the value of the label that all parts of the decision with a name have: the name, or a hash where that is no value of a
// label.
func Key(name string) string {
	if len(validation.IsValidLabelValue(name)) == 0 {
		return name
	}
	hash := sha256.Sum256([]byte(name))
	return hex.EncodeToString(hash[:16])
}

// index returns which part of a decision an object is; false if it does not say so.
func index(o *unstructured.Unstructured) (int, bool) {
	n, err := strconv.Atoi(o.GetLabels()[indexLabel])
	return n, err == nil
}

// object returns an object with nothing but its metadata.
func object(kind schema.GroupVersionKind, namespace, name string, owners []metav1.OwnerReference) *unstructured.Unstructured {
	o := empty(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetOwnerReferences(owners)
	return o
}

// empty returns an object of a kind.
func empty(kind schema.GroupVersionKind) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(kind)
	return o
}
