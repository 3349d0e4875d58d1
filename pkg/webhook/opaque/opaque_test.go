// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package opaque

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
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
		"Scheduled": {reason: "Where a pod is bound is not shown.", namespace: "aggregated", event: scheduled},
		"Remote": {
			reason: "Nor where the provider's scheduler bound it.", namespace: "aggregated",
			event: from("default-scheduler (remote)", "to provider-a"),
		},
		"Reflected": {
			reason: "Nor what the virtual kubelet says.", namespace: "aggregated", event: from("liqo-pod-reflection", `to cluster "provider-a"`),
		},
		"Kubelet": {
			reason: "How a pod does is shown.", namespace: "aggregated", event: from("kubelet (remote)", "Back-off restarting failed container"),
			message: "Back-off restarting failed container",
		},
		"Twice": {
			reason: "Also if it crossed more clusters.", namespace: "aggregated", event: from("kubelet (remote) (remote)", "Started container main"),
			message: "Started container main",
		},
		"Address": {
			reason: "But not at which address.", namespace: "aggregated", event: from("kubelet (remote)", `Get "http://10.200.0.13:8080/": refused`),
			message: `Get "http://hidden:8080/": refused`,
		},
		"Address6": {
			reason: "Of neither family.", namespace: "aggregated", event: from("kubelet (remote)", "dial tcp [fd00:10::1]:80"),
			message: "dial tcp [hidden]:80",
		},
		"Numbers": {
			reason: "Times and versions are no addresses.", namespace: "aggregated", event: from("kubelet (remote)", "web:1.2.3 at 10:20:30"),
			message: "web:1.2.3 at 10:20:30",
		},
		"Broker": {
			reason: "The broker's own words name nobody.", namespace: "aggregated", event: from("liqo-broker", "No provider could take the pod"),
			same: true,
		},
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

// TestWaiting has a pod of which the scheduler says why no node takes it.
func TestWaiting(t *testing.T) {
	const lacking = "0/4 nodes are available: 4 Insufficient cpu."
	const claim, preempted = `persistentvolumeclaim "data" not found`, ". preemption: 0/4 nodes are available: 4 Preemption is not helpful."
	handler := New(fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).Build(), hider{})
	for _, tc := range []struct{ namespace, message, want string }{
		{"aggregated", lacking, unscheduled}, {"orchestrated", lacking, lacking},
		{"aggregated", "0/4 nodes are available: " + claim + preempted, claim}, {"aggregated", claim, claim},
		{"aggregated", lacking + claim, unscheduled},
	} {
		namespace, want := tc.namespace, tc.want
		pod := liqotest.Pod(liqotest.ShadowPod("aggregated", "web", nil), "")
		pod.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse, Message: "containers"},
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: tc.message},
		}
		raw, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		answer := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Namespace: namespace, Kind: metav1.GroupVersionKind{Kind: "Pod"}, SubResource: "status", Object: runtime.RawExtension{Raw: raw},
		}})
		var changed corev1.Pod
		if err := json.Unmarshal(applied(t, raw, answer), &changed); err != nil {
			t.Fatal(err)
		}
		if c := changed.Status.Conditions; !answer.Allowed || c[1].Message != want || c[1].Reason != "Unschedulable" ||
			c[0].Message != "containers" {
			t.Errorf("%s: %+v, want %q", namespace, c, want)
		}
	}
}

// TestWebhookIsAskedSeldom compares the manifest with what the handler writes: what it has
// written it is not asked about again.
func TestWebhookIsAskedSeldom(t *testing.T) {
	manifest, err := os.ReadFile("../../../deploy/broker/webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(manifest), "c.message != '"+unscheduled+"'") {
		t.Errorf("deploy/broker/webhook.yaml does not know the text %q", unscheduled)
	}
}

func patched(t *testing.T, raw []byte, answer admission.Response) *corev1.Event {
	t.Helper()
	var event corev1.Event
	if err := json.Unmarshal(applied(t, raw, answer), &event); err != nil {
		t.Fatal(err)
	}
	return &event
}

// applied returns an object as the webhook leaves it.
func applied(t *testing.T, raw []byte, answer admission.Response) []byte {
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
	return changed
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
