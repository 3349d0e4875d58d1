// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
)

// FuzzParse checks that what Parse accepts is an offer that can be used, and is read again as it was.
func FuzzParse(f *testing.F) {
	f.Add(changed(f, "", ""))
	f.Add(changed(f, `"cpu": "4"`, `"cpu": "1e1.5"`))
	f.Add(changed(f, `"kind": "Cluster"`, `"kind": "Broker"`))
	f.Add([]byte(`{"plans":[{"range":{}}]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := Parse(data)
		if err != nil {
			return
		}
		for _, plan := range o.Plans {
			granted, err := plan.Grant(nil)
			if err != nil {
				t.Fatalf("the minimum of plan %s is not granted: %v", plan.ID, err)
			}
			for _, amount := range []Resources{granted, plan.most()} {
				if _, err := plan.Cost(amount); err != nil {
					t.Fatalf("plan %s has no price for %s: %v", plan.ID, amount, err)
				}
			}
		}
		written, err := encode(o)
		if err != nil {
			t.Fatalf("write it: %v", err)
		}
		if len(written) > MaxSize {
			return
		}
		again, err := Parse(written)
		if diff := cmp.Diff(o, again); err != nil || diff != "" {
			t.Fatalf("read it again: %v, -first +second\n%s", err, diff)
		}
	})
}

// FuzzQuantity checks that each quantity is one of Kubernetes, of the same value, and is read again as it is written.
func FuzzQuantity(f *testing.F) {
	for _, text := range []string{"8", "500m", "16Gi", "1.953125Ki", "8GB", "-1", "1e1.5", "0", "1e999999999", "NaN", "1Pi", "0.001"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := ParseQuantity(text)
		if err != nil {
			return
		}
		if again, err := ParseQuantity(q.String()); err != nil || again != q {
			t.Fatalf("%q is written as %q, which is read as %q, %v", text, q, again, err)
		}
		theirs, err := resource.ParseQuantity(text)
		if ours := q.Kubernetes(); err != nil || ours.Cmp(theirs) != 0 {
			t.Fatalf("%q is %s for us, and %s, %v for Kubernetes", text, ours.String(), theirs.String(), err)
		}
	})
}

// FuzzDuration checks that a duration is within its bounds, and is read again as it is written.
func FuzzDuration(f *testing.F) {
	for _, text := range []string{"P30D", "PT1H30M", "P2W", "PT0S", "P36500DT876000H52560000M", "P1M", "-PT1H"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err != nil {
			return
		}
		if err := checkDuration(d); err != nil {
			t.Fatalf("%q is read, but %v", text, err)
		}
		if again, err := ParseDuration(d.String()); err != nil || again != d {
			t.Fatalf("%q is written as %q, which is read as %q, %v", text, d, again, err)
		}
	})
}

// FuzzAmount checks that money is read again as it is written.
func FuzzAmount(f *testing.F) {
	for _, text := range []string{"0", "0.10", "999999999.999999999", "-1", "1e9", "1,5"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAmount(text)
		if err != nil {
			return
		}
		if again, err := ParseAmount(a.String()); err != nil || again != a {
			t.Fatalf("%q is written as %q, which is read as %q, %v", text, a, again, err)
		}
	})
}
