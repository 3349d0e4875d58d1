// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

// TestConfinement has pods that the webhook before has not changed, or that something else has changed after it.
func TestConfinement(t *testing.T) {
	term := func(key string, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}},
		}
	}
	virtual := term(liqo.LabelNodeType, liqo.NodeTypeVirtual)
	const refusal = "does not require liqo.io/type=virtual-node"
	cases := map[string]struct {
		reason  string
		terms   []corev1.NodeSelectorTerm
		refusal string
	}{
		"None":     {"Without a requirement any node will do.", nil, refusal},
		"Virtual":  {"One that requires a virtual node runs on none of ours.", []corev1.NodeSelectorTerm{virtual}, ""},
		"OneOfTwo": {"An alternative without it is a way out.", []corev1.NodeSelectorTerm{virtual, term("disk", "ssd")}, refusal},
		"Either":   {"So is another value.", []corev1.NodeSelectorTerm{term(liqo.LabelNodeType, liqo.NodeTypeVirtual, "other")}, refusal},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := liqotest.Pod(liqotest.ShadowPod("web-consumer", "web", nil), "")
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: tc.terms},
			}}
			raw, err := json.Marshal(pod)
			if err != nil {
				t.Fatal(err)
			}
			answer := NewConfinement(liqotest.Scheme(t)).Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
			}})
			if answer.Allowed != (tc.refusal == "") || !answer.Allowed && !strings.Contains(answer.Result.Message, tc.refusal) {
				t.Errorf("%s\nallowed %t, %v, want %q", tc.reason, answer.Allowed, answer.Result, tc.refusal)
			}
		})
	}
}
