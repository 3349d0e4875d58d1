// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// FailoverMode says whether the pods on a provider that is out of reach are replaced.
// +kubebuilder:validation:Enum=Never;AfterGrace;Immediate
type FailoverMode string

// The modes of failover.
const (
	FailoverNever      FailoverMode = "Never"
	FailoverAfterGrace FailoverMode = "AfterGrace"
	FailoverImmediate  FailoverMode = "Immediate"
)

// StatefulRule says what becomes of pods of which no second one may run.
// +kubebuilder:validation:Enum=Stay;Replace
type StatefulRule string

// The rules for the pods of StatefulSets.
const (
	StatefulStay    StatefulRule = "Stay"
	StatefulReplace StatefulRule = "Replace"
)

// Failover says what becomes of the pods on a provider that is out of reach.
type Failover struct {
	// mode says whether other chosen providers get the pods: Never, AfterGrace, or
	// Immediate. If the provider returns before, everything stays. A provider that is
	// drained is left after the grace, also with Never.
	// +kubebuilder:default=AfterGrace
	// +optional
	Mode FailoverMode `json:"mode,omitempty"`
	// grace is for how long the provider is out of reach before its pods are replaced:
	// a duration such as 30s.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration such as 30s, and must not be negative"
	// +optional
	Grace *metav1.Duration `json:"grace,omitempty"`
	// statefulSets says what becomes of the pods of StatefulSets, of which each may run
	// only once: Stay, because it may still run where it is, or Replace.
	// +kubebuilder:default=Stay
	// +optional
	StatefulSets StatefulRule `json:"statefulSets,omitempty"`
}

// SingletonRule says whether a workload of one copy is moved.
// +kubebuilder:validation:Enum=Never;WithGap
type SingletonRule string

// The rules for workloads of one copy.
const (
	SingletonsNever   SingletonRule = "Never"
	SingletonsWithGap SingletonRule = "WithGap"
)
