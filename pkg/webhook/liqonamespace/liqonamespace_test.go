// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqonamespace

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

// TestHandle writes offloadings of namespace liqo.
func TestHandle(t *testing.T) {
	const head = `{"apiVersion": "offloading.liqo.io/v1alpha1", "kind": "NamespaceOffloading", "metadata": {"name": "offloading", "namespace": "liqo"},
		"spec": {"namespaceMappingStrategy": "DefaultName", "podOffloadingStrategy": "Local", "clusterSelector": `
	cases := map[string]struct {
		reason   string
		selector string
		refused  bool
		patch    string
	}{
		"Everybody": {
			reason:   "What Liqo's own virtual kubelets would reflect is not reflected by them.",
			selector: `{"nodeSelectorTerms": [{"matchExpressions": [{"key": "liqo.io/type", "operator": "In", "values": ["virtual-node"]}]}]}`,
			patch:    "brokering.liqo.io/virtual-kubelet",
		},
		"Safe": {
			reason:   "What is safe stays as it is.",
			selector: `{"nodeSelectorTerms": [{"matchExpressions": [{"key": "brokering.liqo.io/virtual-kubelet", "operator": "Exists"}]}]}`,
		},
		"Broken": {reason: "What cannot be read is not admitted.", selector: `7`, refused: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			response := New(liqotest.Scheme(t)).Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(head + tc.selector + "}}")},
			}})
			patch, err := json.Marshal(response.Patches)
			if err != nil {
				t.Fatal(err)
			}
			if response.Allowed == tc.refused || strings.Contains(string(patch), "virtual-kubelet") != (tc.patch != "") ||
				len(response.Warnings) > 0 != (tc.patch != "") {
				t.Errorf("%s\nallowed %t, patches %s, warnings %q", tc.reason, response.Allowed, patch, response.Warnings)
			}
		})
	}
}
