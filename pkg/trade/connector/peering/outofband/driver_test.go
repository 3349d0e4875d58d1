// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package outofband

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/clocktest"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
)

const authURL = "https://192.0.2.1:30443"

var (
	own    = cluster.Identity{ID: "1111", Name: "own"}
	remote = cluster.Identity{ID: "2222", Name: "remote"}
	other  = cluster.Identity{ID: "3333", Name: "other"}
)

// world is a cluster with Liqo.
type world struct {
	*Driver
	t *testing.T
	// at is what time it is.
	at time.Time
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	objects = append(objects, liqotest.Liqo(own, "first")...)
	c := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(objects...).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).Build()
	w := &world{t: t, at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	var err error
	w.Driver, err = New(Config{Client: c, Namespace: "liqo", Clock: clocktest.Func(func() time.Time { return w.at })})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// foreign returns the foreign cluster of the remote cluster; nil if there is none.
func (w *world) foreign() *v09.ForeignCluster {
	w.t.Helper()
	fc, err := v09.ForeignClusterOf(w.t.Context(), w.client, remote.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return fc
}

// peered lets Liqo make or end peerings.
func (w *world) peered(outgoing, incoming bool) {
	w.t.Helper()
	fc := w.foreign()
	liqotest.SetPeering(fc, outgoing, incoming)
	if err := w.client.Update(w.t.Context(), fc); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) secret(name string) *corev1.Secret {
	w.t.Helper()
	var s corev1.Secret
	err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "liqo", Name: name}, &s)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return &s
}

func credentials(t *testing.T, token string) peering.Credentials {
	t.Helper()
	c, err := peering.NewCredentials(remote, authURL, token)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestLeadsInside peers with nobody whose name leads to this machine, or to its link.
func TestLeadsInside(t *testing.T) {
	for name, tc := range map[string]struct {
		found []string
		ok    bool
	}{
		"Outside": {[]string{"192.0.2.1", "2001:db8::1"}, true}, "Loopback": {[]string{"192.0.2.1", "127.0.0.1"}, false},
		"Link": {[]string{"169.254.169.254"}, false}, "Nobody": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.lookup = func(context.Context, string) ([]netip.Addr, error) {
				var all []netip.Addr
				for _, text := range tc.found {
					all = append(all, netip.MustParseAddr(text))
				}
				if len(all) == 0 {
					return nil, errors.New("no such host")
				}
				return all, nil
			}
			c, err := peering.NewCredentials(remote, "https://auth.example.org:30443", "token")
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Peer(t.Context(), c); (err == nil) != tc.ok || err != nil && !errors.Is(err, peering.ErrCredentials) {
				t.Errorf("Peer(): %v", err)
			}
			if (w.foreign() != nil) != tc.ok {
				t.Errorf("Liqo is told to peer: %+v", w.foreign())
			}
		})
	}
}

// TestNamesake peers with a seller whose name is that of a cluster that is peered already.
func TestNamesake(t *testing.T) {
	w := newWorld(t)
	other := v09.NewForeignCluster(cluster.Identity{ID: "9999", Name: remote.Name}, authURL)
	if err := w.client.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if err := w.Peer(t.Context(), credentials(t, "token")); err != nil {
		t.Fatal(err)
	}
	fc, err := v09.ForeignClusterOf(t.Context(), w.client, remote.ID)
	if err != nil || fc == nil || fc.Name == remote.Name || v09.Identity(fc).Name != fc.Name {
		t.Errorf("the seller is known as %+v, %v", fc, err)
	}
}

// TestBuy peers with a seller, drains its node and parts, each step twice.
func TestBuy(t *testing.T) {
	w := newWorld(t)
	twice := func(step string, do func() error) {
		t.Helper()
		for range 2 {
			if err := do(); err != nil {
				t.Fatalf("%s: %v", step, err)
			}
		}
	}
	twice("peer", func() error { return w.Peer(t.Context(), credentials(t, "token")) })
	fc := w.foreign()
	if fc == nil || fc.Spec.OutgoingPeeringEnabled != "Yes" || fc.Spec.IncomingPeeringEnabled != "No" || fc.Spec.ForeignAuthURL != authURL {
		t.Fatalf("Liqo is not told to peer: %+v", fc)
	}
	if got := w.secret("remote-token-2222"); got == nil || v09.Token(got) != "token" {
		t.Fatalf("Liqo does not have the token: %v", got != nil)
	}
	twice("peer with another token", func() error { return w.Peer(t.Context(), credentials(t, "again")) })
	if got := v09.Token(w.secret("remote-token-2222")); got != "again" {
		t.Errorf("Liqo has the token %q, want the last one", got)
	}

	w.peered(true, false)
	if err := w.client.Create(t.Context(), liqotest.VirtualNode(remote, true)); err != nil {
		t.Fatal(err)
	}
	state, err := w.State(t.Context(), remote.ID)
	if err != nil || !state.Established || len(state.Nodes) != 1 || !state.Nodes[0].Ready {
		t.Fatalf("peered: %+v, %v", state, err)
	}

	node := state.Nodes[0].Name
	pod := func(name, kind string, phase corev1.PodPhase) {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: node},
			Status: corev1.PodStatus{Phase: phase},
		}
		p.Spec.Containers = []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("250m")}}},
		}
		if kind != "" {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "owner", UID: "1", Controller: new(true)}}
		}
		if err := w.client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	pod("web", "ReplicaSet", corev1.PodRunning)
	pod("agent", "DaemonSet", corev1.PodRunning)
	pod("done", "Job", corev1.PodSucceeded)
	if requested, err := w.Requested(t.Context(), remote.ID); err != nil || requested.Pods().Value() != 2 ||
		requested.Cpu().MilliValue() != 500 {
		t.Errorf("requested: %v, %v; want that of the two that have not ended", requested, err)
	}
	if left, err := w.Drain(t.Context(), remote.ID); err != nil || left != 1 {
		t.Errorf("drain: %d left, %v; want the one that runs", left, err)
	}
	if left, err := w.Drain(t.Context(), remote.ID); err != nil || left != 0 {
		t.Errorf("drain again: %d left, %v", left, err)
	}
	var n corev1.Node
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: node}, &n); err != nil || !n.Spec.Unschedulable {
		t.Errorf("the node takes new pods (%v)", err)
	}

	if done, err := w.Unpeer(t.Context(), remote.ID); err != nil || done {
		t.Errorf("unpeered while Liqo has not: %t, %v", done, err)
	}
	if got := w.foreign().Spec.OutgoingPeeringEnabled; got != "No" {
		t.Errorf("Liqo is told %q, want No", got)
	}
	w.peered(false, false)
	if done, err := w.Unpeer(t.Context(), remote.ID); err != nil || done {
		t.Errorf("unpeered while the node is there: %t, %v", done, err)
	}
	if err := w.client.Delete(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := w.Unpeer(t.Context(), remote.ID); err != nil {
			t.Fatal(err)
		}
	}
	if done, err := w.Unpeer(t.Context(), remote.ID); err != nil || !done || w.foreign() != nil || w.secret("remote-token-2222") != nil {
		t.Errorf("unpeered: %t, %v; left: %v, %v", done, err, w.foreign(), w.secret("remote-token-2222") != nil)
	}
	if v09.Token(w.secret(v09.AuthTokenName)) == "first" {
		t.Error("the seller, whom Liqo told this cluster's token, can go on using it")
	}
}

// TestLetIn goes on with a peering whose seller people let consume in turn, and leaves that as it is, but not beyond the end.
func TestLetIn(t *testing.T) {
	w := newWorld(t)
	peer := func() {
		t.Helper()
		if err := w.Peer(t.Context(), credentials(t, "token")); err != nil {
			t.Fatal(err)
		}
	}
	peer()
	fc := w.foreign()
	v09.Provide(fc)
	if err := w.client.Update(t.Context(), fc); err != nil {
		t.Fatal(err)
	}
	if peer(); !v09.Provides(w.foreign()) {
		t.Error("whom people have let in is put out")
	}
	w.at = w.at.Add(nodeTimeout)
	w.peered(true, true)
	if done, err := w.Unpeer(t.Context(), remote.ID); err != nil || done || v09.Provides(w.foreign()) {
		t.Errorf("unpeered: %t, %v; the seller may consume beyond the end: %t", done, err, v09.Provides(w.foreign()))
	}
}

// TestBuyLeavesOthers has people know the seller's cluster without a contract, in whichever direction they share with it.
func TestBuyLeavesOthers(t *testing.T) {
	for name, fc := range map[string]*v09.ForeignCluster{
		"Provides": liqotest.ForeignCluster(remote, true, false), "Consumes": liqotest.ForeignCluster(remote, false, true),
		"CameUnasked": liqotest.CameUnasked(remote), "Nothing": liqotest.ForeignCluster(remote, false, false),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fc)
			before := w.foreign()
			if err := w.Peer(t.Context(), credentials(t, "token")); !errors.Is(err, peering.ErrForeign) {
				t.Errorf("Peer(): %v, want %v", err, peering.ErrForeign)
			}
			if w.secret("remote-token-2222") != nil {
				t.Error("the token of the peering that exists is replaced")
			}
			if done, err := w.Unpeer(t.Context(), remote.ID); err != nil || !done {
				t.Errorf("Unpeer(): %t, %v", done, err)
			}
			if w.foreign().ResourceVersion != before.ResourceVersion {
				t.Errorf("what people have made is changed to %+v", w.foreign().Spec)
			}
		})
	}
	w := newWorld(t)
	itself, err := peering.NewCredentials(own, authURL, "token")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Peer(t.Context(), itself); !errors.Is(err, peering.ErrCredentials) {
		t.Errorf("a cluster peers with itself: %v", err)
	}
}

// TestSell issues credentials to two clusters and withdraws those of one.
func TestSell(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		c, err := w.Issue(t.Context(), remote)
		if err != nil || c.Cluster() != own || c.AuthURL() != "https://192.0.2.7" || c.Token() != "first" {
			t.Fatalf("Issue(): %v, %v", c, err)
		}
	}
	if _, err := w.Issue(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if got := listed(w.secret(v09.AuthTokenName), annotationIssued); !slices.Equal(got, []cluster.ID{remote.ID, other.ID}) {
		t.Errorf("issued to %v", got)
	}
	// Liqo writes down who peers. It has used its token then: nobody can use it again, and who has not used it is issued another one.
	for _, o := range []client.Object{liqotest.CameUnasked(remote), v09.PeerToken("liqo", remote.ID, "of the buyer")} {
		if err := w.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	w.arrive()
	token := v09.Token(w.secret(v09.AuthTokenName))
	if token == "first" || len(token) != 128 {
		t.Errorf("the token is still good, or none: %d characters", len(token))
	}
	if is, err := w.Sold(t.Context(), remote.ID); err != nil || !is || !v09.Provides(w.foreign()) {
		t.Errorf("it consumes by contract: %t, %v, %+v", is, err, w.foreign().Spec)
	}
	if c, err := w.Issue(t.Context(), remote); err != nil || c.Token() == token {
		t.Fatalf("Issue() to who has used what was issued: %v; it has a token again: %t", err, c.Token() == token)
	}
	if c, err := w.Issue(t.Context(), other); err != nil || c.Token() != token {
		t.Errorf("the other cluster has no token that is good: %v", err)
	}
	if w.arrive(); v09.Token(w.secret(v09.AuthTokenName)) != token {
		t.Error("the token is replaced again, though nobody has used it")
	}
	if done, err := w.Withdraw(t.Context(), remote.ID); err != nil || done {
		t.Errorf("withdrawn while it is offered something: %t, %v", done, err)
	}
	if got := w.foreign().Spec.IncomingPeeringEnabled; got != "No" {
		t.Errorf("Liqo is told %q, want No", got)
	}
	w.peered(false, false)
	request := liqotest.ResourceRequest(remote)
	if err := w.client.Create(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if done, err := w.Withdraw(t.Context(), remote.ID); err != nil || !done || w.foreign() == nil {
		t.Errorf("withdrawn from who still asks: %t, %v; the record that refuses is there: %t", done, err, w.foreign() != nil)
	}
	if got := v09.Token(w.secret(v09.AuthTokenName)); got != token {
		t.Error("the token is replaced for who was not told it")
	}
	if c, err := w.Issue(t.Context(), remote); err != nil || c.Token() == token || w.foreign().Spec.IncomingPeeringEnabled != "Yes" {
		t.Errorf("a second contract: %v, %v", c, err)
	}
	if err := w.client.Delete(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := w.Withdraw(t.Context(), remote.ID); err != nil {
			t.Fatal(err)
		}
	}
	if done, err := w.Withdraw(t.Context(), remote.ID); err != nil || !done || w.foreign() != nil || w.secret("remote-token-2222") != nil {
		t.Errorf("withdrawn from who has left: %t, %v; left: %v, the buyer's token %t", done, err, w.foreign(),
			w.secret("remote-token-2222") != nil)
	}
}

// TestResume opens the nodes again that were drained, and no others, once contracts give as much as they have.
func TestResume(t *testing.T) {
	w := newWorld(t)
	if err := w.Peer(t.Context(), credentials(t, "token")); err != nil {
		t.Fatal(err)
	}
	drained, people := liqotest.VirtualNode(remote, true), liqotest.VirtualNode(remote, true)
	drained.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("4")}
	if err := w.client.Create(t.Context(), drained); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Drain(t.Context(), remote.ID); err != nil {
		t.Fatal(err)
	}
	people.Name, people.Spec.Unschedulable = "closed-by-people", true
	if err := w.client.Create(t.Context(), people); err != nil {
		t.Fatal(err)
	}
	are := func(when string, want bool) {
		t.Helper()
		for node, want := range map[*corev1.Node]bool{drained: want, people: true} {
			if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil || node.Spec.Unschedulable != want {
				t.Errorf("%s: node %s is closed: %t, %v", when, node.Name, node.Spec.Unschedulable, err)
			}
		}
	}
	open := func(cores string) {
		t.Helper()
		if err := w.Open(t.Context(), remote.ID, corev1.ResourceList{"cpu": resource.MustParse(cores)}); err != nil {
			t.Fatal(err)
		}
	}
	are("drained", true)
	if err := w.Peer(t.Context(), credentials(t, "token")); err != nil {
		t.Fatal(err)
	}
	are("peered for another contract", true)
	open("3")
	are("larger than what contracts give", true)
	open("4")
	are("as large", false)
}

// TestCleanup forgets a cluster of a contract when nothing is shared with it any more, and no other.
func TestCleanup(t *testing.T) {
	w := newWorld(t)
	forgotten := func() bool {
		t.Helper()
		name := client.ObjectKey{Name: remote.Name}
		if fc := w.foreign(); fc != nil {
			name.Name = fc.Name
		}
		if _, err := NewCleanup(w.Driver).Reconcile(t.Context(), ctrl.Request{NamespacedName: name}); err != nil {
			t.Fatal(err)
		}
		return w.foreign() == nil
	}
	if err := w.client.Create(t.Context(), liqotest.ForeignCluster(remote, false, false)); err != nil {
		t.Fatal(err)
	}
	if forgotten() {
		t.Fatal("what people have made is gone")
	}
	if err := w.client.Delete(t.Context(), w.foreign()); err != nil {
		t.Fatal(err)
	}
	if err := w.Peer(t.Context(), credentials(t, "token")); err != nil {
		t.Fatal(err)
	}
	if forgotten() {
		t.Fatal("what a contract needs is gone")
	}
	w.peered(false, true) // The seller has peered in turn.
	w.at = w.at.Add(nodeTimeout)
	if done, err := w.Unpeer(t.Context(), remote.ID); err != nil || !done || forgotten() {
		t.Fatalf("parted from who still consumes: %t, %v; it is gone: %t", done, err, w.foreign() == nil)
	}
	w.peered(false, false)
	if !forgotten() {
		t.Error("it is left for ever")
	}
}

// TestPeerInTurn peers in turn with a buyer that has peered, and ends both.
func TestPeerInTurn(t *testing.T) {
	w := newWorld(t)
	if _, err := w.Issue(t.Context(), remote); err != nil {
		t.Fatal(err)
	}
	if done, err := w.PeerInTurn(t.Context(), remote.ID); err != nil || done {
		t.Errorf("with who has not peered: %t, %v", done, err)
	}
	if err := w.client.Create(t.Context(), liqotest.CameUnasked(remote)); err != nil {
		t.Fatal(err)
	}
	w.arrive()
	if done, err := w.PeerInTurn(t.Context(), remote.ID); err != nil || !done || !v09.Consumes(w.foreign()) {
		t.Errorf("with who has peered: %t, %v, %+v", done, err, w.foreign().Spec)
	}
	w.peered(true, false)
	if done, err := w.Withdraw(t.Context(), remote.ID); err != nil || done || v09.Consumes(w.foreign()) {
		t.Errorf("withdrawn while the clusters are still peered: %t, %v, %+v", done, err, w.foreign().Spec)
	}
	w.peered(false, false)
	if _, err := w.Withdraw(t.Context(), remote.ID); err != nil {
		t.Fatal(err)
	}
	if done, err := w.Withdraw(t.Context(), remote.ID); err != nil || !done || w.foreign() != nil {
		t.Errorf("withdrawn: %t, %v, %+v", done, err, w.foreign())
	}
}

// TestSellLeavesOthers has people know the buyer's cluster without a contract, in whichever direction they share with it, before something
// is issued to it and after.
func TestSellLeavesOthers(t *testing.T) {
	for name, fc := range map[string]*v09.ForeignCluster{
		"Consumes": liqotest.ForeignCluster(remote, false, true), "Provides": liqotest.ForeignCluster(remote, true, false),
		"CameUnasked": liqotest.CameUnasked(remote), "Nothing": liqotest.ForeignCluster(remote, false, false),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fc)
			if _, err := w.Issue(t.Context(), remote); !errors.Is(err, peering.ErrForeign) {
				t.Errorf("Issue(): %v, want %v", err, peering.ErrForeign)
			}
			w.leaves(w.foreign())
		})
	}
	t.Run("MadeLater", func(t *testing.T) {
		w := newWorld(t)
		if _, err := w.Issue(t.Context(), remote); err != nil {
			t.Fatal(err)
		}
		if err := w.client.Create(t.Context(), liqotest.ForeignCluster(remote, false, true)); err != nil {
			t.Fatal(err)
		}
		before := w.foreign()
		w.arrive()
		w.leaves(before)
		if v09.Token(w.secret(v09.AuthTokenName)) == "first" {
			t.Error("what was issued is still good")
		}
	})
	w := newWorld(t)
	if _, err := w.Issue(t.Context(), own); err == nil || !strings.Contains(err.Error(), "itself") {
		t.Errorf("a cluster buys from itself: %v", err)
	}
}

// leaves fails if the end of a contract changes what people have made.
func (w *world) leaves(fc *v09.ForeignCluster) {
	w.t.Helper()
	if done, err := w.PeerInTurn(w.t.Context(), remote.ID); err != nil || done {
		w.t.Errorf("PeerInTurn(): %t, %v", done, err)
	}
	if done, err := w.Withdraw(w.t.Context(), remote.ID); err != nil || !done {
		w.t.Errorf("Withdraw(): %t, %v", done, err)
	}
	if is, err := w.Sold(w.t.Context(), remote.ID); err != nil || is {
		w.t.Errorf("it consumes by contract: %t, %v", is, err)
	}
	if after := w.foreign(); after == nil || after.ResourceVersion != fc.ResourceVersion {
		w.t.Errorf("what people have made is changed to %+v", after)
	}
}

// arrive has the connector look at the foreign cluster after Liqo has changed it.
func (w *world) arrive() {
	w.t.Helper()
	if _, err := NewArrivals(w.Driver).Reconcile(w.t.Context(),
		ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.foreign())}); err != nil {
		w.t.Fatal(err)
	}
}

// TestToldOnce replaces the token of a buyer's cluster when its seller, whom Liqo tells it, has used it.
func TestToldOnce(t *testing.T) {
	w := newWorld(t)
	if err := w.Peer(t.Context(), credentials(t, "token")); err != nil {
		t.Fatal(err)
	}
	if w.arrive(); v09.Token(w.secret(v09.AuthTokenName)) != "first" {
		t.Error("the token is replaced before it is used")
	}
	w.peered(true, false)
	w.arrive()
	token := v09.Token(w.secret(v09.AuthTokenName))
	if token == "first" {
		t.Error("the seller can use the token again")
	}
	if err := w.Peer(t.Context(), credentials(t, "token")); err != nil {
		t.Fatal(err)
	}
	if w.arrive(); v09.Token(w.secret(v09.AuthTokenName)) != token {
		t.Error("the token is replaced again")
	}
}

// TestToldTogether keeps the token that two sellers were told until both have used it, since Liqo tells it once, and not if one of them may
// not any more.
func TestToldTogether(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		w := newWorld(t)
		second, err := peering.NewCredentials(other, authURL, "token")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []peering.Credentials{credentials(t, "token"), second} {
			if err := w.Peer(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		w.peered(true, false)
		if w.arrive(); v09.Token(w.secret(v09.AuthTokenName)) != "first" {
			t.Error("the token is replaced before the second seller has used it")
		}
		fc, err := v09.ForeignClusterOf(t.Context(), w.client, other.ID)
		if err != nil || fc == nil {
			t.Fatal(err)
		}
		if leaves {
			w.at = w.at.Add(nodeTimeout)
			if _, err := w.Unpeer(t.Context(), other.ID); err != nil {
				t.Fatal(err)
			}
		} else {
			liqotest.SetPeering(fc, true, false)
			if err := w.client.Update(t.Context(), fc); err != nil {
				t.Fatal(err)
			}
			if _, err := NewArrivals(w.Driver).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(fc)}); err != nil {
				t.Fatal(err)
			}
		}
		secret := w.secret(v09.AuthTokenName)
		if v09.Token(secret) == "first" || secret.Annotations[annotationSpent] != "" {
			t.Errorf("the second one leaves: %t; the token is still good, %v", leaves, secret.Annotations)
		}
	}
}

// TestComeTogether takes a cluster that comes with an identity of before for that of its contract, also after another one has used the
// token.
func TestComeTogether(t *testing.T) {
	w := newWorld(t)
	for _, buyer := range []cluster.Identity{remote, other} {
		if _, err := w.Issue(t.Context(), buyer); err != nil {
			t.Fatal(err)
		}
	}
	for _, buyer := range []cluster.Identity{other, remote} {
		fc := liqotest.CameUnasked(buyer)
		if err := w.client.Create(t.Context(), fc); err != nil {
			t.Fatal(err)
		}
		if _, err := NewArrivals(w.Driver).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(fc)}); err != nil {
			t.Fatal(err)
		}
		if is, err := w.Sold(t.Context(), buyer.ID); err != nil || !is {
			t.Errorf("%s consumes by contract: %t, %v", buyer, is, err)
		}
	}
}

// TestBoth buys from a cluster and sells to it. Each ends without the other.
func TestBoth(t *testing.T) {
	for name, first := range map[string]string{"BuyerFirst": "buyer", "SellerFirst": "seller"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if err := w.Peer(t.Context(), credentials(t, "token")); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Issue(t.Context(), remote); err != nil || !v09.Provides(w.foreign()) || !v09.Consumes(w.foreign()) {
				t.Fatalf("sold: %v, %+v", err, w.foreign().Spec)
			}
			w.peered(true, true)
			w.arrive()
			w.at = w.at.Add(nodeTimeout)
			end := map[string]func(context.Context, cluster.ID) (bool, error){"buyer": w.Unpeer, "seller": w.Withdraw}
			if _, err := end[first](t.Context(), remote.ID); err != nil {
				t.Fatal(err)
			}
			w.peered(first != "buyer", first != "seller")
			if done, err := end[first](t.Context(), remote.ID); err != nil || !done {
				t.Errorf("ended: %t, %v", done, err)
			}
			if fc := w.foreign(); fc == nil || v09.Consumes(fc) != (first != "buyer") || v09.Provides(fc) != (first != "seller") {
				t.Errorf("the other direction: %+v", fc)
			}
			delete(end, first)
			for _, last := range end {
				for range 3 {
					if _, err := last(t.Context(), remote.ID); err != nil {
						t.Fatal(err)
					}
					if w.foreign() != nil {
						w.peered(false, false)
					}
				}
			}
			if w.foreign() != nil {
				t.Errorf("it is left: %+v", w.foreign())
			}
		})
	}
}

// TestRemoval removes a cluster that Liqo still writes down something of, and has it look again until it lets go, but not all the time.
func TestRemoval(t *testing.T) {
	w := newWorld(t)
	if err := w.Peer(t.Context(), credentials(t, "token")); err != nil {
		t.Fatal(err)
	}
	w.at = w.at.Add(nodeTimeout)
	fc := w.foreign()
	fc.Status.TenantNamespace.Local = "tenant"
	fc.Finalizers = []string{"liqo.example/replicator"}
	if err := w.client.Update(t.Context(), fc); err != nil {
		t.Fatal(err)
	}
	mapped := &v09.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "remote"}}
	if err := w.client.Create(t.Context(), mapped); err != nil {
		t.Fatal(err)
	}
	unpeer := func() *v09.ForeignCluster {
		t.Helper()
		if done, err := w.Unpeer(t.Context(), remote.ID); err != nil || done {
			t.Fatalf("unpeered: %t, %v", done, err)
		}
		return w.foreign()
	}
	if fc := unpeer(); !fc.DeletionTimestamp.IsZero() {
		t.Error("it is deleted while Liqo maps namespaces, so that it stays for minutes")
	}
	if err := w.client.Delete(t.Context(), mapped); err != nil {
		t.Fatal(err)
	}
	if fc := unpeer(); fc.DeletionTimestamp.IsZero() {
		t.Fatal("it is not deleted")
	}
	seen := map[string]bool{}
	for range 3 * int(askedAgain/time.Second) {
		seen[unpeer().Labels[labelLooked]] = true
		if result, err := NewCleanup(w.Driver).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(fc)}); err != nil ||
			result.RequeueAfter != askedAgain {
			t.Fatalf("what is left is looked at again after %s, %v", result.RequeueAfter, err)
		}
		w.at = w.at.Add(time.Second)
	}
	if len(seen) != 3 {
		t.Errorf("Liqo was told to look %d times in %s, want 3", len(seen), 3*askedAgain)
	}
	fc = w.foreign()
	fc.Finalizers = nil
	if err := w.client.Update(t.Context(), fc); err != nil {
		t.Fatal(err)
	}
	if done, err := w.Unpeer(t.Context(), remote.ID); err != nil || !done {
		t.Errorf("unpeered, and Liqo has let go: %t, %v", done, err)
	}
}

// TestLookAgain has Liqo look again at peerings that it has not ended yet, on both sides.
func TestLookAgain(t *testing.T) {
	for name, part := range map[string]func(*world) (bool, error){
		"Buyer":  func(w *world) (bool, error) { return w.Unpeer(t.Context(), remote.ID) },
		"Seller": func(w *world) (bool, error) { return w.Withdraw(t.Context(), remote.ID) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if err := w.Peer(t.Context(), credentials(t, "token")); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Issue(t.Context(), remote); err != nil {
				t.Fatal(err)
			}
			w.at = w.at.Add(nodeTimeout)
			w.peered(name == "Buyer", name == "Seller")
			seen := map[string]bool{}
			for range 3 * int(askedAgain/time.Second) {
				if done, err := part(w); err != nil || done {
					t.Fatalf("parted: %t, %v", done, err)
				}
				seen[w.foreign().Labels[labelLooked]] = true
				w.at = w.at.Add(time.Second)
			}
			if len(seen) != 3 {
				t.Errorf("Liqo was told to look %d times in %s, want 3", len(seen), 3*askedAgain)
			}
		})
	}
}

// TestUnpeerEarly ends peerings before there is a node: not until Liqo could have made it.
func TestUnpeerEarly(t *testing.T) {
	for name, tc := range map[string]struct {
		after time.Duration
		node  bool
		ends  bool
	}{
		"AtOnce":      {},
		"NodeIsThere": {node: true, ends: true},
		"Later":       {after: nodeTimeout - time.Second},
		"NoNodeComes": {after: nodeTimeout, ends: true},
		"ClockJumps":  {after: -time.Hour, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if err := w.Peer(t.Context(), credentials(t, "token")); err != nil {
				t.Fatal(err)
			}
			w.at = w.at.Add(tc.after)
			if err := w.Peer(t.Context(), credentials(t, "token")); err != nil { // Again, as after a restart: it began before.
				t.Fatal(err)
			}
			if tc.node {
				if err := w.client.Create(t.Context(), liqotest.VirtualNode(remote, true)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := w.Unpeer(t.Context(), remote.ID); err != nil {
				t.Error(err)
			}
			fc := w.foreign()
			if ends := fc == nil || !v09.Consumes(fc); ends != tc.ends {
				t.Errorf("the peering ends: %t, want %t", ends, tc.ends)
			}
		})
	}
}
