// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/daemon"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/test/watches"
)

// speech is a gateway that says that its tunnel is up, and what the cache and the API server have of that.
type speech struct {
	*gateways

	t      *testing.T
	clock  *testingclock.FakePassiveClock
	cached []liqo.Link
	live   []liqo.Link
	fails  error // Of the API server.
	asked  int   // How often it was.
}

func newSpeech(t *testing.T) *speech {
	t.Helper()
	s := &speech{t: t, clock: testingclock.NewFakePassiveClock(time.Unix(1_800_000_000, 0))}
	s.gateways = newGateways(
		func(context.Context) ([]liqo.Link, error) { return s.cached, nil },
		func(context.Context) ([]liqo.Link, error) { s.asked++; return s.live, s.fails }, s.clock)
	return s
}

// says has the gateway say that the tunnel is up, some time from now by its own clock.
func (s *speech) says(ahead time.Duration) {
	s.live = []liqo.Link{{Tenant: "tenant-p", Peer: "p", Connected: true, Said: s.clock.Now().Add(ahead).Truncate(time.Second)}}
	s.cached = s.live
}

// passes lets time pass, and looks every five seconds.
func (s *speech) passes(d time.Duration) {
	for end := s.clock.Now().Add(d); s.clock.Now().Before(end); {
		s.clock.SetTime(s.clock.Now().Add(lookInterval))
		if err := s.lookAtAll(s.t.Context()); err != nil && s.fails == nil {
			s.t.Fatal(err)
		}
	}
}

// speaks has the gateway say so again and again.
func (s *speech) speaks(times int, every, ahead time.Duration) {
	for range times {
		s.says(ahead)
		s.passes(every)
	}
}

// expect checks whether the gateway is silent, where it was not so before.
func (s *speech) expect(reason string, silent bool) {
	s.t.Helper()
	link := liqo.Link{Tenant: "tenant-p", Peer: "p", Connected: true, Said: time.Unix(1, 0)}
	if got := s.isSilent(&link, false); got != silent {
		s.t.Errorf("%s\nsilent: %v", reason, got)
	}
}

// turned returns whether the controller has to look at the provider.
func (s *speech) turnedNow() bool {
	told := false
	select {
	case <-s.turned:
		told = true
	default:
	}
	looks := s.takeTurned(s.t.Context(), nil)
	if told != (len(looks) > 0) {
		s.t.Errorf("the controller is told: %v, to look at %v", told, looks)
	}
	return len(looks) == 1 && looks[0].Name == "p"
}

func TestGateways(t *testing.T) {
	const usual = 10 * time.Second
	cases := map[string]struct {
		reason string
		do     func(*speech)
		silent bool
	}{
		"Speaks": {reason: "One that speaks is not silent.", do: func(s *speech) { s.speaks(100, usual, 0) }},
		"Restarts": {
			reason: "Nor is one that takes a minute and a half to start again.", do: func(s *speech) {
				s.speaks(3, usual, 0)
				s.passes(90 * time.Second)
			},
		},
		"Stops": {reason: "One that has stopped is.", do: func(s *speech) { s.speaks(3, usual, 0); s.passes(2 * time.Minute) }, silent: true},
		"Ahead": {
			reason: "So it is if its clock is ahead.", do: func(s *speech) {
				s.speaks(3, usual, time.Hour)
				s.passes(2 * time.Minute)
			}, silent: true,
		},
		"Behind": {reason: "A clock that is behind does not make it so.", do: func(s *speech) { s.speaks(100, usual, -time.Hour) }},
		"SetBack": {
			reason: "Nor does one that is set back, which says so in a moment.", do: func(s *speech) {
				s.speaks(3, usual, 0)
				s.clock.SetTime(s.clock.Now().Add(-time.Hour))
				s.passes(time.Minute)
				s.speaks(3, usual, time.Hour)
			},
		},
		"StopsAfterSetBack": {
			reason: "Our own clock may be set back, too.", do: func(s *speech) {
				s.speaks(3, usual, 0)
				s.clock.SetTime(s.clock.Now().Add(-time.Hour))
				s.passes(2 * time.Minute)
			}, silent: true,
		},
		"Leap": {
			reason: "What time our clock leaps over does not count.", do: func(s *speech) {
				s.speaks(3, usual, 0)
				s.clock.SetTime(s.clock.Now().Add(time.Hour))
				s.passes(30 * time.Second)
			},
		},
		"Paused": {
			reason: "While we do not run, nothing is known: all answers count from the beginning.", do: func(s *speech) {
				s.speaks(3, usual, 0)
				s.passes(95 * time.Second)
				s.clock.SetTime(s.clock.Now().Add(time.Minute))
				s.passes(40 * time.Second)
			},
		},
		"NeverHeard": {reason: "Of one that was not heard to speak again nobody knows.", do: func(s *speech) { s.says(0); s.passes(time.Hour) }},
		"NoPings": {
			reason: "One that says no time never speaks again.", do: func(s *speech) {
				s.cached = []liqo.Link{{Tenant: "tenant-p", Peer: "p", Connected: true}}
				s.passes(time.Hour)
			},
		},
		"Seldom": {
			reason: "One that is to speak every five minutes may be quiet for half an hour.", do: func(s *speech) {
				s.speaks(3, 5*time.Minute, 0)
				s.passes(25 * time.Minute)
			},
		},
		"SeldomStops": {
			reason: "And not for longer.", do: func(s *speech) { s.speaks(3, 5*time.Minute, 0); s.passes(30 * time.Minute) }, silent: true,
		},
		"Cache": {
			reason: "A cache that is late tells nothing.", do: func(s *speech) {
				s.speaks(3, usual, 0)
				for range 30 {
					old := s.cached
					s.says(0)
					s.cached = old
					s.passes(usual)
				}
			},
		},
		"APIServer": {
			reason: "An API server that does not answer takes nothing either: none of its answers before counts then.", do: func(s *speech) {
				s.speaks(3, usual, 0)
				for range 20 {
					s.passes(40 * time.Second)
					s.fails = errors.New("timeout")
					s.passes(lookInterval)
					s.fails = nil
				}
			},
		},
		"Back": {
			reason: "One that speaks again is not silent.", do: func(s *speech) {
				s.speaks(3, usual, 0)
				s.passes(time.Hour)
				s.speaks(1, usual, 0)
			},
		},
		"Down": {
			reason: "One that says that the tunnel is down is not silent.", do: func(s *speech) {
				s.speaks(3, usual, 0)
				s.passes(time.Hour)
				s.cached = nil
				s.passes(lookInterval)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSpeech(t)
			tc.do(s)
			s.expect(tc.reason, tc.silent)
		})
	}
}

// TestGatewaysTurn holds at which changes the controller has to look, and that nobody asks the API server without need.
func TestGatewaysTurn(t *testing.T) {
	s := newSpeech(t)
	before := &liqo.Link{Tenant: "tenant-p", Peer: "p", Connected: true, Said: time.Unix(1, 0)}
	step := func(reason string, turns bool, do func()) {
		t.Helper()
		do()
		if got := s.turnedNow(); got != turns {
			t.Errorf("%s\nthe controller looks: %v", reason, got)
		}
	}
	step("It is seen.", false, func() { s.says(0); s.passes(time.Hour) })
	if !s.isSilent(before, true) {
		t.Error("one that was silent is not, though it was not heard since")
	}
	step("It is heard for the first time.", true, func() { s.says(0); s.passes(lookInterval) })
	if s.isSilent(before, true) {
		t.Error("one that is heard is what it was before")
	}
	step("It speaks.", false, func() { s.speaks(10, 10*time.Second, 0) })
	if s.asked > 0 {
		t.Errorf("the API server is asked %d times about one that speaks, or of which nobody knows", s.asked)
	}
	step("It is silent.", true, func() { s.passes(2 * time.Minute) })
	s.asked = 0
	step("It stays so.", false, func() { s.passes(time.Hour) })
	if s.asked > 0 {
		t.Errorf("the API server is asked %d times about one that is known to be silent", s.asked)
	}
	step("It speaks again.", true, func() { s.says(0); s.passes(lookInterval) })
	step("It is silent again, as it was.", true, func() { s.speaks(2, 10*time.Second, 0); s.passes(2 * time.Minute) })
	step("It says that the tunnel is down.", true, func() { s.cached = nil; s.passes(lookInterval) })
	if len(s.tunnels) > 0 {
		t.Errorf("tunnels are remembered that are gone: %v", s.tunnels)
	}
}

// silentWorld is a broker with Liqo 1.x and the provider p.
type silentWorld struct {
	client.WithWatch

	t      *testing.T
	clock  *testingclock.FakePassiveClock
	reader *snapshot.Reader
	*Reconciler
}

func newSilentWorld(t *testing.T) *silentWorld {
	t.Helper()
	of := map[string]string{liqo.LabelRemoteClusterID: "p"}
	in := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "liqo-tenant-p", Name: name, Labels: of}
	}
	record := &api.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: api.ForeignClusterSpec{ClusterID: "p"}}
	record.Status.Role, record.Status.Modules.Offloading.Enabled = api.RoleProvider, true
	slice := &api.ResourceSlice{ObjectMeta: in("p")}
	slice.Spec = api.ResourceSliceSpec{ConsumerClusterID: new("broker"), ProviderClusterID: new("p")}
	slice.Labels, slice.Annotations = nil, map[string]string{api.AnnotationCreateNode: "true"}
	slice.Status.Resources = amount("4")
	slice.Status.Conditions = []api.ResourceSliceCondition{
		{Type: api.SliceAuthentication, Status: api.SliceAccepted}, {Type: api.SliceResources, Status: api.SliceAccepted},
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{
		liqo.LabelNodeType: liqo.NodeTypeVirtual, liqo.LabelRemoteClusterID: "p",
	}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.ProviderSpec{Scheduling: active}}
	scheme, err := daemon.Kinds(v1alpha1.AddToScheme, v1.Line{}.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.Provider{}, &api.Connection{}).WithObjects(
		record, slice, node, p, &api.Configuration{ObjectMeta: in("p")}, &api.Connection{ObjectMeta: in("gw-p")},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo-tenant-p", Labels: map[string]string{
			liqo.LabelRemoteClusterID: "p", liqo.LabelTenantNamespace: "true",
		}}})
	for _, i := range snapshot.Indexes(v1.Line{}) {
		b = b.WithIndex(i.Object, i.Field, i.Extract)
	}
	w := &silentWorld{WithWatch: b.Build(), t: t, clock: testingclock.NewFakePassiveClock(time.Unix(1_800_000_000, 0))}
	w.reader = snapshot.New(v1.Line{}, w.WithWatch, "broker", nil)
	w.restart()
	return w
}

// restart begins with another process.
func (w *silentWorld) restart() {
	w.Reconciler = New(Config{Client: w.WithWatch, Reader: w.reader, Clock: w.clock, Live: w.reader.Links, Plans: plans()})
}

// passes lets time pass, in which the gateway writes a state again and again, or nothing if it is empty.
func (w *silentWorld) passes(d time.Duration, state api.ConnectionState) {
	w.t.Helper()
	for end := w.clock.Now().Add(d); w.clock.Now().Before(end); {
		if state != "" {
			c := &api.Connection{}
			if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: "liqo-tenant-p", Name: "gw-p"}, c); err != nil {
				w.t.Fatal(err)
			}
			c.Status = api.ConnectionStatus{Value: state, Latency: api.ConnectionLatency{Value: "2ms", Timestamp: metav1.NewTime(w.clock.Now())}}
			if err := w.Status().Update(w.t.Context(), c); err != nil {
				w.t.Fatal(err)
			}
		}
		w.clock.SetTime(w.clock.Now().Add(lookInterval))
		if err := w.gateways.lookAtAll(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// expect has the controller look, and checks the conditions, and whether new pods may come to the node.
func (w *silentWorld) expect(step, ready, reachable string, open bool) *v1alpha1.Provider {
	w.t.Helper()
	if _, err := w.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "p"}}); err != nil {
		w.t.Fatal(err)
	}
	p, node, key := &v1alpha1.Provider{}, &corev1.Node{}, client.ObjectKey{Name: "p"}
	if err := errors.Join(w.Get(w.t.Context(), key, p), w.Get(w.t.Context(), key, node)); err != nil {
		w.t.Fatal(err)
	}
	for kind, want := range map[string]string{v1alpha1.ConditionReady: ready, v1alpha1.ConditionReachable: reachable} {
		c := meta.FindStatusCondition(p.Status.Conditions, kind)
		if got := string(c.Status) + " " + c.Reason; got != want {
			w.t.Errorf("%s: %s is %s, want %s: %s", step, kind, got, want, c.Message)
		}
	}
	closed := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == liqo.TaintCordoned })
	if closed == open {
		w.t.Errorf("%s: the node is open to new pods: %v", step, !closed)
	}
	if offers := !p.Status.Offered.Cpu().IsZero(); offers != open {
		w.t.Errorf("%s: it has %v for consumers", step, p.Status.Offered)
	}
	return p
}

// TestGatewaySilent stops the gateway to a provider, whose virtual node Liqo goes on calling ready, and starts the broker again meanwhile.
func TestGatewaySilent(t *testing.T) {
	const offering, reachable, silent = "True Offering", "True NodeReady", "False GatewaySilent"
	w := newSilentWorld(t)
	w.passes(time.Minute, api.Connected)
	w.expect("It speaks", offering, reachable, true)
	stopped := w.clock.Now()
	w.passes(90*time.Second, "")
	w.expect("It may be back", offering, reachable, true)
	w.passes(time.Minute, "")
	p := w.expect("It is silent", silent, silent, false)
	if since := p.UnreachableSince(); since == nil || since.Before(&metav1.Time{Time: stopped.Add(2 * time.Minute)}) {
		t.Errorf("it is lost since %v, before anybody could know", since)
	}
	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	if want := "its gateway has not said so since 2027-01-15T08:00:5"; !strings.Contains(ready.Message, want) {
		t.Errorf("people read %q, want %q", ready.Message, want)
	}

	// Another process knows of it by what the last one has written, until it hears of the gateway itself.
	w.passes(time.Hour, "")
	w.restart()
	w.expect("The broker starts again", silent, silent, false)
	w.passes(time.Hour, "")
	again := w.expect("It stays so", silent, silent, false)
	if !again.UnreachableSince().Equal(p.UnreachableSince()) {
		t.Errorf("it is lost since %v, and was since %v", again.UnreachableSince(), p.UnreachableSince())
	}
	w.passes(2*lookInterval, api.Connected)
	w.expect("It speaks again", offering, reachable, true)

	// What Liqo says itself counts: the virtual kubelet hears of a tunnel that is down.
	w.passes(5*time.Minute, "")
	w.expect("It is silent again", silent, silent, false)
	w.passes(lookInterval, api.ConnectionError)
	w.expect("It says that the tunnel is down, and the node is ready still", offering, reachable, true)
}

// TestSilentNode has a virtual node that is not ready: that goes before, and says since when.
func TestSilentNode(t *testing.T) {
	w := newSilentWorld(t)
	w.passes(time.Minute, api.Connected)
	w.passes(5*time.Minute, "")
	node := &corev1.Node{}
	if err := w.Get(t.Context(), client.ObjectKey{Name: "p"}, node); err != nil {
		t.Fatal(err)
	}
	node.Status.Conditions[0].Status, node.Status.Conditions[0].LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(w.clock.Now())
	if err := w.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	w.expect("Its node is not ready", "False NodeNotReady", "False NodesNotReady", false)
}

// TestLooksAtGateways has a controller look at a provider whose gateway is heard for the first time.
func TestLooksAtGateways(t *testing.T) {
	w := newSilentWorld(t)
	p := &v1alpha1.Provider{}
	watches.Start(t, w.Scheme(), func(mgr ctrl.Manager) error {
		return Setup(mgr, Config{
			Client: w.WithWatch, Reader: w.reader, Clock: w.clock, Plans: plans(),
			Live: func(context.Context) ([]liqo.Link, error) { return nil, errors.New("nobody is in doubt") },
		})
	}, p)
	for said := w.clock.Now(); ; said = said.Add(time.Second) {
		c := &api.Connection{}
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: "liqo-tenant-p", Name: "gw-p"}, c); err != nil {
			t.Fatal(err)
		}
		c.Status = api.ConnectionStatus{Value: api.Connected, Latency: api.ConnectionLatency{Timestamp: metav1.NewTime(said)}}
		if err := w.Status().Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := w.Get(t.Context(), client.ObjectKey{Name: "p"}, p); err != nil {
			t.Fatal(err)
		}
		if len(p.Status.Conditions) > 0 {
			return
		}
		if said.Sub(w.clock.Now()) > 30*time.Second {
			t.Fatal("nobody looks at the provider")
		}
		time.Sleep(time.Second)
	}
}
