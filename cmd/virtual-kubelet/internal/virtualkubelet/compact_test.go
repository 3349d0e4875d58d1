// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package virtualkubelet

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// TestCompact writes a pod's status to an API server that speaks both forms, and reads the answer.
func TestCompact(t *testing.T) {
	protobuf, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		t.Fatal("no protobuf")
	}
	written := map[string][]byte{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		written[r.Header.Get("Content-Type")] = body
		answer := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: "7"}}
		if !strings.HasPrefix(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
			w.Header().Set("Content-Type", runtime.ContentTypeJSON)
			answer.APIVersion, answer.Kind = "v1", "Pod"
			if err := json.NewEncoder(w).Encode(answer); err != nil {
				t.Error(err)
			}
			return
		}
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		if err := scheme.Codecs.EncoderForVersion(protobuf.Serializer, corev1.SchemeGroupVersion).Encode(answer, w); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	client, err := kubernetes.NewForConfig(compact(config))
	if err != nil {
		t.Fatal(err)
	}
	pods := client.CoreV1().Pods("shop")
	got, err := pods.UpdateStatus(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, metav1.UpdateOptions{})
	if err != nil || got.ResourceVersion != "7" {
		t.Errorf("the API server answers %v, %v", got, err)
	}
	if body := written[runtime.ContentTypeProtobuf]; !bytes.HasPrefix(body, []byte("k8s\x00")) {
		t.Errorf("the status is written as %q", body)
	}
	// What is applied has no other form than JSON.
	if _, err := pods.Apply(t.Context(), corev1apply.Pod("web", "shop"), metav1.ApplyOptions{FieldManager: "test"}); err != nil {
		t.Error(err)
	}
	if body := written[string(types.ApplyPatchType)]; !json.Valid(body) {
		t.Errorf("the pod is applied as %q", body)
	}
	if config.ContentType != "" {
		t.Error("the clients of custom resources would use protobuf, too")
	}
}
