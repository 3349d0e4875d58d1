// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// Mapping is how Liqo names a namespace on the clusters to which it is offloaded.
type Mapping string

// The mappings that Liqo has in all its versions.
const (
	// MappingDefault appends what Liqo calls the cluster from which it is offloaded.
	MappingDefault Mapping = "DefaultName"
	// MappingSame keeps the name.
	MappingSame Mapping = "EnforceSameName"
)

// ParseMapping returns the mapping with a name that Liqo knows.
func ParseMapping(name string) (Mapping, error) {
	known := []Mapping{MappingDefault, MappingSame}
	if m := Mapping(name); slices.Contains(known, m) {
		return m, nil
	}
	return "", fmt.Errorf("unknown namespace mapping strategy %q: use one of %v", name, known)
}

// FittingMapping returns the preferred mapping if the name that it gives to a namespace is a legal one: MappingDefault appends what Liqo
// calls the cluster. A name that is too long with that fits as it is.
func FittingMapping(preferred Mapping, namespace, called string) Mapping {
	if len(namespace)+len("-")+len(called) > validation.DNS1123LabelMaxLength {
		return MappingSame
	}
	return preferred
}

// Offloading is what a NamespaceOffloading says: to which clusters the pods of its namespace go.
type Offloading struct {
	// Namespace is whose pods these are.
	Namespace string
	// Object is what says so, to be written or told of.
	Object client.Object
	// Managed tells that the broker keeps it, and nobody else.
	Managed bool
	// Leaves tells that pods may run in other clusters, and Remote that all of them are to.
	Leaves, Remote bool
	// Selected are the clusters that one of the broker selects, and Placing those of them on which new pods are placed, both in order. New
	// pods wait if the latter are none.
	Selected, Placing []cluster.ID
	// RemoteName is how Liqo calls the namespace there; empty as long as it has not taken note of it.
	RemoteName string
	// Deleted tells that it is being deleted, and Seen that Liqo has seen what it says now.
	Deleted, Seen bool
}

// InForce reports whether Liqo's webhook applies an offloading to the pods that are made in its namespace: Liqo has seen what it says, and
// has opened the namespace.
func (o *Offloading) InForce(ns *corev1.Namespace) bool { return Open(ns) && o.Seen && !o.Deleted }

// Reception is what became of an offloaded namespace on one cluster.
type Reception struct {
	// Present tells that it exists and is wanted, so that pods can start there.
	Present bool
	// Refused tells that the cluster cannot make it, mostly because it has another one of that name, and Since when; zero if it is not.
	Refused bool
	Since   time.Time
}

// SelectedBy returns the clusters that the selector of an offloading of the broker selects, in order.
func SelectedBy(selector *corev1.NodeSelector) []cluster.ID {
	var selected []cluster.ID
	for id := range namedBy(selector) {
		selected = append(selected, id)
	}
	slices.Sort(selected)
	return slices.Compact(selected)
}

// Selects reports whether the selector of an offloading of the broker selects a cluster.
func Selects(selector *corev1.NodeSelector, id cluster.ID) bool {
	for named := range namedBy(selector) {
		if named == id {
			return true
		}
	}
	return false
}

// namedBy yields the clusters that a selector names.
func namedBy(selector *corev1.NodeSelector) func(yield func(cluster.ID) bool) {
	return func(yield func(cluster.ID) bool) {
		for _, term := range selector.NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				if e.Key != LabelRemoteClusterID || e.Operator != corev1.NodeSelectorOpIn {
					continue
				}
				for _, v := range e.Values {
					if !yield(cluster.ID(v)) {
						return
					}
				}
			}
		}
	}
}

// NotePlacing notes on a NamespaceOffloading on which of the selected clusters new pods are placed.
func NotePlacing(o metav1.Object, selected, placing []cluster.ID) {
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	if delete(annotations, AnnotationPlacing); !slices.Equal(placing, selected) {
		ids := make([]string, len(placing))
		for i, id := range placing {
			ids[i] = string(id)
		}
		annotations[AnnotationPlacing] = strings.Join(ids, ",")
	}
	o.SetAnnotations(annotations)
}

// NotedPlacing returns on which of the selected clusters new pods are placed, as NotePlacing has noted; on all of them if it has not.
func NotedPlacing(o metav1.Object, selected []cluster.ID) []cluster.ID {
	placing, set := o.GetAnnotations()[AnnotationPlacing]
	if !set {
		return selected
	}
	ids := strings.Split(placing, ",")
	return slices.DeleteFunc(slices.Clone(selected), func(id cluster.ID) bool { return !slices.Contains(ids, string(id)) })
}
