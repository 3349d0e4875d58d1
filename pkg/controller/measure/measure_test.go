// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/promquery"
)

var now = time.Unix(1_800_000_000, 0)

func sample(cluster string, value float64) promquery.Sample {
	return promquery.Sample{Labels: map[string]string{"cluster": cluster}, Value: value, At: now}
}

func TestKPIs(t *testing.T) {
	old, early := sample("id", 1), sample("id", 1)
	old.At, early.At = now.Add(-time.Minute), now.Add(2*time.Minute)
	for name, tc := range map[string]struct {
		reason  string
		samples []promquery.Sample
		err     error
		// only is what the single value is, and by what that of the cluster id or name is.
		only, by string
	}{
		"ID":      {reason: "One value that names the ID.", samples: []promquery.Sample{sample("id", 2)}, only: "2", by: "2"},
		"Name":    {reason: "One value that names the name.", samples: []promquery.Sample{sample("name", 0)}, only: "0", by: "0"},
		"Both":    {reason: "The ID goes first.", samples: []promquery.Sample{sample("name", 3), sample("id", 2)}, only: "Ambiguous", by: "2"},
		"Other":   {reason: "It is another one's.", samples: []promquery.Sample{sample("other", 2)}, only: "2", by: "NoData"},
		"Unnamed": {reason: "It names nobody.", samples: []promquery.Sample{{Value: 2, At: now}}, only: "2", by: "NoData"},
		"Nothing": {reason: "There is no value, which is not zero.", only: "NoData", by: "NoData"},
		"Several": {reason: "Which one?", samples: []promquery.Sample{sample("id", 2), sample("id", 2)}, only: "Ambiguous", by: "Ambiguous"},
		"NaN":     {reason: "It is no number.", samples: []promquery.Sample{sample("id", math.NaN())}, only: "NotANumber", by: "NotANumber"},
		"Inf":     {reason: "It is no number.", samples: []promquery.Sample{sample("id", math.Inf(-1))}, only: "NotANumber", by: "NotANumber"},
		"Old":     {reason: "It has expired.", samples: []promquery.Sample{old}, only: "Stale", by: "Stale"},
		"Early":   {reason: "It is from the future.", samples: []promquery.Sample{early}, only: "Stale", by: "Stale"},
		"None":    {reason: "Nobody was asked.", err: promquery.ErrNone, only: "NoPrometheus", by: "NoPrometheus"},
		"Down": {
			reason: "Nobody answered.", err: fmt.Errorf("q: %w", promquery.ErrUnavailable), only: "PrometheusUnavailable",
			by: "PrometheusUnavailable",
		},
		"Refused":   {reason: "The query is wrong.", err: promquery.ErrRefused, only: "QueryRefused", by: "QueryRefused"},
		"Unusable":  {reason: "The answer is too long.", err: promquery.ErrAnswer, only: "UnusableAnswer", by: "UnusableAnswer"},
		"NoCluster": {reason: "A label that is empty is not there.", samples: []promquery.Sample{sample("", 2)}, only: "2", by: "NoData"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := Answer{Samples: tc.samples, Err: tc.err}
			shown := func(f kpi.KPI, err error) string {
				if err != nil {
					return Reason(err)
				}
				want := kpi.KPI{Value: f.Value, Unit: "ms", Measured: now, Expires: now.Add(time.Minute)}
				if diff := cmp.Diff(want, f); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
				return fmt.Sprint(f.Value)
			}
			if got := shown(answer.Only(now, "ms", time.Minute)); got != tc.only {
				t.Errorf("%s\nonly: %s, want %s", tc.reason, got, tc.only)
			}
			if got := shown(answer.By("cluster").KPI(now, "ms", time.Minute, "id", Names{"id": "name"})); got != tc.by {
				t.Errorf("%s\nby the cluster: %s, want %s", tc.reason, got, tc.by)
			}
		})
	}
	// Who has no name of its own is not the one that no value names.
	if _, err := (Answer{Samples: []promquery.Sample{sample("", 2)}}).By("cluster").KPI(now, "ms",
		time.Minute, "id", nil); Reason(err) != "NoData" {
		t.Errorf("without a name: %v", err)
	}
}

func TestNamesOf(t *testing.T) {
	old, young := now.Add(-time.Hour), now
	for name, tc := range map[string]struct {
		reason   string
		clusters []Cluster
		want     Names
	}{
		"Ordinary": {"Each has a name of its own.", []Cluster{{"1", "a", old}, {"2", "b", young}}, Names{"1": "a", "2": "b"}},
		"AnID":     {"Nobody gets what was measured of the one with the ID.", []Cluster{{"1", "2", old}, {"2", "b", young}}, Names{"2": "b"}},
		"OwnID":    {"Nor does it need the name.", []Cluster{{"1", "1", old}}, Names{}},
		"Clash": {
			"Who comes later takes nothing away.", []Cluster{{"2", "a", young}, {"1", "b", old}, {"3", "a", old}}, Names{"1": "b", "3": "a"},
		},
		"Tie":      {"It does not depend on the order.", []Cluster{{"2", "a", old}, {"1", "a", old}}, Names{"1": "a"}},
		"Nameless": {"It is not named.", []Cluster{{"1", "", old}, {"2", "", old}}, Names{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, NamesOf(tc.clusters)); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
		})
	}
}
