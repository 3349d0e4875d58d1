// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package apiv1

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
)

func TestLabels(t *testing.T) {
	numbered := func(of string, count int) map[string]string {
		all := map[string]string{}
		for i := range count {
			all[fmt.Sprintf("%s-%03d", of, i)] = of
		}
		return all
	}
	long := strings.Repeat("v", maxValue+1)
	first := Labels(numbered("b", 30))
	first["a-000"], first["a-001"] = "a", "a"
	for name, tc := range map[string]struct {
		reason      string
		given, seen map[string]string
		want        Labels
	}{
		"None": {reason: "There are none."},
		"Given": {
			"What people give goes before what Liqo shows.", map[string]string{"r": "it"}, map[string]string{"r": "de", "z": "1"},
			Labels{"r": "it", "z": "1"},
		},
		"Many": {"What people give is not pushed out.", numbered("b", 30), numbered("a", 100), first},
		"Huge": {"Nothing grows without bound.", numbered("b", 1000), nil, numbered("b", maxLabels)},
		"Long": {
			"What is too long is left out, and nothing else takes its place.", map[string]string{"r": long, strings.Repeat("k", maxKey+1): "1"},
			map[string]string{"r": "de", "z": "1", "l": long}, Labels{"z": "1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, labels(tc.given, tc.seen)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHistoryOfProvider(t *testing.T) {
	got := ProviderOf(&v1alpha1.Provider{}, OfProvider{Seen: []kpi.Window{
		{Name: kpi.Availability1h, Slot: 5 * time.Minute, Slots: 12, Up: []int64{300, 60}, Last: 2 * time.Minute},
	}})
	want := []Window{{Name: "availability1h", SlotSeconds: 300, Slots: 12, UpSeconds: []int64{300, 60}, LastSeconds: 120}}
	if diff := cmp.Diff(want, got.History); diff != "" || got.Labels != nil || got.Link != nil {
		t.Errorf("%+v: -want +got:\n%s", got, diff)
	}
}
