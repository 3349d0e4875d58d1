// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the Kubernetes objects in which the broker keeps its
// state, in the API group brokering.liqo.io: a Provider for each cluster that
// shares resources with the broker, a Consumer for each cluster that uses it,
// PlacementPolicies that choose providers and ProviderQueries that measure them.
// Those say what people want (spec) and what the broker sees (status). What a
// policy has decided for a consumer is a PlacementDecision, and what the broker
// remembers of a provider a ProviderHistory: people write neither.
//
// The package knows nothing of how the broker decides, nor of Liqo's own types.
//
// +kubebuilder:object:generate=true
// +groupName=brokering.liqo.io
package v1alpha1
