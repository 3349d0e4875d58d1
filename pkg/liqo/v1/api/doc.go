// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package api has the kinds of Liqo 1.x that this project reads and writes, as types of its own: whoever is built with it is built with any
// version of Kubernetes' libraries, and with no line of Liqo.
//
// They follow Liqo v1.2.0 (liqo/apis@v1.2.0): the module test/liqo1 compares groups, versions, names, fields and labels with it. Fields
// that nobody here reads or sets are left out. So who writes an object that somebody else may have written sends a patch of what differs,
// made with [sigs.k8s.io/controller-runtime/pkg/client.MergeFrom] and the lock of the object's version, and never the whole object: what
// is left out here would be gone there. A patch replaces lists as a whole, so that what is in a list is complete here, but in
// FirewallConfigurations, where everybody has their own. Left out on purpose is what a cache of a broker must not hold: certificates and
// keys that Liqo has issued or was given for a cloud.
//
// The package says what is in an object, and not what it means: package v1 does.
//
// +kubebuilder:object:generate=true
package api
