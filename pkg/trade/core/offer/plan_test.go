// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGrant(t *testing.T) {
	o := parse(t, "", "")
	small, flexible := o.Plans[0], o.Plans[1]
	cases := map[string]struct {
		reason  string
		plan    Plan
		request Resources
		want    Resources
		cost    string
		err     string
	}{
		"Fixed": {
			reason: "Fixed resources come as they are.", plan: small, request: list(t, "cpu", "1"), want: small.Resources, cost: "0.05 EUR/h",
		},
		"FixedAll": {
			reason: "All of them can be requested.", plan: small, request: small.Resources, want: small.Resources, cost: "0.05 EUR/h",
		},
		"FixedMore":  {reason: "More cannot.", plan: small, request: list(t, "cpu", "4001m"), err: "cpu: 4001m of at most 4"},
		"FixedOther": {reason: "Others cannot.", plan: small, request: list(t, "nvidia.com/gpu", "1"), err: "nvidia.com/gpu: 1 of at most 0"},
		"Minimum": {
			reason: "Who requests nothing gets the minimum.", plan: flexible, want: list(t, "cpu", "2", "memory", "4Gi", "pods", "10"),
			cost: "1.88 EUR/d",
		},
		"BelowMin": {
			reason: "So does who requests less.", plan: flexible, request: list(t, "cpu", "1"),
			want: list(t, "cpu", "2", "memory", "4Gi", "pods", "10"), cost: "1.88 EUR/d",
		},
		"OnTheGrid": {
			reason: "A step is granted as it is.", plan: flexible, request: list(t, "cpu", "2500m", "memory", "6Gi"),
			want: list(t, "cpu", "2500m", "memory", "6Gi", "pods", "10"), cost: "2.2 EUR/d",
		},
		"NextStep": {
			reason: "Otherwise it is the next step.", plan: flexible, request: list(t, "cpu", "2501m", "memory", "5Gi", "pods", "11"),
			want: list(t, "cpu", "3", "memory", "6Gi", "pods", "20"), cost: "2.32 EUR/d",
		},
		"NoMinimum": {
			reason: "What has no minimum begins with a step.", plan: flexible, request: list(t, "nvidia.com/gpu", "1"),
			want: list(t, "cpu", "2", "memory", "4Gi", "pods", "10", "nvidia.com/gpu", "1"), cost: "13.88 EUR/d",
		},
		"Maximum":     {reason: "All can be had.", plan: flexible, request: flexible.Range.Max, want: flexible.Range.Max, cost: "89.96 EUR/d"},
		"MoreThanMax": {reason: "More cannot.", plan: flexible, request: list(t, "memory", "257Gi"), err: "memory: 257Gi of at most 256Gi"},
		"NotThere": {
			reason: "Others cannot.", plan: flexible, request: list(t, "example.com/fpga", "1"), err: "example.com/fpga: 1 of at most 0",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.plan.Grant(tc.request)
			if !matches(err, tc.err) || err != nil && !errors.Is(err, ErrTooMuch) {
				t.Fatalf("%s\nGrant() error = %v, want %q", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nGrant(): -want +got\n%s", tc.reason, diff)
			}
			if tc.err != "" {
				return
			}
			if cost, err := tc.plan.Cost(got); err != nil || cost.String() != tc.cost {
				t.Errorf("%s\nCost() = %s, %v, want %s", tc.reason, cost, err, tc.cost)
			}
		})
	}
}

func TestCostOfWhatIsNotGranted(t *testing.T) {
	o := parse(t, "", "")
	cases := map[string]struct {
		reason  string
		plan    Plan
		granted Resources
	}{
		"Less":     {reason: "Fixed resources are not divided.", plan: o.Plans[0], granted: list(t, "cpu", "1", "memory", "1Gi", "pods", "1")},
		"BelowMin": {reason: "It is below the minimum.", plan: o.Plans[1], granted: list(t, "cpu", "1", "memory", "4Gi", "pods", "10")},
		"Between":  {reason: "It is between two steps.", plan: o.Plans[1], granted: list(t, "cpu", "2100m", "memory", "4Gi", "pods", "10")},
		"More":     {reason: "It is above the maximum.", plan: o.Plans[1], granted: list(t, "cpu", "2000", "memory", "4Gi", "pods", "10")},
		"Part":     {reason: "Something is missing.", plan: o.Plans[1], granted: list(t, "cpu", "2")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if cost, err := tc.plan.Cost(tc.granted); !errors.Is(err, ErrNotGranted) {
				t.Errorf("%s\nCost() = %s, %v, want ErrNotGranted", tc.reason, cost, err)
			}
		})
	}
}

// TestGrantOfRandomRequests checks what makes a grant: it covers the request, a step less does not, and it has
// an exact price that is not lower than that of less.
func TestGrantOfRandomRequests(t *testing.T) {
	plan, r := parse(t, "", "").Plans[1], rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		request := Resources{}
		for name, most := range plan.Range.Max {
			request[name] = newQuantity(1+r.Int64N(most.milli), false)
		}
		granted, err := plan.Grant(request)
		if err != nil || !granted.Covers(request) || !plan.Range.Max.Covers(granted) {
			t.Fatalf("Grant(%s) = %s, %v", request, granted, err)
		}
		for name := range granted {
			if less := granted[name].milli - plan.Range.Step[name].milli; less >= plan.Range.Min[name].milli && less >= request[name].milli {
				t.Fatalf("Grant(%s) = %s: a step less of %s is enough", request, granted, name)
			}
		}
		price, err := plan.Cost(granted)
		if err != nil || price.Compare(plan.Price) <= 0 {
			t.Fatalf("Cost(%s) = %s, %v", granted, price, err)
		}
	}
}
