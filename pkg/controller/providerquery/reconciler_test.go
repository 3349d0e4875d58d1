// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package providerquery

import (
	"context"

	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/promquery"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

var now = time.Unix(1_800_000_000, 0)

// harness is a reconciler with a Prometheus of which a test says what it answers.
type harness struct {
	t        *testing.T
	client   client.Client
	clock    *testingclock.FakeClock
	recorder *record.FakeRecorder
	r        *Reconciler
	writes   int // Of providers.

	values map[string]float64 // By the name of a cluster.
	err    error
}

func (h *harness) Query(_ context.Context, query string) ([]promquery.Sample, error) {
	var samples []promquery.Sample
	for name, value := range h.values {
		samples = append(samples, promquery.Sample{Labels: map[string]string{"cluster": name, "query": query}, Value: value, At: h.clock.Now()})
	}
	return samples, h.err
}

func query(name string) *v1alpha1.ProviderQuery {
	return &v1alpha1.ProviderQuery{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
		Spec: v1alpha1.ProviderQuerySpec{
			Query: "errors", Unit: "1/s", ProviderLabel: "cluster",
			Interval: &metav1.Duration{Duration: 10 * time.Second}, Expiry: &metav1.Duration{Duration: 2 * time.Minute},
		},
	}
}

func provider(id, name string) *v1alpha1.Provider {
	return &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: id}, Status: v1alpha1.ProviderStatus{ClusterName: name}}
}

func begin(t *testing.T, objects ...client.Object) *harness {
	t.Helper()
	h := &harness{t: t, clock: testingclock.NewFakeClock(now), recorder: record.NewFakeRecorder(100)}
	h.client = snapshottest.NewClient(t, snapshottest.OnPatch(func(o client.Object) {
		if _, ok := o.(*v1alpha1.Provider); ok {
			h.writes++
		}
	}), objects...)
	h.r = New(Config{Client: h.client, Recorder: h.recorder, Clock: h.clock, Asker: h})
	return h
}

// ask lets some time pass, and returns what is known then, and the condition of the query.
func (h *harness) ask(after time.Duration, name string) (values map[string]string, condition string) {
	h.t.Helper()
	h.clock.Step(after)
	result, err := h.r.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: name}})
	if err != nil {
		h.t.Fatalf("Reconcile(): %v", err)
	}
	var q v1alpha1.ProviderQuery
	if err := h.client.Get(h.t.Context(), client.ObjectKey{Name: name}, &q); client.IgnoreNotFound(err) != nil {
		h.t.Fatalf("Get(): %v", err)
	} else if err == nil {
		c := meta.FindStatusCondition(q.Status.Conditions, v1alpha1.ConditionMeasured)
		condition = string(c.Status) + " " + c.Reason
		if result.RequeueAfter != 10*time.Second {
			h.t.Errorf("again after %s", result.RequeueAfter)
		}
	}
	var providers v1alpha1.ProviderList
	if err := h.client.List(h.t.Context(), &providers); err != nil {
		h.t.Fatalf("List(): %v", err)
	}
	values = map[string]string{}
	for _, p := range providers.Items {
		for _, f := range p.Status.QueriedKPIs {
			if f.Unit != "1/s" || f.ExpirationTime.Sub(f.MeasuredTime.Time) != 2*time.Minute {
				h.t.Errorf("provider %s has %+v", p.Name, f)
			}
			values[p.Name] += f.Name + "=" + string(f.Value) + " "
		}
	}
	return values, condition
}

// TestReconcile names providers by ID, by name, by a name that two of them have, and by the ID of another.
func TestReconcile(t *testing.T) {
	first := provider("4", "twin")
	first.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	second := provider("3", "twin")
	second.CreationTimestamp = metav1.NewTime(now)
	h := begin(t, query("errors"), query("more"), provider("1", "one"), provider("2", "two"), second, first, provider("5", "1"))
	h.values = map[string]float64{"1": 0.5, "two": 2, "twin": 3, "other": 4}
	got, condition := h.ask(0, "errors")
	if diff := cmp.Diff(map[string]string{"1": "errors=0.5 ", "2": "errors=2 ", "4": "errors=3 "}, got); diff != "" ||
		condition != "True Measured" {
		t.Errorf("%s, -want +got\n%s", condition, diff)
	}
	got, _ = h.ask(0, "more")
	if diff := cmp.Diff(map[string]string{"1": "errors=0.5 more=0.5 ", "2": "errors=2 more=2 ", "4": "errors=3 more=3 "}, got); diff != "" {
		t.Errorf("two queries: -want +got\n%s", diff)
	}
	if events := len(h.recorder.Events); events != 2 {
		t.Errorf("%d events, want one for each query", events)
	}
	// What is gone is known until it expires, and a query that is gone is forgotten.
	h.values = map[string]float64{"1": 0.5, "two": math.NaN()}
	if got, condition = h.ask(119*time.Second, "errors"); got["2"] != "errors=2 more=2 " || condition != "True Measured" {
		t.Errorf("no number: %s, %v", condition, got)
	}
	if got, _ = h.ask(time.Second, "errors"); got["2"] != "more=2 " {
		t.Errorf("expired: %v", got)
	}
	if err := h.client.Delete(t.Context(), query("more")); err != nil {
		t.Fatal(err)
	}
	got, _ = h.ask(0, "more")
	if diff := cmp.Diff(map[string]string{"1": "errors=0.5 "}, got); diff != "" {
		t.Errorf("forgotten: -want +got\n%s", diff)
	}
}

// TestFailures breaks the query in each way: what was known stays until it expires.
func TestFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		breaks func(*harness)
		want   string
	}{
		"Down":    {"Nobody answers.", func(h *harness) { h.err = promquery.ErrUnavailable }, "False PrometheusUnavailable"},
		"None":    {"There is nobody to ask.", func(h *harness) { h.err = promquery.ErrNone }, "False NoPrometheus"},
		"Refused": {"The query is wrong.", func(h *harness) { h.err = promquery.ErrRefused }, "False QueryRefused"},
		"NoData":  {"There is no value.", func(h *harness) { h.values = nil }, "False NoData"},
		"NaN":     {"There is no number.", func(h *harness) { h.values["1"] = math.NaN() }, "False NotANumber"},
		"Others":  {"The values are of others.", func(h *harness) { h.values = map[string]float64{"x": 1} }, "False NoData"},
	} {
		t.Run(name, func(t *testing.T) {
			h := begin(t, query("errors"), provider("1", "one"))
			h.values = map[string]float64{"1": 0.5}
			h.ask(0, "errors")
			tc.breaks(h)
			for range 3 {
				if got, condition := h.ask(time.Second, "errors"); condition != tc.want || got["1"] != "errors=0.5 " {
					t.Errorf("%s\n%s, %v: want %s", tc.reason, condition, got, tc.want)
				}
			}
			<-h.recorder.Events
			if event := <-h.recorder.Events; !strings.HasPrefix(event, "Warning "+strings.Fields(tc.want)[1]) || len(h.recorder.Events) > 0 {
				t.Errorf("%s\nevent %q, and %d more", tc.reason, event, len(h.recorder.Events))
			}
		})
	}
}

// TestNameTaken has a query that goes by the name of one of the broker's KPIs.
func TestNameTaken(t *testing.T) {
	p := provider("1", "one")
	h := begin(t, query("errors"), p)
	h.values = map[string]float64{"1": 0.5}
	h.ask(0, "errors")
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	p.Status.KPIs = []v1alpha1.KPI{{Name: "errors", KPIValue: v1alpha1.KPIValue{Value: "1", Unit: "ratio"}}}
	if err := h.client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if got, condition := h.ask(time.Minute, "errors"); condition != "False NameTaken" || len(got) > 0 {
		t.Errorf("%s, %v", condition, got)
	}
}

// TestWrites lets a value wander, and then stay.
func TestWrites(t *testing.T) {
	h := begin(t, query("errors"), provider("1", "one"))
	for i := range 61 {
		h.values = map[string]float64{"1": float64(i)}
		h.ask(10*time.Second, "errors")
	}
	// Another value is written after a third of the two minutes that it counts.
	if h.writes < 14 || h.writes > 16 {
		t.Errorf("%d writes in ten minutes", h.writes)
	}
}
