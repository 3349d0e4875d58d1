// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func container(requests ...string) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list(requests...)}}
}

func sidecar(requests ...string) corev1.Container {
	c := container(requests...)
	c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	return c
}

// together returns what the containers of a pod request together.
func together(requests ...string) *corev1.ResourceRequirements {
	return &corev1.ResourceRequirements{Requests: list(requests...)}
}

func TestRequests(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   corev1.PodSpec
		want   corev1.ResourceList
	}{
		"Containers": {
			reason: "Containers run at the same time.",
			spec:   corev1.PodSpec{Containers: []corev1.Container{container("cpu", "1", "memory", "1Gi"), container("cpu", "500m")}},
			want:   list("cpu", "1500m", "memory", "1Gi", "pods", "1"),
		},
		"Nothing": {
			reason: "A pod that requests nothing is a pod.",
			spec:   corev1.PodSpec{Containers: []corev1.Container{{}}},
			want:   list("pods", "1"),
		},
		"Init": {
			reason: "Init containers run one after the other, before the others.",
			spec: corev1.PodSpec{
				InitContainers: []corev1.Container{container("cpu", "3"), container("cpu", "2", "memory", "2Gi")},
				Containers:     []corev1.Container{container("cpu", "1", "memory", "1Gi")},
			},
			want: list("cpu", "3", "memory", "2Gi", "pods", "1"),
		},
		"Sidecar": {
			reason: "A sidecar runs beside the containers, and beside the init containers after it.",
			spec: corev1.PodSpec{
				InitContainers: []corev1.Container{container("cpu", "4"), sidecar("cpu", "1"), container("cpu", "2"), sidecar("memory", "1Gi")},
				Containers:     []corev1.Container{container("cpu", "1")},
			},
			want: list("cpu", "4", "memory", "1Gi", "pods", "1"),
		},
		"SidecarStays": {
			reason: "A sidecar runs as long as the containers.",
			spec: corev1.PodSpec{
				InitContainers: []corev1.Container{sidecar("cpu", "1")}, Containers: []corev1.Container{container("cpu", "2")},
			},
			want: list("cpu", "3", "pods", "1"),
		},
		"SidecarAndInit": {
			reason: "An init container after a sidecar adds to it.",
			spec: corev1.PodSpec{
				InitContainers: []corev1.Container{sidecar("cpu", "1"), container("cpu", "2")},
				Containers:     []corev1.Container{container("cpu", "1")},
			},
			want: list("cpu", "3", "pods", "1"),
		},
		"Overhead": {
			reason: "What the runtime takes adds to what the containers take.",
			spec: corev1.PodSpec{
				Containers: []corev1.Container{container("cpu", "1")}, Overhead: list("cpu", "250m", "memory", "64Mi"),
			},
			want: list("cpu", "1250m", "memory", "64Mi", "pods", "1"),
		},
		"Together": {
			reason: "A pod that requests as a whole need not say what each of its containers gets.",
			spec:   corev1.PodSpec{Containers: []corev1.Container{{}, {}}, Resources: together("cpu", "2", "memory", "1Gi", "hugepages-2Mi", "4Mi")},
			want:   list("cpu", "2", "memory", "1Gi", "hugepages-2Mi", "4Mi", "pods", "1"),
		},
		"TogetherInstead": {
			reason: "It shares that among its containers: what these request is a part of it, also while they start.",
			spec: corev1.PodSpec{
				InitContainers: []corev1.Container{sidecar("cpu", "1"), container("cpu", "2")},
				Containers:     []corev1.Container{container("cpu", "1")}, Resources: together("cpu", "4"),
			},
			want: list("cpu", "4", "pods", "1"),
		},
		"TogetherInPart": {
			reason: "Where the pod as a whole requests nothing of a resource, its containers are added up.",
			spec: corev1.PodSpec{
				Containers: []corev1.Container{container("cpu", "1", "memory", "1Gi"), container("memory", "1Gi")}, Resources: together("cpu", "3"),
			},
			want: list("cpu", "3", "memory", "2Gi", "pods", "1"),
		},
		"TogetherAndOverhead": {
			reason: "The runtime takes something beside it.",
			spec: corev1.PodSpec{
				Containers: []corev1.Container{container("cpu", "1")}, Resources: together("cpu", "2"), Overhead: list("cpu", "250m"),
			},
			want: list("cpu", "2250m", "pods", "1"),
		},
		"TogetherOther": {
			reason: "Other resources are those of containers, whatever the pod says.",
			spec: corev1.PodSpec{
				Containers: []corev1.Container{container("example.com/gpu", "1")}, Resources: together("example.com/gpu", "2"),
			},
			want: list("example.com/gpu", "1", "pods", "1"),
		},
		"TogetherLimits": {
			reason: "A limit is no request: the API server has made requests of it where it is one.",
			spec: corev1.PodSpec{
				Containers: []corev1.Container{container("cpu", "1")}, Resources: &corev1.ResourceRequirements{Limits: list("cpu", "4")},
			},
			want: list("cpu", "1", "pods", "1"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Requests(&tc.spec)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nRequests(): -want +got\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, BoundedRequests(&tc.spec)); diff != "" {
				t.Errorf("%s\nBoundedRequests(): -want +got\n%s", tc.reason, diff)
			}
			again := Requests(&corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: got}}}})
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("one container that requests the same: -want +got\n%s", diff)
			}
		})
	}
}

func TestCounts(t *testing.T) {
	cases := map[string]struct {
		reason string
		node   string
		phase  corev1.PodPhase
		want   bool
	}{
		"Waiting":   {reason: "A pod without a node takes nothing.", phase: corev1.PodPending},
		"Bound":     {reason: "A pod takes its place before it runs.", node: "n", phase: corev1.PodPending, want: true},
		"Running":   {reason: "And while it runs.", node: "n", phase: corev1.PodRunning, want: true},
		"Succeeded": {reason: "A pod that has ended takes nothing.", node: "n", phase: corev1.PodSucceeded},
		"Failed":    {reason: "However it ended.", node: "n", phase: corev1.PodFailed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: tc.node}, Status: corev1.PodStatus{Phase: tc.phase}}
			if got := Counts(pod); got != tc.want {
				t.Errorf("%s\nCounts() = %v", tc.reason, got)
			}
		})
	}
}
