// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"slices"
	"strings"
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
	huge := slices.Repeat([]corev1.ResourceList{list("cpu", "1Ei", "memory", "1Ei", "pods", "5")}, 20)
	cases := map[string]struct {
		reason    string
		got, want corev1.ResourceList
	}{
		"Subtract": {reason: "What is taken is gone.", got: Subtract(a, list("cpu", "1")), want: list("cpu", "500m", "memory", "1Gi")},
		"NotNegative": {
			reason: "Nothing is left of less than what is taken.", got: Subtract(a, list("cpu", "2", "pods", "1")),
			want: list("cpu", "0", "memory", "1Gi"),
		},
		"Min": {
			reason: "What one does not name is zero.", got: Min(a, list("cpu", "1", "pods", "1")), want: list("cpu", "1", "memory", "0"),
		},
		"Max": {
			reason: "What either names counts.", got: Max(a, list("cpu", "1", "pods", "1")),
			want: list("cpu", "1500m", "memory", "1Gi", "pods", "1"),
		},
		"AtMost": {
			reason: "What the limit does not name is not cut.", got: AtMost(a, list("cpu", "1", "pods", "1")),
			want: list("cpu", "1", "memory", "1Gi"),
		},
		"Half": {
			reason: "Of cores, thousandths count.", got: Scale(list("cpu", "1001m", "pods", "3"), 50), want: list("cpu", "500m", "pods", "1"),
		},
		"Double": {reason: "More than all is possible.", got: Scale(a, 200), want: list("cpu", "3", "memory", "2Gi")},
		"OddHalf": {
			reason: "What is left over goes to nobody.", got: Scale(list("cpu", "1000001n", "memory", "14306m"), 50),
			want: list("cpu", "0", "memory", "7"),
		},
		"OddPart": {
			reason: "Two parts are no more than the whole.",
			got: Prorate(list("cpu", "3", "memory", "15500m"), list("cpu", "1000000001n", "memory", "1"),
				list("cpu", "2000000001n", "memory", "1500m")),
			want: list("cpu", "1500m", "memory", "10"),
		},
		"HugeHalf": {
			reason: "What many clusters have is more than a number can be.", got: Scale(Sum(huge...), 50),
			want: list("cpu", "9223372036854775807", "memory", "9223372036854775807", "pods", "50"),
		},
		"HugePart": {
			reason: "So is what it is a part of.", got: Prorate(list("cpu", "1", "memory", "1000", "pods", "10"), huge[0], Sum(huge...)),
			want: list("cpu", "50m", "memory", "50", "pods", "0"),
		},
		"TooLarge": {
			reason: "A number does not wrap around.", got: Scale(list("memory", "7Ei"), 1000), want: list("memory", "9223372036854775807"),
		},
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

// many returns a list of so many resources.
func many(count int) corev1.ResourceList {
	resources := corev1.ResourceList{}
	for n := range count {
		resources[corev1.ResourceName(fmt.Sprintf("example.com/r%03d", n))] = resource.MustParse("1")
	}
	return resources
}

func TestBounded(t *testing.T) {
	all := many(100)
	all["memory"], all["cpu"] = resource.MustParse("1e2147483647"), resource.MustParse("1500m")
	all["example.com/r000"] = resource.MustParse("1Ei")
	got := Bounded(all)
	if len(got) != 64 {
		t.Errorf("%d resources", len(got))
	}
	want := many(62)
	want["memory"], want["cpu"], want["example.com/r000"] = resource.MustParse("1Ei"), resource.MustParse("1500m"), resource.MustParse("1Ei")
	if !Equal(got, want) {
		t.Errorf("Bounded() = %v", got)
	}
}

func TestWithin(t *testing.T) {
	cases := map[string]struct {
		reason          string
		list, has, want corev1.ResourceList
	}{
		"Ordinary": {
			reason: "What is there can be taken.",
			list:   list("cpu", "1", "gpu", "1"), has: list("cpu", "4", "gpu", "2"), want: list("cpu", "1", "gpu", "1"),
		},
		"More": {
			reason: "No more can be taken than is there.",
			list:   list("cpu", "1000000", "gpu", "7"), has: list("cpu", "4", "gpu", "2"), want: list("cpu", "4", "gpu", "2"),
		},
		"Invented": {
			reason: "Nothing can be taken of what nobody has.",
			list:   list("cpu", "1", "fantasy", "1"), has: list("cpu", "4", "gpu", "0"), want: list("cpu", "1"),
		},
		"Going": {
			reason: "What runs on a node that has nothing any more uses it until it is gone.",
			list:   list("cpu", "1", "pods", "1", "gpu", "1"), has: list("cpu", "0"), want: list("cpu", "1", "pods", "1"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Within(tc.list, tc.has); !Equal(got, tc.want) || len(got) != len(tc.want) {
				t.Errorf("%s\nWithin() = %v, want %v", tc.reason, got, tc.want)
			}
		})
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
		"Intractable": {
			reason: "Kubernetes computes minutes with such a quantity.",
			list:   list("cpu", "1e2147483647"),
			want:   "invalid offer: cpu is more than any cluster has (too many digits)",
		},
		"LongName": {
			reason: "The name goes into objects and messages.",
			list:   list(strings.Repeat("x", 318), "1"),
			want:   `invalid offer: the name of "` + strings.Repeat("x", 40) + `"... is longer than 317`,
		},
		"ManyMistakes": {
			reason: "A message goes into objects.",
			list:   list("a", "-1", "b", "-1", "c", "-1", "d", "-1", "e", "-1", "f", "-1", "g", "-1"),
			want: "invalid offer: a is negative (-1), b is negative (-1), c is negative (-1), d is negative (-1), e is negative (-1), " +
				"and 2 more",
		},
		"Many": {
			reason: "So many kinds of resources has no cluster.",
			list:   many(65),
			want:   "invalid offer: it has 65 resources, which is more than 64",
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
		"Whole": {
			reason: "More than the whole is the whole.", list: list("cpu", "1500u"), part: list("cpu", "4"), whole: list("cpu", "3"),
			want: list("cpu", "1500u"),
		},
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
			if got := Prorate(tc.list, tc.part, tc.whole); !Equal(tc.want, got) {
				t.Errorf("%s\ngot %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
