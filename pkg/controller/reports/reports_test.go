// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package reports_test

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/reports"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/core/views"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/report"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/transittest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	made "github.com/capacitorset/liqo-broker/pkg/transit/reports"
	"github.com/capacitorset/liqo-broker/test/watches"
)

// world is the cluster of transittest with Providers p and q, which are seen as 10.69/16 and 10.65/16, and Consumer c.
type world struct {
	*testing.T
	client.WithWatch

	reports *reports.Reports
	events  *record.FakeRecorder
	now     time.Time
}

func newWorld(t *testing.T, others ...client.Object) *world {
	t.Helper()
	scheme, err := daemon.Kinds(v1alpha1.AddToScheme, v1.Line{}.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	objects := slices.Concat(
		transittest.Peer("c", "10.200.0.0/16", true), transittest.Peer("p", "10.69.0.0/16", false), transittest.Peer("q", "10.65.0.0/16", false),
		[]client.Object{
			provider("p"), provider("q"), told("c", ""),
			&v1alpha1.Consumer{
				ObjectMeta: metav1.ObjectMeta{Name: "c"}, Status: v1alpha1.ConsumerStatus{Mode: v1alpha1.ModeOrchestrated},
			},
		},
		others)
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Provider{}, &v1alpha1.Consumer{})
	for _, i := range snapshot.Indexes(v1.Line{}) {
		b = b.WithIndex(i.Object, i.Field, i.Extract)
	}
	w := &world{T: t, WithWatch: b.Build(), events: record.NewFakeRecorder(10), now: time.Unix(10_000, 0)}
	w.reports = reports.New(reports.Config{
		Client: w, Told: w, Reader: snapshot.New(v1.Line{}, w, transittest.Own, nil), Recorder: w.events,
		Clock: testingclock.NewFakePassiveClock(w.now),
	})
	return w
}

func provider(id string) *v1alpha1.Provider {
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: id, UID: types.UID("uid-of-" + id)}}
	p.Status.ObservedGeneration = 1
	return p
}

// told returns what is in the tenant namespace of a peer.
func told(peer, text string) *corev1.ConfigMap {
	cm, _, _ := made.Forge(&liqo.Peer{
		Identity: cluster.Identity{ID: cluster.ID(peer)}, Tenant: transittest.Tenant(peer), Permit: transittest.Permit(peer),
	})
	cm.Data[report.Key] = text
	return cm
}

func (w *world) views(consumer cluster.ID) grant.Views {
	w.Helper()
	v, err := w.reports.Views(w.Context(), consumer)
	if err != nil {
		w.Fatal(err)
	}
	return v
}

// report has a consumer acknowledge views at a time, and tell of tunnels.
func (w *world) report(consumer string, at time.Time, acknowledged map[string]netip.Prefix, links ...report.Link) {
	w.Helper()
	r := report.Report{At: at, Views: acknowledged, Links: links}
	text, err := r.Format()
	if err != nil {
		w.Fatal(err)
	}
	w.write(consumer, text)
}

func (w *world) write(consumer, text string) {
	w.Helper()
	is := told(consumer, "")
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(is), is); err != nil {
		w.Fatal(err)
	}
	is.Data = map[string]string{report.Key: text}
	if err := w.Update(w.Context(), is); err != nil {
		w.Fatal(err)
	}
}

// change changes an object.
func change[T client.Object](w *world, o T, by func(T)) {
	w.Helper()
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		w.Fatal(err)
	}
	by(o)
	if err := w.Update(w.Context(), o); err != nil {
		w.Fatal(err)
	}
}

// look has the report of a consumer looked at.
func (w *world) look(consumer string) {
	w.Helper()
	if _, err := w.reports.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: consumer}}); err != nil {
		w.Fatal(err)
	}
}

// roundTrips returns how far providers are from a consumer, as it is written down.
func (w *world) roundTrips(consumer string) map[string]string {
	w.Helper()
	var c v1alpha1.Consumer
	if err := w.Get(w.Context(), client.ObjectKey{Name: consumer}, &c); err != nil {
		w.Fatal(err)
	}
	all := map[string]string{}
	for _, trip := range c.Status.RoundTrips {
		all[trip.Provider] = string(trip.Value) + " " + trip.Unit
		if !trip.MeasuredTime.Time.Equal(w.now) || !trip.ExpirationTime.Time.Equal(w.now.Add(5*time.Minute)) {
			w.Errorf("the time to %s is measured at %s and expires at %s", trip.Provider, trip.MeasuredTime, trip.ExpirationTime)
		}
	}
	return all
}

// tunnel returns one that is up, in which a time was measured before a report of now.
func (w *world) tunnel(to cluster.ID, took, ago time.Duration) report.Link {
	return report.Link{Cluster: to, Connected: true, RoundTrip: took, At: w.now.Add(-ago)}
}

// TestRoundTrips holds what is written down of the round-trip times in a report: nothing that cannot be, nor of clusters that the consumer
// was not told of.
func TestRoundTrips(t *testing.T) {
	const near, long = 2500 * time.Microsecond, time.Minute
	mode := func(mode v1alpha1.Mode) func(*world) {
		return func(w *world) {
			c := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
			if err := w.Get(w.Context(), client.ObjectKeyFromObject(c), c); err != nil {
				w.Fatal(err)
			}
			c.Status.Mode = mode
			if err := w.Status().Update(w.Context(), c); err != nil {
				w.Fatal(err)
			}
		}
	}
	cases := map[string]struct {
		reason string
		change func(w *world)
		at     time.Duration // When it is reported.
		links  func(w *world) []report.Link
		want   map[string]string
	}{
		"Tunnels": {
			reason: "Each provider to which there is a tunnel is as far as that.",
			links: func(w *world) []report.Link {
				return []report.Link{w.tunnel("q", time.Second, 0), w.tunnel("p", near, long)}
			},
			want: map[string]string{"p": "2.5 ms", "q": "1000 ms"},
		},
		"Strangers": {
			reason: "The broker, who consumes, and who is unknown are no providers.",
			links: func(w *world) []report.Link {
				return []report.Link{w.tunnel(transittest.Own, near, 0), w.tunnel("x", near, 0), w.tunnel("p", near, 0)}
			},
			want: map[string]string{"p": "2.5 ms"},
		},
		"Itself": {
			reason: "Nobody is far from itself.",
			change: func(w *world) {
				i := &api.Identity{Spec: api.IdentitySpec{ClusterID: "c", Type: api.IdentityControlPlane}}
				for _, o := range []client.Object{provider("c"), transittest.Made(i, transittest.Tenant("c"), "c", nil)} {
					if err := w.Create(w.Context(), o); err != nil {
						w.Fatal(err)
					}
				}
			},
			links: func(w *world) []report.Link { return []report.Link{w.tunnel("c", near, 0), w.tunnel("p", near, 0)} },
			want:  map[string]string{"p": "2.5 ms"},
		},
		"Lost": {
			reason: "A tunnel that is down has no length.",
			links: func(w *world) []report.Link {
				down := w.tunnel("p", near, 0)
				down.Connected = false
				return []report.Link{down, {Cluster: "q", Connected: true}}
			},
		},
		"Long": {
			reason: "A minute is the most that is believed; one that is longer takes no other away.",
			links: func(w *world) []report.Link {
				return []report.Link{w.tunnel("p", time.Minute+1, 0), w.tunnel("q", time.Minute, 0)}
			},
			want: map[string]string{"q": "60000 ms"},
		},
		"Short": {
			reason: "Less than a microsecond is one.",
			links:  func(w *world) []report.Link { return []report.Link{w.tunnel("p", 1, 0), w.tunnel("q", 1999, 0)} },
			want:   map[string]string{"p": "0.001 ms", "q": "0.001 ms"},
		},
		"Old": {
			reason: "What was measured long before the report is not how far it is now.",
			links: func(w *world) []report.Link {
				return []report.Link{w.tunnel("p", near, 2*time.Minute+time.Second), w.tunnel("q", near, 2*time.Minute)}
			},
			want: map[string]string{"q": "2.5 ms"},
		},
		"Future": {
			reason: "Nor is what will be.",
			links: func(w *world) []report.Link {
				return []report.Link{w.tunnel("p", near, -2*time.Minute-time.Second), w.tunnel("q", near, -2*time.Minute)}
			},
			want: map[string]string{"q": "2.5 ms"},
		},
		"Clock": {
			reason: "A clock that is wrong, though not by much, is wrong for both times.", at: -5 * time.Minute,
			links: func(w *world) []report.Link {
				return []report.Link{w.tunnel("p", near, 6*time.Minute), w.tunnel("q", near, 0)}
			},
			want: map[string]string{"p": "2.5 ms"},
		},
		"Stale": {
			reason: "An old report says nothing.", at: -5*time.Minute - time.Second,
			links: func(w *world) []report.Link { return []report.Link{w.tunnel("p", near, 5*time.Minute)} },
		},
		"Ahead": {
			reason: "Nor does one of tomorrow.", at: 5*time.Minute + time.Second,
			links: func(w *world) []report.Link { return []report.Link{w.tunnel("p", near, -5*time.Minute)} },
		},
		"Aggregated": {
			reason: "Who may not be told of the providers does not tell of them.", change: mode(v1alpha1.ModeAggregated),
			links: func(w *world) []report.Link { return []report.Link{w.tunnel("p", near, 0)} },
		},
		"Undecided": {
			reason: "Nor does one of which it is not known.", change: mode(""),
			links: func(w *world) []report.Link { return []report.Link{w.tunnel("p", near, 0)} },
		},
		"Unchecked": {
			reason: "Who need not tell which views it has may tell how far providers are.",
			change: func(w *world) {
				change(w, &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "c"}},
					func(c *v1alpha1.Consumer) { c.Spec.Views = v1alpha1.ViewsUnchecked })
			},
			links: func(w *world) []report.Link { return []report.Link{w.tunnel("p", near, 0)} },
			want:  map[string]string{"p": "2.5 ms"},
		},
		"Drained": {
			reason: "One on which nothing can be is none of the providers that the consumer is told of.",
			change: func(w *world) {
				change(w, provider("p"), func(p *v1alpha1.Provider) { p.Spec.Scheduling = v1alpha1.SchedulingDrained })
				is := provider("p")
				if err := w.Get(w.Context(), client.ObjectKeyFromObject(is), is); err != nil {
					w.Fatal(err)
				}
				is.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDraining, Reason: v1alpha1.ReasonDrained}}
				if err := w.Status().Update(w.Context(), is); err != nil {
					w.Fatal(err)
				}
			},
			links: func(w *world) []report.Link { return []report.Link{w.tunnel("p", near, 0), w.tunnel("q", near, 0)} },
			want:  map[string]string{"q": "2.5 ms"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tc.change != nil {
				tc.change(w)
			}
			w.report("c", w.now.Add(tc.at), nil, tc.links(w)...)
			w.look("c")
			if got := w.roundTrips("c"); !maps.Equal(got, tc.want) {
				t.Errorf("%s: %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// TestRoundTripsFollow holds that each report takes the place of the one before, unless it says nothing.
func TestRoundTripsFollow(t *testing.T) {
	w := newWorld(t)
	both, one := map[string]string{"p": "1 ms", "q": "2 ms"}, map[string]string{"p": "1 ms"}
	tunnels := []report.Link{w.tunnel("p", time.Millisecond, 0), w.tunnel("q", 2*time.Millisecond, 0)}
	for _, step := range []struct {
		reason string
		tell   func()
		want   map[string]string
	}{
		{"What is told is written.", func() { w.report("c", w.now, nil, tunnels...) }, both},
		{"An old one takes nothing away.", func() { w.report("c", w.now.Add(-time.Hour), nil) }, both},
		{"Nor does nonsense.", func() { w.write("c", "nonsense") }, both},
		{"Nor does another cluster.", func() {
			if err := w.Create(w.Context(), told("q", "")); err != nil {
				w.Fatal(err)
			}
			w.report("q", w.now, nil)
		}, both},
		{"Who is silent about one has no tunnel there any more.", func() { w.report("c", w.now, nil, tunnels[0]) }, one},
		{"What is wrong with the rest does not matter.", func() {
			w.write("c", `{"version":1,"at":"`+w.now.UTC().Format(time.RFC3339)+`","views":{"k":7},"links":[{"cluster":"q","connected":true,`+
				`"roundTrip":"2ms","at":"`+w.now.UTC().Format(time.RFC3339)+`"}]}`)
		}, map[string]string{"q": "2 ms"}},
		{"None is none.", func() { w.report("c", w.now, nil) }, map[string]string{}},
	} {
		step.tell()
		w.look("c")
		if got := w.roundTrips("c"); !maps.Equal(got, step.want) {
			t.Errorf("%s %v, want %v", step.reason, got, step.want)
		}
	}
}

func TestViews(t *testing.T) {
	w := newWorld(t)
	first := w.views("c")
	if !first.Asked || !first.Told.IsZero() || len(first.Acknowledged) != 0 || !first.Now.Equal(w.now) {
		t.Errorf("before anything is told: %+v", first)
	}
	p, q := first.Granted["p"], first.Granted["q"]
	if len(first.Granted) != 2 || p.Prefix != netip.MustParsePrefix("10.69.0.0/16") || q.Prefix != netip.MustParsePrefix("10.65.0.0/16") {
		t.Errorf("granted are %+v", first.Granted)
	}
	for _, v := range first.Granted {
		if err := views.CheckKey(v.Key); err != nil {
			t.Error(err)
		}
	}
	if p.Key == q.Key {
		t.Error("two providers have the same key")
	}

	w.report("c", w.now, map[string]netip.Prefix{p.Key: p.Prefix})
	second := w.views("c")
	if second.Granted["p"] != p || !second.Told.Equal(w.now) || !maps.Equal(second.Acknowledged, map[string]netip.Prefix{p.Key: p.Prefix}) {
		t.Errorf("after it is told: %+v", second)
	}
	if !second.Knows("p") || second.Knows("q") {
		t.Error("it knows another provider")
	}
}

// TestKeyTellsNothing holds that who guesses what a provider is called cannot find it out by the key.
func TestKeyTellsNothing(t *testing.T) {
	one, other := newWorld(t), newWorld(t)
	if err := other.Delete(t.Context(), provider("p")); err != nil {
		t.Fatal(err)
	}
	again := provider("p")
	again.UID = "another"
	if err := other.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if a, b := one.views("c").Granted["p"].Key, other.views("c").Granted["p"].Key; a == b || a == "" || b == "" {
		t.Errorf("%q and %q follow from what the provider is called", a, b)
	}
}

func TestGranted(t *testing.T) {
	drained := func(p *v1alpha1.Provider) {
		p.Spec.Scheduling = v1alpha1.SchedulingDrained
		p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDraining, Reason: v1alpha1.ReasonDrained}}
	}
	cases := map[string]struct {
		reason string
		change func(w *world)
		left   bool
	}{
		"Full": {"A provider that has nothing is reached all the same.", func(*world) {}, true},
		"Draining": {"The way to what still runs stays.", func(w *world) {
			change(w, provider("p"), func(p *v1alpha1.Provider) { p.Spec.Scheduling = v1alpha1.SchedulingDrained })
		}, true},
		"Drained": {"Nobody goes to one that nobody may use.", func(w *world) {
			change(w, provider("p"), func(p *v1alpha1.Provider) { p.Spec.Scheduling = v1alpha1.SchedulingDrained })
			is := provider("p")
			if err := w.Get(w.Context(), client.ObjectKeyFromObject(is), is); err != nil {
				w.Fatal(err)
			}
			drained(is)
			if err := w.Status().Update(w.Context(), is); err != nil {
				w.Fatal(err)
			}
		}, false},
		"New": {"Nor to one of which nothing was decided.", func(w *world) {
			is := provider("p")
			if err := w.Get(w.Context(), client.ObjectKeyFromObject(is), is); err != nil {
				w.Fatal(err)
			}
			is.Status.ObservedGeneration = 0
			if err := w.Status().Update(w.Context(), is); err != nil {
				w.Fatal(err)
			}
		}, false},
		"NotPeered": {"Nor to one that does not provide.", func(w *world) {
			identity := &api.Identity{ObjectMeta: metav1.ObjectMeta{Namespace: transittest.Tenant("p"), Name: "p"}}
			if err := w.Delete(w.Context(), identity); err != nil {
				w.Fatal(err)
			}
		}, false},
		"NoNetwork": {"Nor to one that is not seen.", func(w *world) {
			change(w, &api.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: transittest.Tenant("p"), Name: "p"}},
				func(c *api.Configuration) { c.Status.Remote = nil })
		}, false},
		"Elsewhere": {"Nor does what its own namespace says of another one.", func(w *world) {
			change(w, &api.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: transittest.Tenant("p"), Name: "p"}},
				func(c *api.Configuration) { c.Labels[liqo.LabelRemoteClusterID] = "q" })
		}, false},
		"Forged": {"What another peer says of it counts for nothing.", func(w *world) {
			change(w, &api.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: transittest.Tenant("p"), Name: "p"}},
				func(c *api.Configuration) { c.Status.Remote = nil })
			seen := &api.ClusterNetworks{CIDR: api.CIDRs{Pod: []string{"10.1.0.0/16"}}}
			forged := &api.Configuration{Status: api.ConfigurationStatus{Remote: seen}}
			if err := w.Create(w.Context(), transittest.Made(forged, transittest.Tenant("q"), "p",
				map[string]string{liqo.LabelRemoteClusterID: "p"})); err != nil {
				w.Fatal(err)
			}
		}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.change(w)
			granted := w.views("c").Granted
			if _, is := granted["p"]; is != tc.left || len(granted) == 0 {
				t.Errorf("%s: %+v", tc.reason, granted)
			}
		})
	}
}

// TestItself holds that a consumer that provides is told nothing of itself.
func TestItself(t *testing.T) {
	i := &api.Identity{Spec: api.IdentitySpec{ClusterID: "c", Type: api.IdentityControlPlane}}
	w := newWorld(t, provider("c"), transittest.Made(i, transittest.Tenant("c"), "c", nil))
	if _, is := w.views("c").Granted["c"]; is {
		t.Error("it reaches itself through the broker")
	}
	if _, is := w.views("q").Granted["c"]; !is {
		t.Error("and others do not")
	}
}

// TestUnchecked holds that who lists networks by hand is asked for nothing, and told all: the transit opens what consumers are told.
func TestUnchecked(t *testing.T) {
	w := newWorld(t)
	change(w, &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "c"}},
		func(c *v1alpha1.Consumer) { c.Spec.Views = v1alpha1.ViewsUnchecked })
	if v := w.views("c"); v.Asked || len(v.Granted) == 0 || !v.Knows("p") {
		t.Errorf("it is asked: %+v", v)
	}
}

// peerAgain ends the peering over which a cluster consumes, and begins the next one. Its namespace stays, with what Kubernetes has not
// deleted yet.
func (w *world) peerAgain(consumer string) {
	w.Helper()
	tenant := &api.Tenant{}
	if err := w.Get(w.Context(), client.ObjectKey{Namespace: transittest.Tenant(consumer), Name: consumer}, tenant); err != nil {
		w.Fatal(err)
	}
	again := transittest.Made(&api.Tenant{Spec: tenant.Spec}, tenant.Namespace, tenant.Name, nil)
	again.UID = tenant.UID + "-again"
	if err := errors.Join(w.Delete(w.Context(), tenant), w.Create(w.Context(), again)); err != nil {
		w.Fatal(err)
	}
}

// TestPeersAgain has a consumer whose agent has reported leave and come again within a second, and looks at each step that it is not
// believed before it has reported again, however late Kubernetes deletes what it reported into, and whatever the agent writes late.
func TestPeersAgain(t *testing.T) {
	w := newWorld(t)
	acknowledged := w.views("c").Granted["p"]
	views := map[string]netip.Prefix{acknowledged.Key: acknowledged.Prefix}
	transit := made.New(made.Config{Client: w, Own: transittest.Own})
	look := func() {
		t.Helper()
		request := ctrl.Request{NamespacedName: client.ObjectKey{Name: transittest.Tenant("c")}}
		if _, err := transit.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	w.report("c", w.now, views)
	read := told("c", "")
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(read), read); err != nil {
		t.Fatal(err)
	}
	write := func() error { return w.Update(t.Context(), read.DeepCopy()) }
	for _, step := range []struct {
		reason  string
		happens func()
		reaches bool
	}{
		{"Its agent has reported.", func() {}, true},
		{"It has peered again.", func() { w.peerAgain("c") }, false},
		{"The transit can change nothing of what is there.", look, false},
		{"Its agent writes what it wrote into.", func() {
			if err := write(); err != nil {
				t.Error(err)
			}
		}, false},
		{"Kubernetes has deleted that.", func() {
			if err := w.Delete(t.Context(), told("c", "")); err != nil {
				t.Error(err)
			}
		}, false},
		{"The transit has made another one.", look, false},
		{"The agent cannot write into that what was for the first one.", func() {
			if err := write(); err == nil {
				t.Error("it could")
			}
		}, false},
		{"The agent has reported.", func() { w.report("c", w.now, views) }, true},
		{"The transit leaves that alone.", look, true},
	} {
		step.happens()
		if v := w.views("c"); v.Knows("p") != step.reaches {
			t.Errorf("%s It reaches the provider: %t, want %t", step.reason, !step.reaches, step.reaches)
		}
	}
}

func TestBelieved(t *testing.T) {
	acknowledged := map[string]netip.Prefix{"k": netip.MustParsePrefix("10.69.0.0/16")}
	cases := map[string]struct {
		reason string
		change func(w *world)
	}{
		"Elsewhere": {"What another peer says counts for that one.", func(w *world) {
			if err := w.Create(w.Context(), told("q", "")); err != nil {
				w.Fatal(err)
			}
			w.report("q", w.now, acknowledged)
		}},
		"Gone": {"Who may not consume has told nothing.", func(w *world) {
			w.report("c", w.now, acknowledged)
			if err := w.Delete(w.Context(), &api.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: transittest.Tenant("c"), Name: "c"}}); err != nil {
				w.Fatal(err)
			}
		}},
		"Before": {"What was told in a peering that has ended counts for nothing in the next one.", func(w *world) {
			w.report("c", w.now, acknowledged)
			w.peerAgain("c")
		}},
		"Free": {"Nor does what is of no peering.", func(w *world) {
			w.report("c", w.now, acknowledged)
			change(w, told("c", ""), func(cm *corev1.ConfigMap) { cm.OwnerReferences = nil })
		}},
		"Nonsense": {"What is no report tells nothing.", func(w *world) { w.write("c", "nonsense") }},
		"None": {"Where there is no ConfigMap nothing is told.", func(w *world) {
			if err := w.Delete(w.Context(), told("c", "")); err != nil {
				w.Fatal(err)
			}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.change(w)
			if v := w.views("c"); !v.Asked || !v.Told.IsZero() || len(v.Acknowledged) != 0 {
				t.Errorf("%s: %+v", tc.reason, v)
			}
		})
	}
}

// TestUnreadable holds that people are told of a report that cannot be read once, and again when something else of it cannot be.
func TestUnreadable(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("x", 9_000)
	look := func() []string {
		t.Helper()
		w.look("c")
		var all []string
		for len(w.events.Events) > 0 {
			all = append(all, <-w.events.Events)
		}
		return all
	}
	for _, step := range []struct{ reason, text, says string }{
		{"Nothing was told.", "", ""},
		{"It is no report.", "nonsense", "cannot be read: read the report"},
		{"People know it.", "nonsense", ""},
		{"It is taken back.", "", ""},
		{"It is none again.", "nonsense", "cannot be read: read the report"},
		{"It is of another version.", `{"version":9}`, "version 9"},
		{"It is good.", `{"version":1,"at":"2026-01-01T00:00:00Z"}`, ""},
		{"Part of it is not.", `{"version":1,"at":"2026-01-01T00:00:00Z","views":{"k":"` + long + `"}}`, "view k"},
		{"Part of it still is not, a minute later.", `{"version":1,"at":"2026-01-01T00:01:00Z","views":{"k":"` + long + `"}}`, ""},
	} {
		w.write("c", step.text)
		got := look()
		switch {
		case step.says == "" && len(got) != 0, step.says != "" && (len(got) != 1 || !strings.Contains(got[0], step.says)):
			t.Errorf("%s People are told %q", step.reason, got)
		case len(got) == 1 && len(got[0]) > 1_000:
			t.Errorf("%s People are told %d bytes", step.reason, len(got[0]))
		}
	}
}

// TestGone holds that what was told of a consumer goes with it, and that it is looked at then: whoever has its name later is told of.
func TestGone(t *testing.T) {
	w := newWorld(t)
	w.write("c", "nonsense")
	request, c := ctrl.Request{NamespacedName: client.ObjectKey{Name: "c"}}, &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	look := func() {
		t.Helper()
		if _, err := w.reports.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	look()
	if err := w.Delete(t.Context(), c.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	look()
	if err := w.Create(t.Context(), c.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	look()
	if len(w.events.Events) != 2 {
		t.Errorf("people were told %d times of two consumers", len(w.events.Events))
	}

	// How often its times were written.
	tell := func(took time.Duration) map[string]string {
		t.Helper()
		is := c.DeepCopy()
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(is), is); err != nil {
			t.Fatal(err)
		}
		is.Status.Mode = v1alpha1.ModeOrchestrated
		if err := w.Status().Update(t.Context(), is); err != nil {
			t.Fatal(err)
		}
		w.report("c", w.now, nil, w.tunnel("p", took, 0))
		look()
		return w.roundTrips("c")
	}
	for n := range 100 {
		tell(time.Duration(1+n%2) * time.Second)
	}
	if got := tell(5 * time.Second); got["p"] == "5000 ms" {
		t.Error("times that jump are all written")
	}
	if err := w.Delete(t.Context(), c.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	look()
	if err := w.Create(t.Context(), c.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if got := tell(5 * time.Second); got["p"] != "5000 ms" {
		t.Errorf("what was told of one that is gone keeps the next one from being written: %v", got)
	}

	// Who is looked at.
	looked := make(chan string, 10)
	noting := interceptor.NewClient(w.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if _, is := o.(*v1alpha1.Consumer); is {
				looked <- key.Name
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	happened := watches.Start(t, w.Scheme(), func(mgr ctrl.Manager) error {
		return reports.Setup(mgr, reports.Config{
			Client: noting, Told: w, Reader: snapshot.New(v1.Line{}, w, transittest.Own, nil), Recorder: w.events,
			Clock: testingclock.NewFakePassiveClock(w.now),
		})
	}, c, &corev1.ConfigMap{})
	other := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	happened.Happens(nil, other)
	happened.Happens(other, watches.Changed(other, func(*v1alpha1.Consumer) {}))
	happened.Happens(c, nil)
	if got := <-looked; got != "c" {
		t.Errorf("it looks at %s, which is not gone", got)
	}
	happened.Happens(told("c", ""), watches.Changed(told("c", ""), func(cm *corev1.ConfigMap) { cm.Data[report.Key] = "x" }))
	if got := <-looked; got != "c" {
		t.Errorf("it looks at %s, which has not reported", got)
	}
}

// TestFails holds that what cannot be read is an error, and not a consumer of which nothing is asked.
func TestFails(t *testing.T) {
	w := newWorld(t)
	boom := errors.New("boom")
	r := reports.New(reports.Config{
		Client: w, Told: failing{boom}, Reader: snapshot.New(v1.Line{}, w, transittest.Own, nil), Recorder: w.events,
		Clock: testingclock.NewFakePassiveClock(w.now),
	})
	if _, err := r.Views(t.Context(), "c"); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
}

// TestCached holds that of all ConfigMaps those of one name are in memory, and of them no more than a report.
func TestCached(t *testing.T) {
	by := reports.Cached()
	named := func(name string) fields.Set { return fields.Set{"metadata.name": name} }
	if by.Field == nil || by.Field.Matches(named("other")) || !by.Field.Matches(named(report.Name)) {
		t.Error("others are kept")
	}
	kept, err := by.Transform(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}, OwnerReferences: told("c", "").OwnerReferences},
		Data:       map[string]string{report.Key: strings.Repeat("x", 1<<20), "other": "x"}, BinaryData: map[string][]byte{"x": {1}},
	})
	cm, is := kept.(*corev1.ConfigMap)
	if err != nil || !is || len(cm.Data) != 1 || len(cm.Data[report.Key]) != report.MaxBytes+1 || len(cm.BinaryData)+len(cm.Annotations) > 0 {
		t.Errorf("too much is kept, or what is too long for a report is one: %v", err)
	} else if len(cm.OwnerReferences) != 1 {
		t.Error("it is not kept of which peering a report is")
	}
}

func TestChanged(t *testing.T) {
	other := told("c", "x")
	other.Name = "other"
	labelled := told("c", "x")
	labelled.Labels = map[string]string{"a": "b"}
	cases := map[string]struct {
		reason        string
		before, after *corev1.ConfigMap
		passes        bool
	}{
		"Report":   {"Another report is looked at.", told("c", ""), told("c", "x"), true},
		"Labelled": {"What is not the report does not matter.", told("c", "x"), labelled, false},
		"Other":    {"Nor do others.", told("c", ""), other, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := reports.Changed().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.passes {
				t.Errorf("%s: %t", tc.reason, got)
			}
		})
	}
	if reports.Changed().Create(event.CreateEvent{Object: other}) || !reports.Changed().Create(event.CreateEvent{Object: labelled}) {
		t.Error("what is made is looked at by another name")
	}
}

// TestHeartbeats counts what an hour of reports has looked at that tell the same: nothing of a hundred namespaces, where every report that
// is another text would have all of them looked at each minute.
func TestHeartbeats(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(10_000, 0))
	says := func(views map[string]netip.Prefix) *corev1.ConfigMap {
		r := report.Report{At: clock.Now(), Views: views}
		text, err := r.Format()
		if err != nil {
			t.Fatal(err)
		}
		return told("c", text)
	}
	const namespaces = 100
	a := map[string]netip.Prefix{"k": netip.MustParsePrefix("10.69.0.0/16")}
	b := map[string]netip.Prefix{"k": netip.MustParsePrefix("10.65.0.0/16")}
	views := reports.ViewsChanged(clock)
	was, looked, lookedBefore := says(a), 0, 0
	passes := func(p predicate.Predicate, is *corev1.ConfigMap) bool {
		return p.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is})
	}
	for range 60 {
		clock.SetTime(clock.Now().Add(time.Minute))
		is := says(a)
		if passes(views, is) {
			looked += namespaces
		}
		if passes(reports.Changed(), is) {
			lookedBefore += namespaces
		}
		was = is
	}
	if looked != 0 || lookedBefore != 60*namespaces {
		t.Errorf("%d namespaces are looked at, of %d", looked, lookedBefore)
	}
	for _, step := range []struct {
		reason string
		after  time.Duration
		is     func() *corev1.ConfigMap
		passes bool
	}{
		{"Another view is looked at.", time.Minute, func() *corev1.ConfigMap { return says(b) }, true},
		{"One that is taken back, too.", time.Minute, func() *corev1.ConfigMap { return says(nil) }, true},
		{"And one that is new.", time.Minute, func() *corev1.ConfigMap { return says(a) }, true},
		{"A silence that is short changes nothing.", grant.MaxSilence, func() *corev1.ConfigMap { return says(a) }, false},
		{"The end of a long one does.", grant.MaxSilence + time.Second, func() *corev1.ConfigMap { return says(a) }, true},
		{"What cannot be read tells nothing any more.", time.Minute, func() *corev1.ConfigMap { return told("c", "nonsense") }, true},
		{"Other nonsense is none the better.", time.Minute, func() *corev1.ConfigMap { return told("c", "more of it") }, false},
	} {
		clock.SetTime(clock.Now().Add(step.after))
		is := step.is()
		if got := passes(views, is); got != step.passes {
			t.Errorf("%s: %t", step.reason, got)
		}
		was = is
	}
	if views.Create(event.CreateEvent{Object: &corev1.ConfigMap{}}) || !views.Create(event.CreateEvent{Object: told("c", "x")}) {
		t.Error("a report that comes is not looked at, or others are")
	}
}

// TestSeenChanged looks again when the pods of a peer are seen under another prefix, and when the peer is gone.
func TestSeenChanged(t *testing.T) {
	seen := func(pods string) *api.Configuration {
		return &api.Configuration{Status: api.ConfigurationStatus{Remote: &api.ClusterNetworks{CIDR: api.CIDRs{Pod: []string{pods}}}}}
	}
	was, is := seen("10.69.0.0/16"), seen("10.65.0.0/16")
	p := reports.SeenChanged()
	if !p.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}) || !p.Delete(event.DeleteEvent{Object: was}) {
		t.Error("a peer that is seen otherwise is not looked at")
	}
	if p.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: seen("10.69.0.0/16")}) || p.Create(event.CreateEvent{Object: is}) {
		t.Error("what changes nothing is looked at")
	}
}

// TestGrantedChanged looks again when a provider gets a view or loses it, which Capacity does not tell.
func TestGrantedChanged(t *testing.T) {
	of := func(by func(*v1alpha1.Provider)) *v1alpha1.Provider {
		p := provider("p")
		by(p)
		return p
	}
	unseen := func(p *v1alpha1.Provider) { p.Status.ObservedGeneration = 0 }
	drains := func(reason string) func(*v1alpha1.Provider) {
		return func(p *v1alpha1.Provider) {
			p.Spec.Scheduling = v1alpha1.SchedulingDrained
			p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDraining, Reason: reason}}
		}
	}
	cases := map[string]struct {
		reason        string
		before, after *v1alpha1.Provider
		passes        bool
	}{
		"Seen":      {"It is decided about for the first time.", of(unseen), provider("p"), true},
		"Draining":  {"The way to what runs stays.", provider("p"), of(drains(v1alpha1.ReasonPodsLeaving)), false},
		"Drained":   {"Nothing runs there any more.", of(drains(v1alpha1.ReasonPodsLeaving)), of(drains(v1alpha1.ReasonDrained)), true},
		"Undrained": {"It takes pods again.", of(drains(v1alpha1.ReasonDrained)), provider("p"), true},
		"Measured":  {"What it has is told by others.", provider("p"), of(func(p *v1alpha1.Provider) { p.Status.ClusterName = "x" }), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := reports.GrantedChanged().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.passes {
				t.Errorf("%s: %t", tc.reason, got)
			}
		})
	}
	if reports.GrantedChanged().Create(event.CreateEvent{Object: provider("p")}) {
		t.Error("what comes is looked at twice")
	}
}

// failing is a cache that is not there.
type failing struct{ err error }

func (f failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return f.err
}

func (f failing) List(context.Context, client.ObjectList, ...client.ListOption) error { return f.err }
