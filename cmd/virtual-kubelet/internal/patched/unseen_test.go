// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package patched

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/trace"
)

// TestUnseenEnd deletes pods whose remote pod is gone, and looks at what the API server hears of their end before.
func TestUnseenEnd(t *testing.T) {
	jobs := []string{"batch.kubernetes.io/job-tracking"}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	done := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}
	for name, tc := range map[string]struct {
		reason     string
		finalizers []string
		phase      corev1.PodPhase
		states     []corev1.ContainerState
		// written is the phase that is written, if any, and codes are the exit codes.
		written corev1.PodPhase
		codes   []int32
	}{
		"OfJob": {
			"The Job waits for an end.", jobs, corev1.PodRunning, []corev1.ContainerState{running, done}, corev1.PodFailed, []int32{137, 3},
		},
		"NotBegun":  {"The same.", jobs, corev1.PodPending, nil, corev1.PodFailed, nil},
		"Succeeded": {"Its end was seen.", jobs, corev1.PodSucceeded, []corev1.ContainerState{done}, "", nil},
		"Failed":    {"The same.", jobs, corev1.PodFailed, []corev1.ContainerState{done}, "", nil},
		"Moved": {
			"A broker's own pod comes back if it has not ended, and has no finalizer.", nil, corev1.PodRunning,
			[]corev1.ContainerState{running}, "", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			local := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "home", UID: "local", Finalizers: tc.finalizers}}
			local.DeletionTimestamp = new(metav1.Now())
			local.Status.Phase = tc.phase
			for _, state := range tc.states {
				local.Status.ContainerStatuses = append(local.Status.ContainerStatuses, corev1.ContainerStatus{Ready: true, State: state})
			}
			opts := namespacedOptions(t, local)
			if err := opts.LocalFactory.Core().V1().Pods().Informer().GetIndexer().Add(local); err != nil {
				t.Fatal(err)
			}
			reflector := newPodReflectorOf(t, nil, opts)
			var written *corev1.Pod
			var deleted bool
			client, ok := opts.LocalClient.(*fake.Clientset)
			if !ok {
				t.Fatalf("the client is a %T", opts.LocalClient)
			}
			client.PrependReactor("update", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if update, ok := action.(clienttesting.UpdateAction); ok && action.GetSubresource() == "status" && !deleted {
					written, _ = update.GetObject().(*corev1.Pod)
				}
				return false, nil, nil
			})
			client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				deleted = true
				return false, nil, nil
			})
			ctx := trace.ContextWithTrace(t.Context(), trace.New("test"))
			if err := reflector.Handle(ctx, "web"); err != nil {
				t.Fatal(err)
			}
			if !deleted {
				t.Errorf("%s\nthe pod stays", tc.reason)
			}
			if (written != nil) != (tc.written != "") || written != nil && written.Status.Phase != tc.written {
				t.Fatalf("%s\nwritten: %+v, want %s", tc.reason, written, tc.written)
			}
			for i, code := range tc.codes {
				if c := written.Status.ContainerStatuses[i]; c.Ready || c.State.Terminated == nil || c.State.Terminated.ExitCode != code {
					t.Errorf("%s\ncontainer %d is %+v, want the exit code %d", tc.reason, i, c, code)
				}
			}
		})
	}
}
