// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connectorv1alpha1 holds the Kubernetes objects in which a connector keeps its state, in the API group brokering.liqo.io: the
// Registries that it uses, the Offers that its cluster makes, the Purchases and Sales that are its contracts, and CapacityRequests,
// for which it looks for an offer itself. They are objects because people write what they want into them, watch what becomes of it, and say
// who may, by what Kubernetes has for that; and because a connector that is killed goes on from what was written. What has been sold in
// all stands in one SalesLedger, and what the registries have shown in CatalogPages: people write neither.
//
// The package does not know how contracts are negotiated, nor how clusters peer. It is beside package v1alpha1 because a cluster that
// trades need not be a broker.
//
// +kubebuilder:object:generate=true
// +groupName=brokering.liqo.io
// +versionName=v1alpha1
package connectorv1alpha1
