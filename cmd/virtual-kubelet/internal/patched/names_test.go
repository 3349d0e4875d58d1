// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package patched

import (
	"strings"
	"testing"

	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/configuration"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TestLongPodNames forges the Secret with the tokens of a pod, and finds the pod by it.
func TestLongPodNames(t *testing.T) {
	for name, pod := range map[string]string{
		"Short": "web-0",
		"63":    strings.Repeat("a", 63),
		"64":    strings.Repeat("a", 64),
		"Cut":   strings.Repeat("a", 60) + "-.-" + strings.Repeat("b", 100),
		"Token": "web-token",
	} {
		t.Run(name, func(t *testing.T) {
			tokens := &forge.ServiceAccountPodTokens{PodName: pod, ServiceAccountName: pod}
			secret := forge.RemoteServiceAccountSecret(tokens, forge.ServiceAccountSecretName(pod), "there", "node")
			for key, value := range secret.Labels {
				if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
					t.Errorf("label %s=%s: %v", key, value, problems)
				}
			}
			meta := &metav1.ObjectMeta{Namespace: "there", Name: *secret.Name, Labels: secret.Labels}
			if !forge.IsServiceAccountSecret(meta) {
				t.Error("the Secret is not known as one with tokens")
			}
			keys := configuration.RemoteSASecretNamespacedKeyer("here", "node")(meta)
			if want := (types.NamespacedName{Namespace: "here", Name: pod}); len(keys) != 1 || keys[0] != want {
				t.Errorf("the Secret leads to %v, want %s", keys, want)
			}
		})
	}
}
