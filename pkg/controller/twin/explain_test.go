// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package twin

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/twin/planning"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// read reads the namespace as the controller does.
func (h *harness) read() (*corev1.Namespace, *snapshot.Twin) {
	h.t.Helper()
	var ns corev1.Namespace
	if err := h.client.Get(h.t.Context(), client.ObjectKey{Name: namespace}, &ns); err != nil {
		h.t.Fatal(err)
	}
	twin, err := h.r.reader.Twin(h.t.Context(), &ns)
	if err != nil {
		h.t.Fatal(err)
	}
	return &ns, twin
}

// TestPreview looks at plans before they are made, where they depend on what is remembered: it sees the plan that is made then, and
// that changes nothing.
func TestPreview(t *testing.T) {
	keeps := policy(60)
	keeps.Spec.Scaling = &v1alpha1.Scaling{}
	refused := offloaded(providerA, providerB)
	liqotest.Refuse(refused[1].(*v09.NamespaceOffloading), providerA, began)
	both := []client.Object{ready(providerA), ready(providerB)}
	cases := map[string]struct {
		reason  string
		objects []client.Object
	}{
		"Refused": {
			"A provider that has refused for long is noted by the plan, and not by who looks at it.",
			slices.Concat(refused, workload("liqo-provider-a", "web-0"), both),
		},
		"Leveled": {
			"So are the replicas that there were.", slices.Concat(offloaded(providerA, providerB), workload("", "web-0"),
				workload("liqo-provider-a", "web-1", "web-2", "web-3"), both, []client.Object{keeps, chooses(providerA, providerB)}),
		},
		"Drained": {
			"So is since when pods serve.", slices.Concat(offloaded(providerA, providerB),
				workload("liqo-provider-a", "web-0", "web-1", "web-2", "web-3"), []client.Object{off(providerA), ready(providerB)}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clock := testingclock.NewFakeClock(began)
			h := start(t, tc.objects...)
			p, unseen := h.newPlanner(clock), h.newPlanner(clock)
			for range 20 {
				remembers := p.Remembers(namespace)
				ns, twin := h.read()
				seen, seenAgain := p.Preview(ns, twin)
				if p.Remembers(namespace) != remembers {
					t.Fatalf("%s\nwho looks makes the planner remember the namespace", tc.reason)
				}
				if events := h.events(); events != "" {
					t.Fatalf("%s\nwho looks tells others: %s", tc.reason, events)
				}
				ns, twin = h.read()
				made, again := p.Plan(t.Context(), ns, twin)
				ns, twin = h.read()
				alone, aloneAgain := unseen.Plan(t.Context(), ns, twin)
				if diff := cmp.Diff(alone, made); diff != "" || again != aloneAgain {
					t.Fatalf("%s\nwho looks changes what is planned then: -unseen +seen, after %s and %s\n%s", tc.reason, aloneAgain, again, diff)
				}
				h.events()
				if diff := cmp.Diff(made, seen); diff != "" || slices.Equal(made.Select, []cluster.ID{providerA.ID, providerB.ID}) &&
					again != seenAgain {
					t.Errorf("%s\nthe plan is made after %s, and was seen after %s: -made +seen\n%s", tc.reason, again, seenAgain, diff)
				}
				clock.Step(7 * time.Second)
			}
		})
	}
}

// TestExplain asks why pods of namespaces wait.
func TestExplain(t *testing.T) {
	foreign := offloaded(providerA)
	foreign[1].SetLabels(nil)
	older := liqotest.TwinNamespace("older", consumer)
	older.Name = "a-" + older.Name
	cases := map[string]struct {
		reason  string
		objects []client.Object
		most    int
		none    bool
		waiting string
		pod     string // Its place, plan and reason.
	}{
		"Runs": {
			reason:  "What runs has no reason.",
			objects: slices.Concat(offloaded(providerA), workload("liqo-provider-a", "web-0"), []client.Object{ready(providerA)}),
			pod:     "OnProvider  ",
		},
		"NoProvider": {
			reason: "Nothing can be used.", objects: slices.Concat([]client.Object{liqotest.TwinNamespace(namespace, consumer)},
				workload("", "web-0")),
			waiting: planning.ReasonNoProvider, pod: "Nowhere  no provider takes new pods",
		},
		"Undecided": {
			reason:  "The policy has chosen nothing.",
			objects: slices.Concat(offloaded(providerA), workload("liqo-provider-a", "web-0"), []client.Object{ready(providerA), policy(60)}),
			waiting: planning.ReasonUndecided, pod: "OnProvider Stay the policy of its namespace has not chosen any provider yet",
		},
		"OnlyCopy": {
			reason: "The only copy of a workload does not move.",
			objects: slices.Concat(offloaded(providerA, providerB), workload("liqo-provider-a", "db-0"),
				[]client.Object{off(providerA), ready(providerB)}),
			pod: "OnProvider Stay it is the last ready replica of its workload",
		},
		"Foreign": {
			reason: "Somebody else offloads it.", objects: slices.Concat(foreign, workload("", "web-0"), []client.Object{ready(providerA)}),
			waiting: planning.ReasonForeignOffloading, pod: "Nowhere  no provider takes new pods",
		},
		"TooMany": {
			reason: "The consumer has as many as it may.", most: 1, waiting: planning.ReasonTooMany,
			objects: slices.Concat([]client.Object{older, liqotest.TwinNamespace(namespace, consumer), ready(providerA)}, workload("", "web-0")),
			pod:     "Nowhere  no provider takes new pods",
		},
		"Absent": {reason: "There is no such namespace.", none: true},
		"Not":    {reason: "It is no consumer's.", objects: []client.Object{&corev1.Namespace{}}, none: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, o := range tc.objects {
				if o.GetName() == "" {
					o.SetName(namespace)
				}
			}
			h := start(t, tc.objects...)
			e := &planning.Explainer{Client: h.client, Reader: h.r.reader, Planner: h.r.planner, MaxNamespaces: tc.most}
			explained, ok, err := e.Explain(t.Context(), namespace)
			if err != nil || ok == tc.none {
				t.Fatalf("%s\nExplain(): %t, %v", tc.reason, ok, err)
			}
			if tc.none {
				return
			}
			waiting := ""
			if explained.Waiting != nil {
				waiting = explained.Waiting.Reason
			}
			var pods []string
			for _, p := range explained.Pods.Items {
				pods = append(pods, strings.Join([]string{p.At, p.Plan, p.Why}, " "))
			}
			if waiting != tc.waiting || !slices.Equal(pods, []string{tc.pod}) {
				t.Errorf("%s\nnew pods wait for %q, want %q; the pod is %q, want %q", tc.reason, waiting, tc.waiting, pods, tc.pod)
			}
			if explained.Name != namespace || explained.Consumer != consumer.ID || explained.Remembers || h.events() != "" || len(h.deleted) > 0 {
				t.Errorf("%s\nexplained %+v, and changed something", tc.reason, explained)
			}
			if h.reconcile(); name == "Runs" {
				if explained, _, _ := e.Explain(t.Context(), namespace); !explained.Remembers {
					t.Errorf("%s\nwho planned before does not remember it", tc.reason)
				}
			}
		})
	}
}

// reaches has the consumer tell which providers it can reach, or tell nothing.
func (h *harness) reaches(told time.Time, providers ...cluster.Identity) {
	views := grant.Views{Asked: true, Granted: map[cluster.ID]grant.View{}, Acknowledged: map[string]netip.Prefix{}, Told: told, Now: began}
	for i, p := range []cluster.Identity{providerA, providerB} {
		view := grant.View{Key: fmt.Sprint("n", i), Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), 0, 0}), 16)}
		if views.Granted[p.ID] = view; slices.Contains(providers, p) {
			views.Acknowledged[view.Key] = view.Prefix
		}
	}
	h.views = func(of cluster.ID) grant.Views {
		if of != consumer.ID {
			return grant.Views{}
		}
		return views
	}
}

// TestViews has a consumer of a namespace reach one provider after the other, fall silent, and be heard again.
func TestViews(t *testing.T) {
	h := start(t, slices.Concat([]client.Object{liqotest.TwinNamespace(namespace, consumer), ready(providerA), ready(providerB)},
		workload("liqo-provider-a", "web-0", "web-1"))...)
	const unreached = "the consumer has not told that it can reach it"
	a, both := []cluster.ID{providerA.ID}, []cluster.ID{providerA.ID, providerB.ID}
	steps := []struct {
		reason            string
		told              time.Time
		reached           []cluster.Identity
		selected, placing []cluster.ID
		event             string
		why               map[cluster.ID]string
	}{
		{
			reason: "Before it has told anything its namespace goes nowhere.", event: planning.ReasonViewUnknown,
			why: map[cluster.ID]string{providerA.ID: unreached, providerB.ID: unreached},
		},
		{
			reason: "It goes where it is known.", told: began, reached: []cluster.Identity{providerA}, selected: a, placing: a,
			event: reasonSelected,
			why:   map[cluster.ID]string{providerA.ID: "", providerB.ID: unreached},
		},
		{reason: "One more provider is added.", told: began, reached: []cluster.Identity{providerA, providerB}, selected: both, placing: both},
		{
			reason: "Where it is not known any more it stays, and gets no new pods.", told: began, reached: []cluster.Identity{providerB},
			selected: both, placing: []cluster.ID{providerB.ID},
		},
		{
			reason: "Silence takes nothing away.", told: began.Add(-grant.MaxSilence - 1), reached: []cluster.Identity{providerA, providerB},
			selected: both, event: planning.ReasonViewUnknown,
		},
		{reason: "And it ends.", told: began, reached: []cluster.Identity{providerA, providerB}, selected: both, placing: both},
	}
	for _, step := range steps {
		h.reaches(step.told, step.reached...)
		result := h.reconcile()
		var selected, placing []cluster.ID
		if o := h.offloading(); o != nil {
			selected, placing = v09.OffloadingOf(o).Selected, v09.OffloadingOf(o).Placing
		}
		if !slices.Equal(selected, step.selected) || !slices.Equal(placing, step.placing) || len(h.deleted) > 0 {
			t.Errorf("%s\nselected %v, placing %v, deleted %v", step.reason, selected, placing, h.deleted)
		}
		if events := h.events(); !strings.Contains(events, step.event) {
			t.Errorf("%s\nevents %q, want %s", step.reason, events, step.event)
		}
		if again := result.RequeueAfter; step.told.Equal(began) != (again > 0 && again <= grant.MaxSilence+1) {
			t.Errorf("%s\nit is looked at again after %s", step.reason, again)
		}
		e := &planning.Explainer{Client: h.client, Reader: h.r.reader, Planner: h.r.planner}
		explained, _, err := e.Explain(t.Context(), namespace)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range explained.Providers.Items {
			if want, is := step.why[p.ID]; is && strings.Join(p.Why, "; ") != want {
				t.Errorf("%s\nof %s is said %v", step.reason, p.ID, p.Why)
			}
		}
	}
	// Of a cluster that is no provider at this moment the consumer has not told that it can reach it.
	if err := errors.Join(h.client.Delete(t.Context(), ready(providerA)), h.client.Delete(t.Context(), ready(providerB))); err != nil {
		t.Fatal(err)
	}
	h.deleted = nil
	h.reconcile()
	if o := v09.OffloadingOf(h.offloading()); !slices.Equal(o.Selected, both) || len(o.Placing) > 0 || len(h.deleted) > 0 {
		t.Errorf("without providers selected are %v, placing %v, deleted %v", o.Selected, o.Placing, h.deleted)
	}
}
