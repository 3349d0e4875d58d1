// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart compares what Helm's own template engine makes of the charts below deploy with what kustomize makes of the manifests there,
// and what it makes of Liqo's chart with the values files of deploy/liqo with what the JSON patches of
// patches/liqo-install make of it.
//
// It is a module of its own because nothing else needs Helm.
package chart
