// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package sheet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"milan": "milan", "Zürich Łódź": "Zürich Łódź", "a\x1b[2Jb": "a?[2Jb", "two\nlines\tand a tab": "two lines and a tab",
		"a\rb\x00\x7f\u009b": "a?b???", "right\u202eleft\u200b": "right?left?", "not \xff UTF-8": "not ? UTF-8",
	} {
		if got := Plain(text); got != want {
			t.Errorf("%q is shown as %q instead of %q", text, got, want)
		}
	}
}

func TestAmounts(t *testing.T) {
	for _, c := range []struct{ cpu, memory, want string }{
		{"1500m", "16Gi", "1.5 CPU, 16Gi"}, {"0", "0", "0 CPU, 0"}, {"8", "1536Mi", "8 CPU, 1.5Gi"}, {"1m", "512Ki", "0 CPU, 0.5Mi"},
		{"1e18", "1Ei", "1000000000000000000 CPU, 1073741824Gi"},
	} {
		of := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(c.cpu), corev1.ResourceMemory: resource.MustParse(c.memory)}
		if got := Amount(of); got != c.want {
			t.Errorf("%s and %s are %q instead of %q", c.cpu, c.memory, got, c.want)
		}
	}
	of := corev1.ResourceList{
		"cpu": resource.MustParse("8"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110"),
		"hugepages-2Mi": resource.MustParse("4Mi"), "nvidia.com/gpu": resource.MustParse("4"), "amd.com/gpu": resource.MustParse("0"),
	}
	if got, want := Amount(of), "8 CPU, 16Gi, 0 amd.com/gpu, 4 nvidia.com/gpu"; got != want {
		t.Errorf("a cluster with GPUs has %q instead of %q", got, want)
	}
	for _, name := range []corev1.ResourceName{"x/\x1b[2J", "y/1", "z/1"} {
		of[name] = resource.MustParse("1")
	}
	if got, want := Amount(of), "8 CPU, 16Gi, 0 amd.com/gpu, 4 nvidia.com/gpu, 1 x/?[2J, and 2 more"; got != want {
		t.Errorf("a cluster with very many devices has %q instead of %q", got, want)
	}
	if got := Amount(nil); got != "" {
		t.Errorf("nothing is %q", got)
	}
}
