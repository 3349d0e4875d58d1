// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placementpolicy

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/promquery"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// server is a Prometheus of which a test says what it answers, at the time of a clock.
type server struct {
	h       *harness
	samples map[string]float64 // By consumer.
	err     error
	late    time.Duration
	asked   int
}

func (s *server) Query(context.Context, string) ([]promquery.Sample, error) {
	s.asked++
	var samples []promquery.Sample
	for consumer, value := range s.samples {
		samples = append(samples, promquery.Sample{
			Labels: map[string]string{"consumer": consumer}, Value: value, At: s.h.clock.Now().Add(-s.late),
		})
	}
	return samples, s.err
}

// keeping returns a policy that uses the cheapest providers, as many as a delay needs.
func keeping() *v1alpha1.PlacementPolicy {
	p := cheapest()
	p.Spec.MaxProviders = nil
	p.Spec.Scaling = &v1alpha1.Scaling{
		Query: "delay", Unit: "ms", ConsumerLabel: "consumer", OffloadAbove: "200", UnoffloadBelow: "100",
		Window: &metav1.Duration{Duration: time.Minute}, Expiry: &metav1.Duration{Duration: time.Minute}, Min: 1, Max: new(int32(3)),
	}
	return p
}

// keep begins with a policy that keeps a KPI.
func keep(t *testing.T, policy *v1alpha1.PlacementPolicy) (*harness, *server) {
	t.Helper()
	h := begin(t, policy, consumer("c"), provider("a", "1"), provider("b", "2"), provider("d", "3"), provider("e", "4"))
	s := &server{h: h}
	h.r = New(Config{Client: h.client, Reader: snapshottest.Reader(h.client, ""), Recorder: h.recorder, Clock: h.clock, Asker: s})
	return h, s
}

// pass lets time pass, in steps in which the KPI is asked for.
func (h *harness) pass(d time.Duration) *v1alpha1.PlacementPolicy {
	h.t.Helper()
	var p *v1alpha1.PlacementPolicy
	for ; d > 0; d -= maxAskInterval {
		p, _ = h.decide(min(d, maxAskInterval))
	}
	return p
}

func measured(p *v1alpha1.PlacementPolicy) string {
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionMeasured)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

func (h *harness) events() string {
	var all []string
	for len(h.recorder.Events) > 0 {
		all = append(all, <-h.recorder.Events)
	}
	return strings.Join(all, "\n")
}

// TestKeep raises and lowers a delay.
func TestScaling(t *testing.T) {
	h, s := keep(t, keeping())
	s.samples = map[string]float64{"c": 150}
	p := h.pass(time.Minute)
	if got := h.chosen()["c"]; got != "a" || measured(p) != "True Measured" || h.last("c").Scaling.Value != "150" {
		t.Fatalf("inside: chosen %s, measured %s, %+v", got, measured(p), h.last("c").Scaling)
	}
	h.events()
	s.samples["c"] = 250
	h.pass(time.Minute)
	if last := h.last("c").Scaling; h.chosen()["c"] != "a" || last.Direction != "Up" ||
		last.SinceTime.Unix() != now.Add(75*time.Second).Unix() {
		t.Errorf("above, not for long enough: chosen %s, %+v", h.chosen()["c"], last)
	}
	// The daemon was killed.
	h.r = New(Config{Client: h.client, Reader: snapshottest.Reader(h.client, ""), Recorder: h.recorder, Clock: h.clock, Asker: s})
	if h.pass(15 * time.Second); h.chosen()["c"] != "a,b" || h.last("c").Scaling.SinceTime != nil {
		t.Errorf("above for a minute: chosen %s, %+v", h.chosen()["c"], h.last("c").Scaling)
	}
	if got := h.events(); got != "Normal ScaledUp 2 instead of 1 for consumer c, at 250 ms" {
		t.Errorf("events %q", got)
	}
	if h.pass(5 * time.Minute); h.chosen()["c"] != "a,b,d" || h.last("c").Scaling.Count != 3 {
		t.Errorf("above for ever: chosen %s", h.chosen()["c"])
	}
	s.samples["c"] = 150
	if h.pass(5 * time.Minute); h.chosen()["c"] != "a,b,d" {
		t.Errorf("inside again: chosen %s", h.chosen()["c"])
	}
	h.events()
	s.samples["c"] = 0
	if h.pass(75 * time.Second); h.chosen()["c"] != "a,b" {
		t.Errorf("below for a minute: chosen %s", h.chosen()["c"])
	}
	if got := h.events(); got != "Normal ScaledDown 2 instead of 3 for consumer c, at 0 ms" {
		t.Errorf("events %q", got)
	}
	if h.pass(5 * time.Minute); h.chosen()["c"] != "a" || h.last("c").Scaling.Count != 1 {
		t.Errorf("below for ever: chosen %s", h.chosen()["c"])
	}
}

// TestKeepHolds takes the KPI away, in each way, when two providers are used: they stay.
func TestKeepHolds(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		breaks func(*harness, *server)
		want   string
	}{
		"NoData":   {"The series is gone.", func(_ *harness, s *server) { s.samples = nil }, "NoData"},
		"Other":    {"The series is another consumer's.", func(_ *harness, s *server) { s.samples = map[string]float64{"x": 0} }, "NoData"},
		"NaN":      {"It is 0/0.", func(_ *harness, s *server) { s.samples["c"] = math.NaN() }, "NotANumber"},
		"Inf":      {"It is 1/0.", func(_ *harness, s *server) { s.samples["c"] = math.Inf(1) }, "NotANumber"},
		"Stale":    {"The answer is old.", func(_ *harness, s *server) { s.samples["c"], s.late = 0, time.Hour }, "Stale"},
		"OurClock": {"Our clock was set back.", func(_ *harness, s *server) { s.samples["c"], s.late = 0, -time.Hour }, "Stale"},
		"Down":     {"Prometheus is down.", func(_ *harness, s *server) { s.err = promquery.ErrUnavailable }, "PrometheusUnavailable"},
		"Refused":  {"The query is wrong.", func(_ *harness, s *server) { s.err = promquery.ErrRefused }, "QueryRefused"},
		"Unusable": {"The answer is too long.", func(_ *harness, s *server) { s.err = promquery.ErrAnswer }, "UnusableAnswer"},
		"None": {"The flag was taken away.", func(h *harness, _ *server) {
			h.r = New(Config{
				Client: h.client, Reader: snapshottest.Reader(h.client, ""), Recorder: h.recorder, Clock: h.clock, Asker: promquery.None{},
			})
		}, "NoPrometheus"},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := keep(t, keeping())
			s.samples = map[string]float64{"c": 250}
			if h.pass(90 * time.Second); h.chosen()["c"] != "a,b" {
				t.Fatalf("before: chosen %s", h.chosen()["c"])
			}
			h.events()
			tc.breaks(h, s)
			p := h.pass(150 * time.Second)
			if got := h.chosen()["c"]; got != "a,b" || measured(p) != "False "+tc.want || condition(p) != "True Decided" {
				t.Errorf("%s\nchosen %s, measured %s, %s", tc.reason, got, measured(p), condition(p))
			}
			if last := h.last("c").Scaling; last.Count != 2 || last.Value != "250" || last.Unknown == "" {
				t.Errorf("%s\nkept %+v", tc.reason, last)
			}
			if events := h.events(); !strings.HasPrefix(events, "Warning "+tc.want+" ") || strings.Contains(events, "\n") {
				t.Errorf("%s\nevents %q, want one", tc.reason, events)
			}
		})
	}
}

// TestKeepNamesake has a consumer that calls itself by the ID of one of another policy: it has no KPI, and not the other's.
func TestKeepNamesake(t *testing.T) {
	policy := keeping()
	policy.Spec.AppliesTo = v1alpha1.AppliesTo{Scope: v1alpha1.ScopeConsumers, Consumers: []string{"evil"}}
	evil := consumer("evil")
	evil.Status.ClusterName = "c"
	h := begin(t, policy, consumer("c"), evil, provider("a", "1"), provider("b", "2"))
	s := &server{h: h, samples: map[string]float64{"c": 250}}
	h.r = New(Config{Client: h.client, Reader: snapshottest.Reader(h.client, ""), Recorder: h.recorder, Clock: h.clock, Asker: s})
	if p := h.pass(90 * time.Second); measured(p) != "False NoData" || h.last("evil").Scaling.Value != "" {
		t.Errorf("measured %s, last %+v", measured(p), h.last("evil").Scaling)
	}
}

// TestKeepAlone has no KPI from the beginning, and one number for all consumers.
func TestKeepAlone(t *testing.T) {
	policy := keeping()
	policy.Spec.Scaling.ConsumerLabel, policy.Spec.Scaling.Min = "", 2
	h, s := keep(t, policy)
	if p := h.pass(time.Minute); h.chosen()["c"] != "a,b" || measured(p) != "False NoData" {
		t.Errorf("at first: chosen %s, measured %s", h.chosen()["c"], measured(p))
	}
	s.samples = map[string]float64{"": 201}
	if h.pass(2 * time.Minute); h.chosen()["c"] != "a,b,d" {
		t.Errorf("above: chosen %s", h.chosen()["c"])
	}
	s.samples["second"] = 0
	if p := h.pass(2 * time.Minute); h.chosen()["c"] != "a,b,d" || measured(p) != "False Ambiguous" {
		t.Errorf("two values: chosen %s, measured %s", h.chosen()["c"], measured(p))
	}
	h.change(policy, func() { policy.Spec.Scaling, policy.Generation = nil, 2; policy.Spec.MaxProviders = new(int32(1)) })
	if p := h.pass(2 * time.Minute); h.chosen()["c"] != "a" || measured(p) != "" || h.last("c").Scaling != nil {
		t.Errorf("scaled no more: chosen %s, measured %s", h.chosen()["c"], measured(p))
	}
	h.change(policy, func() { policy.Spec = keeping().Spec; policy.Spec.Scaling.OffloadAbove = "50"; policy.Generation = 3 })
	if p := h.pass(2 * time.Minute); h.chosen()["c"] != "a" || condition(p) != "False InvalidCriteria" {
		t.Errorf("thresholds the wrong way round: chosen %s, %s", h.chosen()["c"], condition(p))
	}
}

// TestKeepZones uses one zone more.
func TestKeepZones(t *testing.T) {
	policy := keeping()
	policy.Spec.Scaling.GroupBy = "zone"
	h := begin(t, policy, consumer("c"))
	for id, zone := range map[string]string{"a": "near", "b": "far", "d": "far", "e": "farther", "f": ""} {
		p := provider(id, fmt.Sprint(id[0]))
		if zone != "" {
			p.Labels = map[string]string{"zone": zone}
		}
		if err := h.client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	h.r = New(Config{
		Client: h.client, Reader: snapshottest.Reader(h.client, ""), Recorder: h.recorder, Clock: h.clock,
		Asker: &server{h: h, samples: map[string]float64{"c": 250}},
	})
	if h.pass(time.Minute); h.chosen()["c"] != "a" {
		t.Errorf("at first: chosen %s", h.chosen()["c"])
	}
	if h.pass(15 * time.Second); h.chosen()["c"] != "a,b,d" || h.last("c").Scaling.Count != 2 {
		t.Errorf("one zone more: chosen %s", h.chosen()["c"])
	}
	if h.pass(150 * time.Second); h.chosen()["c"] != "a,b,d,e" || h.last("c").Scaling.Count != 3 {
		t.Errorf("all zones: chosen %s, %+v", h.chosen()["c"], h.last("c").Scaling)
	}
}

// TestKeepAsks counts what Prometheus is asked, and what is written.
func TestKeepAsks(t *testing.T) {
	h, s := keep(t, keeping())
	s.samples = map[string]float64{"c": 150}
	for i := range 150 { // Two seconds each.
		s.samples["c"] = 110 + float64(i%80)
		h.decide(pause)
	}
	if s.asked < 300/15-2 || s.asked > 300/15+1 {
		t.Errorf("asked %d times in five minutes, want every 15 s", s.asked)
	}
	if h.writes > 6 {
		t.Errorf("%d writes in five minutes in which nothing has changed", h.writes)
	}
}

// TestExampleDelay raises the delay of the example, and lowers it.
func TestExampleDelay(t *testing.T) {
	all := examples(t)
	i := slices.IndexFunc(all, func(p v1alpha1.PlacementPolicy) bool { return p.Name == "delay" })
	if i < 0 {
		t.Fatal("there is no example that keeps a delay")
	}
	policy := &all[i]
	policy.Name, policy.Generation = "cheapest", 1 // By which the harness calls it.
	objects := []client.Object{policy, consumer("c")}
	for i, id := range []string{"near", "next", "far", "farther"} {
		p := offer(id, "eu", "arm64", map[string]float64{"roundTripTime": float64(10 * (i + 1))})
		objects = append(objects, &p)
	}
	h := begin(t, objects...)
	s := &server{h: h, samples: map[string]float64{"c": 150}}
	h.r = New(Config{Client: h.client, Reader: snapshottest.Reader(h.client, ""), Recorder: h.recorder, Clock: h.clock, Asker: s})
	for _, step := range []struct {
		delay float64
		after time.Duration
		want  string
	}{
		{150, time.Minute, "near"},
		{250, 2 * time.Minute, "near"},
		{250, maxAskInterval, "near,next"},
		{math.NaN(), 10 * time.Minute, "near,next"},
		{150, 10 * time.Minute, "near,next"},
		{250, 10 * time.Minute, "far,near,next"},
		{50, 2*time.Minute + maxAskInterval, "near,next"},
		{50, 10 * time.Minute, "near"},
	} {
		s.samples["c"] = step.delay
		if h.pass(step.after); h.chosen()["c"] != step.want {
			t.Errorf("at %v ms for %s: chosen %s, want %s", step.delay, step.after, h.chosen()["c"], step.want)
		}
	}
}
