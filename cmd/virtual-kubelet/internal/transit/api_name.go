// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// apiServerFullName is the full name of [apiServerName] in the domain that clusters have
// unless somebody chooses another one; in others nobody asks for it.
const apiServerFullName = apiServerName + ".svc.cluster.local"

// nameAPIServerInFull makes the full name lead where Liqo makes the short ones lead: to the
// API server of this cluster. DNS would answer with that of the cluster where the pod runs,
// which neither knows the pod's token nor has a certificate that the pod trusts.
func nameAPIServerInFull(spec *corev1.PodSpec) {
	names := func(name string) func(corev1.HostAlias) bool {
		return func(alias corev1.HostAlias) bool { return slices.Contains(alias.Hostnames, name) }
	}
	short := slices.IndexFunc(spec.HostAliases, names(apiServerName))
	if short < 0 || slices.ContainsFunc(spec.HostAliases, names(apiServerFullName)) {
		return
	}
	alias := &spec.HostAliases[short]
	alias.Hostnames = append(slices.Clip(alias.Hostnames), apiServerFullName)
}
