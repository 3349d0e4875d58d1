// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

//go:generate go tool -modfile=../../../build/tools/go.mod controller-gen object:headerFile=../../../build/tools/header.txt paths=. crd:crdVersions=v1 output:crd:dir=../../../deploy/crds
