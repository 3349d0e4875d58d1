// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestReadable(t *testing.T) {
	for is, want := range map[string][2]string{ // Rounded down, and up.
		"0": {"0", "0"}, "1": {"1", "1"}, "1048575": {"1048575", "1048575"}, "1Mi": {"1Mi", "1Mi"}, "1048577": {"1Mi", "2Mi"},
		"20137M": {"19204Mi", "19205Mi"}, "19608517696": {"18700Mi", "18701Mi"}, "40274000000": {"38408Mi", "38409Mi"}, "1024Mi": {"1Gi", "1Gi"},
		"1048576.5": {"1Mi", "1Mi"}, "1e3": {"1e3", "1e3"}, "3e9": {"2861Mi", "2862Mi"}, "9E": {"8583068847656Mi", "8583068847657Mi"},
		"1e999": {"1e999", "1e999"},
	} {
		list := corev1.ResourceList{
			"memory": resource.MustParse(is), "ephemeral-storage": resource.MustParse(is), "hugepages-2Mi": resource.MustParse(is),
			"cpu": resource.MustParse("1500m"), "example.com/bytes": resource.MustParse("2000000"),
		}
		for i, got := range []corev1.ResourceList{Readable(list), ReadableUse(list)} {
			for _, name := range []corev1.ResourceName{"memory", "ephemeral-storage", "hugepages-2Mi"} {
				if q := got[name]; q.String() != want[i] {
					t.Errorf("%s of %s: %s, want %s", is, name, q.String(), want[i])
				}
			}
			if !Identical(corev1.ResourceList{"cpu": got["cpu"], "x": got["example.com/bytes"]},
				corev1.ResourceList{"cpu": resource.MustParse("1500m"), "x": resource.MustParse("2000000")}) {
				t.Errorf("other resources are %v", got)
			}
		}
		if !Identical(list, list) || Identical(list, nil) {
			t.Errorf("%s: a list is like itself, and not like none", is)
		}
	}
	if Readable(nil) != nil || ReadableUse(nil) != nil {
		t.Error("nothing is something")
	}
	if Identical(corev1.ResourceList{"memory": resource.MustParse("1024Ki")}, corev1.ResourceList{"memory": resource.MustParse("1048576")}) {
		t.Error("the same amount is written in two ways")
	}
}
