// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package outofband

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/liqotest"
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
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	objects = append(objects, liqotest.Liqo(own, "first")...)
	c := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(objects...).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).Build()
	return &world{New(c, "liqo"), t}
}

// foreign returns the foreign cluster of the remote cluster; nil if there is none.
func (w *world) foreign() *liqo.ForeignCluster {
	w.t.Helper()
	fc, err := liqo.ForeignClusterOf(w.t.Context(), w.client, remote.ID)
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
	if fc == nil || fc.Spec.OutgoingPeeringEnabled != "Yes" || fc.Spec.ForeignAuthURL != authURL {
		t.Fatalf("Liqo is not told to peer: %+v", fc)
	}
	if got := w.secret("remote-token-2222"); got == nil || liqo.Token(got) != "token" {
		t.Fatalf("Liqo does not have the token: %v", got != nil)
	}
	twice("peer with another token", func() error { return w.Peer(t.Context(), credentials(t, "again")) })
	if got := liqo.Token(w.secret("remote-token-2222")); got != "again" {
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
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
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
	if liqo.Token(w.secret(liqo.AuthTokenName)) == "first" {
		t.Error("the seller, whom Liqo told this cluster's token, can go on using it")
	}
}

// TestBuyLeavesOthers has people peer the clusters without a contract.
func TestBuyLeavesOthers(t *testing.T) {
	fc := liqotest.ForeignCluster(remote, true, false)
	w := newWorld(t, fc)
	if err := w.Peer(t.Context(), credentials(t, "token")); !errors.Is(err, peering.ErrForeign) {
		t.Errorf("Peer(): %v, want %v", err, peering.ErrForeign)
	}
	if w.secret("remote-token-2222") != nil {
		t.Error("the token of the peering that exists is replaced")
	}
	if done, err := w.Unpeer(t.Context(), remote.ID); err != nil || !done || w.foreign().Spec.OutgoingPeeringEnabled == "No" {
		t.Errorf("Unpeer(): %t, %v; the peering of others ends: %t", done, err, w.foreign().Spec.OutgoingPeeringEnabled == "No")
	}
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
	if got := issued(w.secret(liqo.AuthTokenName)); !slices.Equal(got, []cluster.ID{remote.ID, other.ID}) {
		t.Errorf("issued to %v", got)
	}
	// Liqo writes down who peers.
	for _, o := range []client.Object{liqotest.ForeignCluster(remote, false, true), liqo.PeerToken("liqo", remote.ID, "of the buyer")} {
		if err := w.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Issue(t.Context(), remote); err != nil {
		t.Fatalf("Issue() to who has peered with what was issued: %v", err)
	}
	if done, err := w.Withdraw(t.Context(), remote.ID); err != nil || done {
		t.Errorf("withdrawn while it is offered something: %t, %v", done, err)
	}
	token := liqo.Token(w.secret(liqo.AuthTokenName))
	if token == "first" || len(token) != 128 {
		t.Errorf("the token is still good, or none: %d characters", len(token))
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
	if got := liqo.Token(w.secret(liqo.AuthTokenName)); got != token {
		t.Error("the token is replaced for who was not told it")
	}
	if c, err := w.Issue(t.Context(), remote); err != nil || c.Token() != token || w.foreign().Spec.IncomingPeeringEnabled != "Yes" {
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
		t.Errorf("withdrawn from who has left: %t, %v; left: %v, the buyer's token %t", done, err, w.foreign(), w.secret("remote-token-2222") != nil)
	}
}

// TestSellLeavesOthers has people peer the clusters without a contract.
func TestSellLeavesOthers(t *testing.T) {
	w := newWorld(t, liqotest.ForeignCluster(remote, false, true))
	if _, err := w.Issue(t.Context(), remote); !errors.Is(err, peering.ErrForeign) {
		t.Errorf("Issue(): %v, want %v", err, peering.ErrForeign)
	}
	if _, err := w.Issue(t.Context(), own); err == nil || !strings.Contains(err.Error(), "itself") {
		t.Errorf("a cluster buys from itself: %v", err)
	}
}
