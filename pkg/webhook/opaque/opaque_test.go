// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package opaque

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/liqotest"
)

// hider hides the providers from the consumer of one namespace, and knows another one.
type hider struct{}

func (hider) Hides(_ context.Context, namespace string) (bool, error) {
	if namespace == "unknown" {
		return true, errors.New("nobody knows")
	}
	return namespace == "aggregated", nil
}

func TestHandle(t *testing.T) {
	from := func(component, message string) corev1.Event {
		return corev1.Event{
			Source: corev1.EventSource{Component: component, Host: "provider-a"}, ReportingController: component,
			ReportingInstance: "provider-a", Message: message,
		}
	}
	scheduled := from("", "Successfully assigned web/web-0 to provider-a")
	scheduled.Source, scheduled.ReportingController = corev1.EventSource{}, "default-scheduler"
	cases := map[string]struct {
		reason    string
		namespace string
		event     corev1.Event
		// message is what the consumer reads; empty if the event does not get there.
		message string
		// same tells that nothing is changed.
		same    bool
		refused bool
	}{
		"Scheduled":    {reason: "Where a pod is bound is not shown.", namespace: "aggregated", event: scheduled},
		"Remote":       {reason: "Nor where the provider's scheduler bound it.", namespace: "aggregated", event: from("default-scheduler (remote)", "to provider-a")},
		"Reflected":    {reason: "Nor what the virtual kubelet says.", namespace: "aggregated", event: from("liqo-pod-reflection", `to cluster "provider-a"`)},
		"Kubelet":      {reason: "How a pod does is shown.", namespace: "aggregated", event: from("kubelet (remote)", "Back-off restarting failed container"), message: "Back-off restarting failed container"},
		"Twice":        {reason: "Also if it crossed more clusters.", namespace: "aggregated", event: from("kubelet (remote) (remote)", "Started container main"), message: "Started container main"},
		"Address":      {reason: "But not at which address.", namespace: "aggregated", event: from("kubelet (remote)", `Get "http://10.200.0.13:8080/": refused`), message: `Get "http://hidden:8080/": refused`},
		"Address6":     {reason: "Of neither family.", namespace: "aggregated", event: from("kubelet (remote)", "dial tcp [fd00:10::1]:80"), message: "dial tcp [hidden]:80"},
		"Numbers":      {reason: "Times and versions are no addresses.", namespace: "aggregated", event: from("kubelet (remote)", "web:1.2.3 at 10:20:30"), message: "web:1.2.3 at 10:20:30"},
		"Broker":       {reason: "The broker's own words name nobody.", namespace: "aggregated", event: from("liqo-broker", "No provider could take the pod"), same: true},
		"Orchestrated": {reason: "Who may know reads all.", namespace: "orchestrated", event: scheduled, same: true},
		"Unknown":      {reason: "Who may know must be known.", namespace: "unknown", event: scheduled, refused: true},
	}
	handler := New(fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).Build(), hider{})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(tc.event)
			if err != nil {
				t.Fatal(err)
			}
			answer := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Namespace: tc.namespace, Object: runtime.RawExtension{Raw: raw},
			}})
			if answer.Allowed == tc.refused {
				t.Fatalf("%s\nallowed: %t, %v", tc.reason, answer.Allowed, answer.Result)
			}
			if tc.same || tc.refused {
				if len(answer.Patches) > 0 {
					t.Errorf("%s\nchanged: %v", tc.reason, answer.Patches)
				}
				return
			}
			event := patched(t, raw, answer)
			if kept := event.Annotations["liqo.io/skip-reflection"] == "true"; kept != (tc.message == "") {
				t.Errorf("%s\nnot reflected: %t", tc.reason, kept)
			}
			if tc.message != "" && event.Message != tc.message {
				t.Errorf("%s\nmessage %q, want %q", tc.reason, event.Message, tc.message)
			}
			if event.Source.Host != "" || strings.Contains(event.ReportingInstance, "provider") {
				t.Errorf("%s\nthe node is named: %+v, %q", tc.reason, event.Source, event.ReportingInstance)
			}
		})
	}
}

func patched(t *testing.T, raw []byte, answer admission.Response) *corev1.Event {
	t.Helper()
	operations, err := json.Marshal(answer.Patches)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := patch.Apply(raw)
	if err != nil {
		t.Fatal(err)
	}
	var event corev1.Event
	if err := json.Unmarshal(changed, &event); err != nil {
		t.Fatal(err)
	}
	return &event
}

// TestKeepHere keeps the annotations that there are.
func TestKeepHere(t *testing.T) {
	event := &corev1.Event{}
	event.Annotations = map[string]string{"a": "b"}
	liqo.KeepHere(event)
	if event.Annotations["a"] != "b" || len(event.Annotations) != 2 {
		t.Errorf("annotations %v", event.Annotations)
	}
}
