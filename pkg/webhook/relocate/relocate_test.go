// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package relocate_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/webhook/relocate"
	admissiontest "github.com/capacitorset/liqo-broker/test/admission"
)

// deleted is when the pods are deleted that are.
func deleted() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// pod returns one of a ShadowPod, which runs.
func pod(policy corev1.RestartPolicy, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "web-0", Labels: map[string]string{"liqo.io/managed-by": "shadowpod"}},
		Spec:       corev1.PodSpec{RestartPolicy: policy, Containers: []corev1.Container{{Name: "main"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			},
		},
	}
	change(p)
	return p
}

// moved is a change of a pod: somebody deletes it, and its node stands for another cluster, so that it stays for as long as that says.
func moved(p *corev1.Pod) {
	seconds := int64(30)
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: deleted().Add(30 * time.Second)}, &seconds
}

// ends returns what a virtual kubelet writes of a pod that has ended there: the metadata as they are, and a status.
func ends(before *corev1.Pod, phase corev1.PodPhase, code int32) *corev1.Pod {
	after := &corev1.Pod{ObjectMeta: *before.ObjectMeta.DeepCopy(), Status: *before.Status.DeepCopy()}
	after.Status.Phase = phase
	after.Status.Conditions[0] = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "PodCompleted"}
	after.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(deleted().Add(time.Second))},
	}}
	return after
}

func TestHandle(t *testing.T) {
	asItIs := func(*corev1.Pod) {}
	done := pod(corev1.RestartPolicyNever, moved)
	done.Status = ends(done, corev1.PodSucceeded, 0).Status
	running := pod(corev1.RestartPolicyAlways, moved)
	runs := &corev1.Pod{ObjectMeta: *running.ObjectMeta.DeepCopy(), Status: *running.Status.DeepCopy()}
	runs.Status.PodIP = "10.61.0.7"
	killed := pod(corev1.RestartPolicyAlways, moved)
	job := pod(corev1.RestartPolicyNever, moved)
	stays := pod(corev1.RestartPolicyNever, asItIs)
	own := pod(corev1.RestartPolicyNever, func(p *corev1.Pod) { moved(p); p.Labels = nil })
	named := func(name string) *corev1.Pod {
		return pod(corev1.RestartPolicyNever, func(p *corev1.Pod) { moved(p); p.Name = name })
	}
	stale := ends(job, corev1.PodSucceeded, 0)
	stale.DeletionTimestamp, stale.Labels = nil, nil
	cases := map[string]struct {
		reason        string
		before, after *corev1.Pod
		waits         bool
		refused       bool
	}{
		"Deployment": {reason: "It was killed to be moved.", before: killed, after: ends(killed, corev1.PodFailed, 137), waits: true},
		"Job": {
			reason: "It has done as it was told on SIGTERM, and not what it is there for.", before: job,
			after: ends(job, corev1.PodSucceeded, 0), waits: true,
		},
		"Metadata": {reason: "Who writes a status says nothing of the rest.", before: job, after: stale, waits: true},
		"Done":     {reason: "It had ended before it was deleted.", before: done, after: ends(done, corev1.PodSucceeded, 0)},
		"Stays":    {reason: "Nobody moves it.", before: stays, after: ends(stays, corev1.PodFailed, 1)},
		"Runs":     {reason: "It has not ended yet.", before: running, after: runs},
		"Own":      {reason: "No peer has asked for it.", before: own, after: ends(own, corev1.PodSucceeded, 0)},
		"Gone":     {reason: "Its consumer wants it no more.", before: named("gone"), after: ends(named("gone"), corev1.PodSucceeded, 0)},
		"Unknown": {
			reason: "Without an answer nothing is decided that cannot be taken back.", before: named("unknown"),
			after: ends(named("unknown"), corev1.PodSucceeded, 0), refused: true,
		},
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	handler := relocate.New(scheme, func(_ context.Context, key client.ObjectKey) (bool, error) {
		switch key {
		case client.ObjectKey{Namespace: "web", Name: "unknown"}:
			return false, errors.New("nobody answers")
		default:
			return key.Name != "gone", nil
		}
	})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			raw := withNew(t, tc.after)
			answer := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Update, SubResource: "status",
				Object: runtime.RawExtension{Raw: raw}, OldObject: runtime.RawExtension{Raw: marshal(t, tc.before)},
			}})
			if answer.Allowed == tc.refused {
				t.Fatalf("%s\nallowed: %t, %v", tc.reason, answer.Allowed, answer.Result)
			}
			if !tc.waits {
				if len(answer.Patches) > 0 {
					t.Errorf("%s\nchanged: %v", tc.reason, answer.Patches)
				}
				return
			}
			want := tc.after.DeepCopy()
			want.Status.Phase = corev1.PodRunning
			want.Status.Conditions[0].Reason = "Relocating"
			want.Status.Conditions[0].Message = "the pod is being deleted since 2026-01-02T03:04:05Z and will be recreated"
			want.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "Relocating"}}
			var got, wanted any
			for text, into := range map[string]any{string(applied(t, raw, answer)): &got, string(withNew(t, want)): &wanted} {
				if err := json.Unmarshal([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(wanted, got); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
		})
	}
	if answer := handler.Handle(t.Context(), admission.Request{}); answer.Allowed {
		t.Error("nothing is admitted")
	}
}

// TestManifest holds that the API server asks about what the handler changes, of pods of Liqo 1.x.
func TestManifest(t *testing.T) {
	webhooks := admissiontest.Webhooks(t, "../../../deploy/broker/webhook.yaml")
	at := slices.IndexFunc(webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
		return *w.ClientConfig.Service.Path == relocate.Path
	})
	if at < 0 {
		t.Fatalf("the API server does not ask %s", relocate.Path)
	}
	asked := func(before, after *corev1.Pod) bool {
		objects := map[string]any{}
		for name, pod := range map[string]*corev1.Pod{"oldObject": before, "object": after} {
			var fields map[string]any
			if err := json.Unmarshal(marshal(t, pod), &fields); err != nil {
				t.Fatal(err)
			}
			objects[name] = fields
		}
		return !slices.ContainsFunc(webhooks[at].MatchConditions, func(c admissionregistrationv1.MatchCondition) bool {
			return !admissiontest.Holds(t, c.Expression, objects)
		})
	}
	ofOne := func(p *corev1.Pod) { p.Labels[api.LabelOriginCluster] = "c" }
	running := pod(corev1.RestartPolicyNever, func(p *corev1.Pod) { moved(p); ofOne(p) })
	done := running.DeepCopy()
	done.Status = ends(done, corev1.PodSucceeded, 0).Status
	stays := pod(corev1.RestartPolicyNever, ofOne)
	unseen := pod(corev1.RestartPolicyNever, func(p *corev1.Pod) { moved(p); ofOne(p); p.Status = corev1.PodStatus{} })
	for name, tc := range map[string]struct{ before, after *corev1.Pod }{
		"Ends": {running, ends(running, corev1.PodSucceeded, 0)}, "Fails": {running, ends(running, corev1.PodFailed, 137)},
		"Unseen": {unseen, ends(running, corev1.PodFailed, 137)},
		"Runs":   {running, running}, "Done": {done, done}, "Stays": {stays, ends(stays, corev1.PodFailed, 1)}, "Starts": {unseen, running},
	} {
		if got, want := asked(tc.before, tc.after), relocate.Status(tc.before, tc.after.Status) != nil; got != want {
			t.Errorf("%s: the API server asks: %t, and the handler changes something: %t", name, got, want)
		}
	}
	other := pod(corev1.RestartPolicyNever, moved)
	if asked(other, ends(other, corev1.PodSucceeded, 0)) {
		t.Error("the API server asks about a pod of Liqo 0.9, of which virtual kubelets say that it waits")
	}
}

func marshal(t *testing.T, object any) []byte {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// withNew returns a pod as a newer API server has it: with fields that nobody knows here.
func withNew(t *testing.T, pod *corev1.Pod) []byte {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(marshal(t, pod), &fields); err != nil {
		t.Fatal(err)
	}
	status := fields["status"].(map[string]any)
	status["newOfPod"] = "kept"
	status["containerStatuses"].([]any)[0].(map[string]any)["newOfContainer"] = "kept"
	return marshal(t, fields)
}

// applied returns an object as the webhook leaves it.
func applied(t *testing.T, raw []byte, answer admission.Response) []byte {
	t.Helper()
	patch, err := jsonpatch.DecodePatch(marshal(t, answer.Patches))
	if err != nil {
		t.Fatal(err)
	}
	changed, err := patch.Apply(raw)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}
