// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// agentWorld has one consumer, of whose agent a test says what was heard.
type agentWorld struct {
	*testing.T
	client.Client
	*Reconciler

	clock *testingclock.FakePassiveClock
	heard grant.Heard
	later time.Duration
}

func newAgentWorld(t *testing.T) *agentWorld {
	t.Helper()
	w := &agentWorld{T: t, clock: testingclock.NewFakePassiveClock(time.Unix(1_000_000, 0))}
	w.Client = snapshottest.NewClient(t, interceptor.Funcs{}, liqotest.ForeignCluster(consumer, false, true))
	reader := snapshottest.Reader(w.Client, "")
	w.Reconciler = New(Config{
		Client: w.Client, Reader: reader, Capacity: reader.Capacity, Modes: Modes{Orchestrator: true}, Clock: w.clock,
		Heard: func(_ context.Context, id cluster.ID) (grant.Heard, error) {
			if id != consumer.ID {
				t.Errorf("the agent of %s is looked at", id)
			}
			w.heard.Now = w.clock.Now()
			return w.heard, nil
		},
	})
	w.heard.Asked = true
	w.look() // It is made.
	return w
}

// look has the controller look, and returns the condition.
func (w *agentWorld) look() *metav1.Condition {
	w.Helper()
	req := ctrl.Request{NamespacedName: client.ObjectKey{Name: string(consumer.ID)}}
	result, err := w.Reconcile(w.Context(), req)
	if err != nil {
		w.Fatal(err)
	}
	w.later = result.RequeueAfter
	var c v1alpha1.Consumer
	if err := w.Get(w.Context(), req.NamespacedName, &c); err != nil {
		w.Fatal(err)
	}
	return meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionAgentReporting)
}

// want has the controller look, and compares the condition, and when it looks again though nothing happens.
func (w *agentWorld) want(why string, status metav1.ConditionStatus, reason, message string, later time.Duration) {
	w.Helper()
	is := w.look()
	if is == nil || is.Status != status || is.Reason != reason || !strings.Contains(is.Message, message) || w.later != later {
		w.Errorf("%s It has %+v, and is looked at after %s: want %s, %s, %q, %s", why, is, w.later, status, reason, message, later)
	}
}

// passes lets time pass.
func (w *agentWorld) passes(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

// reports has the agent tell that it has acknowledged views.
func (w *agentWorld) reports(acknowledged map[string]netip.Prefix) {
	w.heard.Told, w.heard.Acknowledged, w.heard.Unreadable = w.clock.Now(), acknowledged, ""
}

const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown

// TestAgentReporting goes through the life of an agent.
func TestAgentReporting(t *testing.T) {
	const lasts = grant.MaxSilence + 1
	a := map[string]netip.Prefix{"a": netip.MustParsePrefix("10.1.0.0/16")}
	both := map[string]netip.Prefix{"a": a["a"], "b": netip.MustParsePrefix("10.2.0.0/16")}
	w := newAgentWorld(t)
	w.want("Nothing is installed yet, which is said at once.", no, v1alpha1.ReasonAgentMissing, "never heard", 0)
	w.heard.Unreadable = "it is no report"
	w.want("So is what cannot be read.", no, v1alpha1.ReasonUnreadable, "it is no report", 0)
	w.heard.ToldViews, w.heard.Granted = both, map[cluster.ID]grant.View{
		"turin": {Key: "a", Prefix: both["a"]}, "milan": {Key: "b", Prefix: both["b"]},
		"bergen": {Key: "not told", Prefix: both["a"]},
	}
	w.reports(map[string]netip.Prefix{"a": a["a"], "not told": both["a"]})
	w.want("It did not acknowledge all.", no, v1alpha1.ReasonViewsUnknown, "1 of 2 networks of providers: milan", lasts)
	w.reports(nil)
	w.want("Nor one.", no, v1alpha1.ReasonViewsUnknown, "2 of 2 networks of providers: milan, turin", lasts)
	w.reports(both)
	w.want("It did, which is said at once.", yes, v1alpha1.ReasonReporting, "all 2 networks", lasts)
	w.passes(grant.MaxSilence)
	w.want("It may still tell something.", yes, v1alpha1.ReasonReporting, "", 1)
	w.passes(1)
	w.want("It is silent, for no longer than it may be late.", yes, v1alpha1.ReasonReporting, "", settle)
	w.passes(settle - 1)
	w.want("Nearly.", yes, v1alpha1.ReasonReporting, "", 1)
	w.passes(1)
	w.want("It is silent though nothing has happened.", no, v1alpha1.ReasonSilent, "for more than 5m0s", 0)
	w.reports(both)
	w.want("It is back.", yes, v1alpha1.ReasonReporting, "", lasts)
	w.heard.Asked = false
	w.want("People want to know nothing.", unknown, v1alpha1.ReasonNotAsked, "spec.views is Unchecked", 0)
	w.heard.Asked = true
	w.want("Again they do.", yes, v1alpha1.ReasonReporting, "", lasts)
	gone := liqotest.ForeignCluster(consumer, false, true)
	if err := w.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	w.want("It does not peer.", unknown, v1alpha1.ReasonNotPeered, "no incoming peering", 0)
}

// TestAgentSettles holds that the condition does not come and go with each provider, nor as fast as a consumer writes.
func TestAgentSettles(t *testing.T) {
	a := map[string]netip.Prefix{"a": netip.MustParsePrefix("10.1.0.0/16")}
	w := newAgentWorld(t)
	w.look()
	w.heard.ToldViews = a
	w.reports(a)
	w.want("All is well.", yes, v1alpha1.ReasonReporting, "all 1", grant.MaxSilence+1)
	w.heard.ToldViews = map[string]netip.Prefix{"a": a["a"], "b": netip.MustParsePrefix("10.2.0.0/16")}
	w.want("There is a new provider.", yes, v1alpha1.ReasonReporting, "all 1", settle)
	w.passes(settle / 2)
	w.reports(w.heard.ToldViews)
	w.want("It is acknowledged.", yes, v1alpha1.ReasonReporting, "all 2", grant.MaxSilence+1)
	w.heard.Unreadable = "junk"
	w.want("What was missing before does not count.", yes, v1alpha1.ReasonReporting, "all 2", settle)
	w.passes(settle)
	w.want("It lasts.", no, v1alpha1.ReasonUnreadable, "junk", grant.MaxSilence+1-3*settle/2+settle/2)
	changes, was := 0, no
	for n := range 300 { // It writes each second.
		w.passes(time.Second)
		w.reports(w.heard.ToldViews)
		if n%2 == 0 {
			w.heard.Told, w.heard.Unreadable = time.Time{}, "junk"
		}
		if is := w.look(); is.Status != was {
			changes, was = changes+1, is.Status
		}
	}
	if changes != 1 {
		t.Errorf("the condition has changed %d times in 300 s, want once", changes)
	}
	var c v1alpha1.Consumer
	if err := w.Get(t.Context(), client.ObjectKey{Name: string(consumer.ID)}, &c); err != nil {
		t.Fatal(err)
	}
	w.heard.Unreadable = "junk"
	w.look()
	if err := w.Delete(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	_, _ = w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: string(consumer.ID)}}) // Whatever it says.
	if len(w.agents.since) > 0 {
		t.Errorf("of one that is gone it is remembered that %v", w.agents.since)
	}
}

// TestNoAgents has no such condition where consumers have no agents.
func TestNoAgents(t *testing.T) {
	w := newAgentWorld(t)
	w.agents = nil
	if is := w.look(); is != nil || w.later != 0 {
		t.Errorf("it has %+v, and is looked at after %s", is, w.later)
	}
}

// TestAgentLacksMany names some of many providers.
func TestAgentLacksMany(t *testing.T) {
	w := newAgentWorld(t)
	w.heard.ToldViews, w.heard.Granted = map[string]netip.Prefix{}, map[cluster.ID]grant.View{}
	for n := range maxNamed + 2 {
		key := fmt.Sprint("p", n)
		w.heard.ToldViews[key] = netip.MustParsePrefix("10.1.0.0/16")
		w.heard.Granted[cluster.ID(key)] = grant.View{Key: key, Prefix: w.heard.ToldViews[key]}
	}
	w.reports(nil)
	w.want("Others are counted.", no, v1alpha1.ReasonViewsUnknown, "7 of 7 networks of providers: p0, p1, p2, p3, p4 and 2 more",
		grant.MaxSilence+1)
}
