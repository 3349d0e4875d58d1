// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/test/worlds/apiserver"
)

func waiting() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"}}
}

// TestServer looks at what the worlds rely on.
func TestServer(t *testing.T) {
	s := apiserver.New(time.Now)
	pod := waiting()
	if err := s.Create(pod); err != nil {
		t.Fatal(err)
	}
	stale := pod.DeepCopy()
	pod.Spec.NodeName = "node"
	if err := s.Update(pod, false); err != nil || pod.Generation != 2 {
		t.Errorf("update: %v, generation %d", err, pod.Generation)
	}
	version := s.Version()
	pod.Status.Phase = corev1.PodFailed
	if err := s.Update(pod, false); err != nil || s.Version() != version || pod.Status.Phase != "" {
		t.Errorf("an update changes the status: %v, %q", err, pod.Status.Phase)
	}
	locked := stale.DeepCopy()
	locked.Status.Phase = "Failed"
	if err := s.Patch(locked, client.StrategicMergeFrom(stale, client.MergeFromWithOptimisticLock{}), true); !apierrors.IsConflict(err) {
		t.Errorf("a patch of an old version: %v", err)
	}
	backup := s.Backup()
	if err := s.Delete(pod, true, &client.DeleteOptions{}); err != nil || s.Stored(pod).GetDeletionTimestamp() == nil {
		t.Errorf("delete: %v", err)
	}
	s.Drop(pod)
	again := waiting()
	if err := s.Create(again); err != nil || again.UID == pod.UID || again.ResourceVersion == stale.ResourceVersion {
		t.Errorf("create again: %v, UID %s, version %s", err, again.UID, again.ResourceVersion)
	}
	old := apiserver.NewCache(s, false)
	s.Restore(backup)
	if is := s.Stored(pod); is.GetUID() != stale.UID || is.GetDeletionTimestamp() != nil || is.GetResourceVersion() == pod.ResourceVersion {
		t.Errorf("restored: %v", is)
	}
	if err := old.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || pod.UID != again.UID {
		t.Errorf("a cache that has not seen that: %v, %v", err, pod)
	}
}

// TestFinalizers looks at what is deleted and has a finalizer.
func TestFinalizers(t *testing.T) {
	s := apiserver.New(time.Now)
	pod := waiting()
	pod.Finalizers = []string{"example.com/a"}
	if err := s.Create(pod); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(pod, false, &client.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	marked, is := s.Stored(pod).(*corev1.Pod)
	if !is || marked.DeletionTimestamp == nil {
		t.Fatalf("with a finalizer it goes at once: %v", marked)
	}
	marked = marked.DeepCopy()
	marked.Finalizers = nil
	if err := s.Update(marked, false); err != nil || s.Stored(pod) != nil {
		t.Errorf("without a finalizer it stays: %v", err)
	}
}
