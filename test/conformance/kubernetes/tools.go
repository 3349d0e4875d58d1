// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package kubernetes names the programs of Kubernetes' conformance tests, so that
// go.mod knows what they are built from.
package kubernetes

import (
	_ "github.com/onsi/ginkgo/v2/ginkgo"
	_ "k8s.io/kubernetes/test/e2e"
	_ "k8s.io/kubernetes/test/images/agnhost"
	_ "k8s.io/kubernetes/test/images/nonewprivs"
)
