// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestNameAPIServerInFull(t *testing.T) {
	const full = "kubernetes.default.svc.cluster.local"
	database, own := corev1.HostAlias{IP: "192.0.2.7", Hostnames: []string{"db"}}, corev1.HostAlias{IP: "192.0.2.8", Hostnames: []string{full}}
	cases := map[string]struct {
		reason     string
		have, want []corev1.HostAlias
	}{
		"Reached": {
			"all names of the API server lead there", []corev1.HostAlias{database, alias("10.82.0.2")},
			[]corev1.HostAlias{database, {IP: "10.82.0.2", Hostnames: append(alias("").Hostnames, full)}},
		},
		"NotAlias": {
			"a pod without access, or with a public API server, has no alias", []corev1.HostAlias{database}, []corev1.HostAlias{database},
		},
		"None": {"a pod without any", nil, nil},
		"Users": {
			"a user who says where it leads is right", []corev1.HostAlias{own, alias("10.82.0.2")}, []corev1.HostAlias{own, alias("10.82.0.2")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &corev1.PodSpec{HostAliases: tc.have}
			nameAPIServerInFull(spec)
			if diff := cmp.Diff(tc.want, spec.HostAliases); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
