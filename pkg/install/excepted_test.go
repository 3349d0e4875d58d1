// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestExcepted looks which of the admission rules are left out at each level of Pod Security.
func TestExcepted(t *testing.T) {
	for level, want := range map[string]int{"": 0, "baseline": 0, "restricted": 0, "privileged": 2} {
		t.Run("Level"+level, func(t *testing.T) {
			c := fake.NewClientBuilder()
			if level != "" {
				c = c.WithObjects(&corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: GuardName, Name: GuardName}, Data: map[string]string{"level": level},
				})
			}
			rules, err := build("admission")
			if err != nil {
				t.Fatal(err)
			}
			i := Installer{objects: objects{c.Build()}}
			excepted, err := i.excepted(t.Context(), rules)
			if err != nil {
				t.Fatal(err)
			}
			if len(excepted) != want {
				t.Errorf("%d rules are left out, want %d: a policy and its binding, or none", len(excepted), want)
			}
			for _, o := range excepted {
				if o.GetName() != "pod-security.brokering.liqo.io" {
					t.Errorf("%s is left out", describe(o))
				}
			}
		})
	}
}
