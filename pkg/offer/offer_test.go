// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func TestSumExcept(t *testing.T) {
	offers := map[cluster.ID]corev1.ResourceList{
		"a": list("cpu", "1500m", "memory", "1Gi", "pods", "10"),
		"b": list("cpu", "500m", "memory", "512Mi", "pods", "5", "example.com/gpu", "2"),
	}
	cases := map[string]struct {
		reason string
		offers map[cluster.ID]corev1.ResourceList
		except cluster.ID
		want   corev1.ResourceList
	}{
		"Stranger": {
			reason: "A cluster that offers nothing gets the sum of all.",
			offers: offers, except: "c",
			want: list("cpu", "2", "memory", "1536Mi", "pods", "15", "example.com/gpu", "2"),
		},
		"Self": {
			reason: "A cluster must not be offered its own resources.",
			offers: offers, except: "b",
			want: list("cpu", "1500m", "memory", "1Gi", "pods", "10"),
		},
		"Nobody": {
			reason: "Without providers the resources that Liqo needs are there, as zero.",
			except: "c",
			want:   list("cpu", "0", "memory", "0", "pods", "0"),
		},
		"Unknown": {
			reason: "A resource that a provider does not mention counts as zero.",
			offers: map[cluster.ID]corev1.ResourceList{"a": list("cpu", "1")},
			want:   list("cpu", "1", "memory", "0", "pods", "0"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := SumExcept(tc.offers, tc.except)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nSumExcept(): -want +got\n%s", tc.reason, diff)
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

// TestSumIsNeverMoreThanOffered adds random offers and takes them away again.
func TestSumIsNeverMoreThanOffered(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		offers := map[cluster.ID]corev1.ResourceList{}
		var milli int64
		for _, id := range []cluster.ID{"a", "b", "c", "d"} {
			n := rnd.Int64N(1 << 40)
			offers[id] = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(n, resource.DecimalSI)}
			if id != "a" {
				milli += n
			}
		}
		cpu := SumExcept(offers, "a")[corev1.ResourceCPU]
		if got := cpu.MilliValue(); got != milli {
			t.Fatalf("SumExcept() = %d milli-CPU, want %d", got, milli)
		}
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
