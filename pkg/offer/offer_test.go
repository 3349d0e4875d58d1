// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

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

func TestSum(t *testing.T) {
	cases := map[string]struct {
		reason string
		lists  []corev1.ResourceList
		want   corev1.ResourceList
	}{
		"Two": {
			reason: "What either names is in the sum.",
			lists: []corev1.ResourceList{
				list("cpu", "1500m", "memory", "1Gi", "pods", "10"),
				list("cpu", "500m", "memory", "512Mi", "pods", "5", "example.com/gpu", "2"),
			},
			want: list("cpu", "2", "memory", "1536Mi", "pods", "15", "example.com/gpu", "2"),
		},
		"None": {
			reason: "The resources that Liqo needs are there, as zero.",
			want:   list("cpu", "0", "memory", "0", "pods", "0"),
		},
		"Unknown": {
			reason: "A resource that nobody mentions counts as zero.",
			lists:  []corev1.ResourceList{list("cpu", "1")},
			want:   list("cpu", "1", "memory", "0", "pods", "0"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Sum(tc.lists...)); diff != "" {
				t.Errorf("%s\nSum(): -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSumLeavesItsInputAlone(t *testing.T) {
	a, b := list("cpu", "1"), list("cpu", "2")
	sum := Sum(a, b)
	cpu := sum[corev1.ResourceCPU]
	cpu.Add(resource.MustParse("5"))
	if !Equal(a, list("cpu", "1")) || !Equal(b, list("cpu", "2")) {
		t.Errorf("Sum() changed its input: %v, %v", a, b)
	}
}

func TestArithmetic(t *testing.T) {
	a := list("cpu", "1500m", "memory", "1Gi")
	cases := map[string]struct {
		reason    string
		got, want corev1.ResourceList
	}{
		"Less":        {reason: "What is taken is gone.", got: Less(a, list("cpu", "1")), want: list("cpu", "500m", "memory", "1Gi")},
		"LessThanNil": {reason: "Nothing is left of less than what is taken.", got: Less(a, list("cpu", "2", "pods", "1")), want: list("cpu", "0", "memory", "1Gi")},
		"Min":         {reason: "What one does not name is zero.", got: Min(a, list("cpu", "1", "pods", "1")), want: list("cpu", "1", "memory", "0")},
		"Max":         {reason: "What either names counts.", got: Max(a, list("cpu", "1", "pods", "1")), want: list("cpu", "1500m", "memory", "1Gi", "pods", "1")},
		"Cut":         {reason: "What the limit does not name is not cut.", got: Cut(a, list("cpu", "1", "pods", "1")), want: list("cpu", "1", "memory", "1Gi")},
		"Half":        {reason: "Of cores, thousandths count.", got: Percent(list("cpu", "1001m", "pods", "3"), 50), want: list("cpu", "500m", "pods", "1")},
		"Double":      {reason: "More than all is possible.", got: Percent(a, 200), want: list("cpu", "3", "memory", "2Gi")},
		"TooLarge":    {reason: "A number does not wrap around.", got: Percent(list("memory", "7Ei"), 1000), want: list("memory", "9223372036854775807")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
		})
	}
	if !Equal(a, list("cpu", "1500m", "memory", "1Gi")) {
		t.Errorf("an argument has changed: %v", a)
	}
}

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		reason string
		list   corev1.ResourceList
		want   string
	}{
		"Good":  {reason: "An ordinary offer is valid.", list: list("cpu", "1", "memory", "0")},
		"Empty": {reason: "An empty offer is valid: it offers nothing."},
		"Negative": {
			reason: "Negative quantities are refused and named in order.",
			list:   list("memory", "-1Gi", "cpu", "-1", "pods", "3"),
			want:   "invalid offer: cpu is negative (-1), memory is negative (-1Gi)",
		},
		"Absurd": {
			reason: "So are quantities that no cluster has.",
			list:   list("cpu", "1e30", "memory", "1Ei"),
			want:   "invalid offer: cpu is more than any cluster has (1e30)",
		},
		"Nameless": {
			reason: "A resource needs a name.",
			list:   list("", "1"),
			want:   "invalid offer: a resource has no name",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := Validate(tc.list); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("%s\nValidate(): %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestEqualAndIsZero(t *testing.T) {
	cases := map[string]struct {
		reason string
		a, b   corev1.ResourceList
		equal  bool
		zero   bool // whether a is zero
	}{
		"SameAmount": {
			reason: "Different spellings of one amount are equal.",
			a:      list("cpu", "1", "memory", "1Gi", "pods", "1"), b: list("cpu", "1000m", "memory", "1024Mi", "pods", "1"),
			equal: true,
		},
		"MissingIsZero": {
			reason: "A missing resource is zero of it.",
			a:      list("cpu", "0"), b: nil, equal: true, zero: true,
		},
		"More":   {reason: "More is not equal.", a: list("cpu", "2"), b: list("cpu", "1"), zero: true},
		"NoPods": {reason: "Without pods nothing can run.", a: list("cpu", "2", "memory", "1Gi"), b: nil, zero: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Equal(tc.a, tc.b); got != tc.equal {
				t.Errorf("%s\nEqual() = %v", tc.reason, got)
			}
			if got := Equal(tc.b, tc.a); got != tc.equal {
				t.Errorf("%s\nEqual() is not symmetric", tc.reason)
			}
			if got := IsZero(tc.a); got != tc.zero {
				t.Errorf("%s\nIsZero() = %v", tc.reason, got)
			}
		})
	}
}

func TestPart(t *testing.T) {
	cases := map[string]struct {
		reason            string
		list, part, whole corev1.ResourceList
		want              corev1.ResourceList
	}{
		"Third": {
			reason: "It is rounded down, to what Kubernetes counts.",
			list:   list("cpu", "1", "memory", "10"), part: list("cpu", "1", "memory", "1"), whole: list("cpu", "3", "memory", "3"),
			want: list("cpu", "333m", "memory", "3"),
		},
		"Whole":   {reason: "More than the whole is the whole.", list: list("cpu", "1500u"), part: list("cpu", "4"), whole: list("cpu", "3"), want: list("cpu", "1500u")},
		"Nothing": {reason: "Nothing of a whole is nothing.", list: list("cpu", "4"), whole: list("cpu", "4"), want: list("cpu", "0")},
		"Neither": {reason: "What nobody has is not divided.", list: list("cpu", "4"), want: list("cpu", "4")},
		"Crumbs": {
			reason: "Less than what Kubernetes counts is nothing.",
			list:   list("cpu", "1500u", "memory", "1500m"), part: list("cpu", "1", "memory", "1"), whole: list("cpu", "2", "memory", "2"),
			want: list("cpu", "0", "memory", "0"),
		},
		"Huge": {
			reason: "Nothing overflows.",
			list:   list("cpu", "8E", "memory", "8E"), part: list("cpu", "4E", "memory", "4E"), whole: list("cpu", "8E", "memory", "8E"),
			want: list("cpu", "4E", "memory", "4E"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Part(tc.list, tc.part, tc.whole); !Equal(tc.want, got) {
				t.Errorf("%s\ngot %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
