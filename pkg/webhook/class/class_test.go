// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package class

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

func TestHandle(t *testing.T) {
	cases := map[string]struct {
		reason, slice, want string
		code                int32
	}{
		"Default": {
			"liqoctl asks for this class. What this program does not know of stays.",
			`{"metadata": {"labels": {"liqo.io/replicated": "true"}}, "spec": {"class": "default", "later": 1}, "status": {"authParams": {}}}`,
			`[{"op":"replace","path":"/spec/class","value":"liqo-broker"}]`, http.StatusOK,
		},
		"Another": {
			"It is for the broker already.", `{"metadata": {"labels": {"liqo.io/replicated": "true"}}, "spec": {"class": "liqo-broker"}}`, "null",
			http.StatusOK,
		},
		"Broken": {"It cannot be read.", `{"metadata": {"labels": 1}}`, "null", http.StatusBadRequest},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			answer := Handler{}.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(tc.slice)},
			}})
			got, err := json.Marshal(answer.Patches)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tc.want || answer.Allowed != (tc.code == http.StatusOK) {
				t.Errorf("%s\nallowed: %t, %s, want %s", tc.reason, answer.Allowed, got, tc.want)
			}
			if !answer.Allowed && answer.Result.Code != tc.code {
				t.Errorf("%s\ncode %d, want %d", tc.reason, answer.Result.Code, tc.code)
			}
		})
	}
}

// TestConfiguration looks at what the API server asks: about what consumers put into tenant namespaces with Liqo 1.x.
func TestConfiguration(t *testing.T) {
	manifest, err := os.ReadFile("../../../deploy/broker/webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	asked := regexp.MustCompile(`(?s)- name: class\.brokering\.liqo\.io\n.*?\n(  - name|---)`).FindString(string(manifest))
	for _, want := range []string{
		"path: " + Path, "apiGroups: [" + api.AuthenticationGroup + "]", "apiVersions: [" + api.Beta + "]", "resources: [resourceslices]",
		"operations: [CREATE, UPDATE]", "failurePolicy: Fail", "- key: " + liqo.LabelTenantNamespace + "\n          operator: Exists",
		liqo.LabelReplicated + `: "true"`,
	} {
		if !strings.Contains(asked, want) {
			t.Errorf("deploy/broker/webhook.yaml has no %q for classes", want)
		}
	}
}
