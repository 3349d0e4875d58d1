// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxChosen is how many providers a decision can hold. With names and IDs of 253 characters
// each takes less than 600 bytes, so that they leave a fifth of the 1.5 MiB that etcd takes
// to the explanation.
const MaxChosen = 2000

// PlacementDecision is what a PlacementPolicy has decided for one consumer, and why: the last
// good decision. The broker writes it, and restores it when somebody else does; it goes with
// its policy. Its name is DecisionName.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=bdec,categories={liqo,brokering}
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.policy`
// +kubebuilder:printcolumn:name="Consumer",type=string,JSONPath=`.consumerName`
// +kubebuilder:printcolumn:name="Providers",type=string,JSONPath=`.summary`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PlacementDecision struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is Kubernetes' own.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// policy is the name of the policy that decided.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Policy string `json:"policy"`

	ConsumerDecision `json:",inline"`
}

// ConsumerDecision is what was decided for one consumer.
type ConsumerDecision struct {
	// consumer is the cluster ID of the consumer.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Consumer string `json:"consumer"`
	// consumerName is its name for people.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ConsumerName string `json:"consumerName,omitempty"`
	// summary names some of the chosen providers, and says how many more there are.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Summary string `json:"summary,omitempty"`
	// chosen are the providers on which the pods of the consumer are placed, in order of their
	// IDs. Of more than fit, the best are there.
	// +kubebuilder:validation:MaxItems=2000
	// +listType=atomic
	// +optional
	Chosen []ChosenProvider `json:"chosen,omitempty"`
	// better are providers that are better by the margin of steady than a chosen one, and
	// take its place when that has lasted.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Better []BetterProvider `json:"better,omitempty"`
	// scaling is where the KPI of the policy's scaling stands.
	// +optional
	Scaling *ScalingStatus `json:"scaling,omitempty"`
	// explained are the providers that come first, and some that do not come into question.
	// Only some consumers have an explanation.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Explained []ExplainedProvider `json:"explained,omitempty"`
	// notExplained is the number of further providers.
	// +optional
	NotExplained int32 `json:"notExplained,omitempty"`
}

// ChosenProvider is a provider that was chosen.
type ChosenProvider struct {
	// id is its cluster ID.
	// +kubebuilder:validation:MaxLength=253
	// +required
	ID string `json:"id"`
	// name is its name for people.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
	// awaySinceTime is since when it cannot be used. It keeps its place for the duration
	// of steady, and has a substitute.
	// +optional
	AwaySinceTime *metav1.Time `json:"awaySinceTime,omitempty"`
	// substitute is true while the provider stands in for one that cannot be used, and goes
	// when that is back.
	// +optional
	Substitute bool `json:"substitute,omitempty"`
	// barred is true while the policy cannot decide and may exclude the provider: what
	// runs there stays, and no new pod goes there.
	// +optional
	Barred bool `json:"barred,omitempty"`
}

// BetterProvider is a provider that is better than a chosen one.
type BetterProvider struct {
	// id is its cluster ID.
	// +kubebuilder:validation:MaxLength=253
	// +required
	ID string `json:"id"`
	// sinceTime is since when.
	// +required
	SinceTime metav1.Time `json:"sinceTime"`
}

// ExplainedProvider says what became of a provider.
type ExplainedProvider struct {
	// id is its cluster ID.
	// +kubebuilder:validation:MaxLength=253
	// +required
	ID string `json:"id"`
	// name is its name for people.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
	// chosen reports whether it was chosen.
	// +required
	Chosen bool `json:"chosen"`
	// excluded is why it does not come into question.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Excluded string `json:"excluded,omitempty"`
	// score is how good it is; 100 is the best in everything.
	// +optional
	Score Number `json:"score,omitempty"`
	// terms are what the score is made of.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=kpi
	// +optional
	Terms []ExplainedTerm `json:"terms,omitempty"`
}

// ExplainedTerm is what one KPI adds to a score.
type ExplainedTerm struct {
	// kpi is the name of the KPI.
	// +kubebuilder:validation:MaxLength=253
	// +required
	KPI string `json:"kpi"`
	// value is its value, in the unit.
	// +optional
	Value Number `json:"value,omitempty"`
	// unit is that of the value.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Unit string `json:"unit,omitempty"`
	// unknown is why the provider has no value that counts.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Unknown string `json:"unknown,omitempty"`
	// normalized is 1 for the best and 0 for the worst.
	// +required
	Normalized Number `json:"normalized"`
	// weight is how much it counts.
	// +required
	Weight int32 `json:"weight"`
}

// IsOf reports whether the object is what this policy, and not an earlier one of its name, has
// decided for the consumer with this cluster ID.
func (d *PlacementDecision) IsOf(policy *PlacementPolicy, consumer string) bool {
	return d.Name == DecisionName(policy.Name, consumer) && d.Policy == policy.Name && d.Consumer == consumer &&
		metav1.IsControlledBy(d, policy)
}

// The longest name of an object, and what a hash takes of it with the point before it.
const (
	maxObjectName = 253
	hashBytes     = 16
	hashSuffix    = 1 + 2*hashBytes
)

// DecisionName returns the name of the PlacementDecision of a policy for a consumer, given the
// names of both objects: POLICY.CONSUMER where that is unambiguous and short enough. Else, it
// is as much of that as there is room for, and a hash. Different pairs have different names.
func DecisionName(policy, consumer string) string {
	plain := policy + "." + consumer
	if len(plain) <= maxObjectName && !strings.Contains(policy, ".") && !endsInHash(consumer) {
		return plain
	}
	hash := sha256.Sum256([]byte(policy + "/" + consumer))
	plain = strings.TrimRight(plain[:min(len(plain), maxObjectName-hashSuffix)], ".-")
	return plain + "." + hex.EncodeToString(hash[:hashBytes])
}

// endsInHash reports whether the last part of a name looks like the hash of DecisionName.
func endsInHash(name string) bool {
	last := name[strings.LastIndex(name, ".")+1:]
	_, err := hex.DecodeString(last)
	return err == nil && len(last) == 2*hashBytes
}

// PlacementDecisionList is a list of PlacementDecisions.
//
// +kubebuilder:object:root=true
type PlacementDecisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PlacementDecision `json:"items"`
}
