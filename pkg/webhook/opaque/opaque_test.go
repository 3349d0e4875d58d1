// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package opaque

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	admissiontest "github.com/capacitorset/liqo-broker/test/admission"
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

// TestEventsAreAskedAboutOnce holds that the API server asks about an event that is there whenever the handler would change what it has
// left of that, and not about one that has only been seen once more.
func TestEventsAreAskedAboutOnce(t *testing.T) {
	webhooks := admissiontest.Webhooks(t, "../../../deploy/broker/webhook.yaml")
	at := slices.IndexFunc(webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
		return w.Name == "hide"
	})
	conditions := webhooks[at].MatchConditions
	if len(conditions) != 1 {
		t.Fatalf("%d conditions", len(conditions))
	}
	fields := func(event *corev1.Event) map[string]any {
		all, err := runtime.DefaultUnstructuredConverter.ToUnstructured(event)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	written := corev1.Event{
		Message: `Get "http://10.200.0.13:8080/": refused`, ReportingController: "kubelet", ReportingInstance: "provider-a", Count: 1,
		Source: corev1.EventSource{Component: "kubelet", Host: "provider-a"},
	}
	scheduled := corev1.Event{Message: "Successfully assigned web/web-0 to provider-a", ReportingController: "default-scheduler"}
	for name, tc := range map[string]struct {
		reason string
		before corev1.Event
		edit   func(*corev1.Event)
		asked  bool
	}{
		"Again":    {"It was seen again.", written, func(e *corev1.Event) { e.Count, e.LastTimestamp = 2, metav1.Now() }, false},
		"Series":   {"It is seen time and again.", written, func(e *corev1.Event) { e.Series = &corev1.EventSeries{Count: 9} }, false},
		"Kept":     {"One that stays here was seen again.", scheduled, func(e *corev1.Event) { e.Count++ }, false},
		"Message":  {"It says more.", written, func(e *corev1.Event) { e.Message = written.Message }, true},
		"Host":     {"It says where from.", written, func(e *corev1.Event) { e.Source.Host = "provider-a" }, true},
		"Who":      {"And who.", written, func(e *corev1.Event) { e.Source.Component = "default-scheduler" }, true},
		"By":       {"Also in the newer way.", scheduled, func(e *corev1.Event) { e.ReportingController = "kubelet" }, true},
		"Instance": {"Or by which.", written, func(e *corev1.Event) { e.ReportingInstance = "provider-a" }, true},
		"Shown":    {"It does not stay here any more.", scheduled, func(e *corev1.Event) { e.Annotations = nil }, true},
		"Shown2": {
			"Whatever else is written there.", scheduled, func(e *corev1.Event) { e.Annotations = map[string]string{"a": "b"} }, true,
		},
		"Silent": {"It says nothing any more.", written, func(e *corev1.Event) { e.Message = "" }, true},
	} {
		left := tc.before.DeepCopy()
		hide(left)
		now := left.DeepCopy()
		tc.edit(now)
		got := admissiontest.Holds(t, conditions[0].Expression, map[string]any{
			"request": map[string]any{"operation": "UPDATE"}, "oldObject": fields(left), "object": fields(now),
		})
		if got != tc.asked {
			t.Errorf("%s: the API server asks: %t. %s", name, got, tc.reason)
		}
		hidden := now.DeepCopy()
		if hide(hidden); !got && !equality.Semantic.DeepEqual(hidden, now) {
			t.Errorf("%s: the API server does not ask, and the handler would change it to %+v", name, hidden)
		}
	}
	if !admissiontest.Holds(t, conditions[0].Expression, map[string]any{
		"request": map[string]any{"operation": "CREATE"}, "oldObject": nil, "object": fields(&written),
	}) {
		t.Error("the API server does not ask about a new event")
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
