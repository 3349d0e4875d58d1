// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/clocktest"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/purchases"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationtest"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

var errKilled = errors.New("killed")

// somebody is a party of tests.
type somebody struct {
	key  party.Key
	keys party.Keys
}

func newParty(tb testing.TB) somebody {
	tb.Helper()
	key, err := party.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	keys, err := party.ParseKeys([]string{key.Announce()})
	if err != nil {
		tb.Fatal(err)
	}
	return somebody{key, keys}
}

// shop is a seller of tests with one offer, which grants what it has sold when it is told to.
type shop struct {
	somebody

	*negotiationtest.Memory

	url     string
	cluster cluster.Identity
	server  *http.Server

	// clock is the seller's; newWorld sets it.
	clock func() time.Time

	mu    sync.Mutex
	offer offer.Offer
	// stocks are how many contracts there are of a plan; of others there is any number.
	stocks map[string]int64
}

// now returns who the shop is: a party with its newest key.
func (s *shop) now() somebody {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.somebody
}

func (s *shop) Offer(_ context.Context, id string) (offer.Signed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != s.offer.ID {
		return offer.Signed{}, negotiation.ErrNotOffered
	}
	return offer.Sign(s.offer, s.key.Sign)
}

func (s *shop) Limits(_ context.Context, _, plan string) (ledger.Limits, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limits := ledger.Limits{Capacity: corev1.ResourceList{
		"cpu": resource.MustParse("80"), "memory": resource.MustParse("800Gi"), "pods": resource.MustParse("8000"),
	}}
	if stock, bounded := s.stocks[plan]; bounded {
		limits.Stock = &stock
	}
	return limits, nil
}

// sells has the shop sell another plan of its offer too, which costs so much an hour.
func (s *shop) sells(id, amount string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offer.Revision++
	plan := s.offer.Plans[0]
	plan.ID, plan.Notice = id, offer.Duration(10*time.Minute)
	plan.Price.Amount, _ = offer.ParseAmount(amount)
	s.offer.Plans = append(slices.Clone(s.offer.Plans), plan)
	s.stocks = map[string]int64{id: 1}
}

func (s *shop) Credentials(context.Context, contract.Record) (json.RawMessage, error) {
	credentials, err := peering.NewCredentials(s.cluster, "https://auth.example:443", "a-token")
	if err != nil {
		return nil, err
	}
	return credentials.Document()
}

func open(tb testing.TB, remote cluster.Identity, changes ...func(*negotiation.Config)) *shop {
	tb.Helper()
	s := &shop{somebody: newParty(tb), Memory: &negotiationtest.Memory{}, cluster: remote, clock: time.Now}
	now := time.Now().UTC().Truncate(time.Second)
	text := fmt.Sprintf(`{"party":%q,"id":"small","revision":1,"issuedAt":%q,"validUntil":%q,"kind":"Cluster","name":"Small","region":"eu-north",
		"plans":[{"id":"one","range":{"min":{"cpu":"1","memory":"1Gi","pods":"10"},"max":{"cpu":"8","memory":"8Gi","pods":"100"},
			"step":{"cpu":"1","memory":"1Gi","pods":"10"}},"price":{"amount":"0.1","currency":"EUR","period":"PT1H"},
			"unitPrices":{"cpu":{"amount":"0.1","per":"1"}},"available":5}]}`,
		s.key.ID(), now.Format(time.RFC3339), now.Add(24*time.Hour).Format(time.RFC3339))
	var err error
	if s.offer, err = offer.Parse([]byte(text)); err != nil {
		tb.Fatal(err)
	}
	rules, err := negotiation.NewRules(nil, contract.Accept)
	if err != nil {
		tb.Fatal(err)
	}
	cfg := negotiation.Config{
		Party: s.key.ID(), Key: func() party.Key { return s.now().key }, Identify: negotiationtest.FirstKeys, Store: s.Memory, Offers: s,
		Admission: rules, Credentials: s, Keys: func() party.Keys { return s.now().keys },
		Learn:  func(context.Context, party.Keys) error { return nil },
		Seller: contract.Seller{ReserveFor: 10 * time.Minute, DecideFor: time.Hour}, Drain: time.Minute, Limits: negotiation.DefaultLimits(),
		Log: logr.Discard(), Clock: clocktest.Func(func() time.Time { return s.clock() }), TryFor: time.Millisecond,
		Reach: negotiationtest.Reach{At: negotiationv1.Endpoints{
			Cluster: string(remote.ID), Auth: "https://auth.example:443", APIServer: "https://api.example:6443", Gateway: "gateway.example:5871",
		}},
	}
	cfg.Limits.PerSecond, cfg.Limits.AtOnce = 100_000, 100_000
	for _, change := range changes {
		change(&cfg)
	}
	handler, err := negotiation.NewServer(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	dated := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", s.clock().UTC().Format(http.TimeFormat))
		handler.ServeHTTP(w, r)
	})
	s.server = &http.Server{Handler: dated, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	done := make(chan error, 1)
	go func() { done <- s.server.Serve(tls.NewListener(listener, party.TLS{Current: cfg.Key}.Server())) }()
	tb.Cleanup(func() {
		s.server.Close()
		<-done
	})
	s.url = "https://" + listener.Addr().String()
	return s
}

// decide lets the seller do something.
func (s *shop) decide(t *testing.T, key contract.Key, event contract.Event) {
	t.Helper()
	limits, err := s.Limits(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Update(t.Context(), key, func(record *contract.Record, books ledger.Ledger) (contract.Result, error) {
		return contract.Seller{ReserveFor: 10 * time.Minute, DecideFor: time.Hour}.Apply(record, contract.Request{Event: event, Key: key},
			s.clock(), books, limits)
	})
	if err != nil && !errors.Is(err, errKilled) {
		t.Fatalf("%s: %v", event, err)
	}
}

// parties knows shops.
type parties map[party.ID]registryclient.Party

func (p parties) Party(id party.ID) (registryclient.Party, bool) {
	shown, is := p[id]
	return shown, is
}

func (p parties) Owns(id party.ID, of cluster.ID) bool {
	return slices.ContainsFunc(p[id].Said.Clusters, func(c registryv1.Cluster) bool { return c.ID == string(of) })
}

// clusters is a peering.Buyer and a peering.Reach: a peering is established, drained and ended at the second step of each.
type clusters struct {
	mu      sync.Mutex
	steps   map[cluster.ID]int
	pods    map[cluster.ID]int
	foreign bool
	// unguarded is why Peer does nothing; nil if it does.
	unguarded error
	// unreached are those endpoints of sellers that are not reached, and tried are those that were tried. Nowhere has nobody be told where
	// this one is.
	unreached peering.UnreachedError
	tried     []peering.Endpoints
	nowhere   bool
	// unready has no node be ready, and stuck no peering get further than its beginning.
	unready, stuck bool
	log            []string
	// requested is what the pods on all nodes request, size how many cores the nodes have, and closed whether Fit keeps them closed.
	requested corev1.ResourceList
	size      resource.Quantity
	closed    bool
	// kill returns an error after each call that it is to lose.
	kill func() error
}

func newClusters() *clusters {
	return &clusters{steps: map[cluster.ID]int{}, pods: map[cluster.ID]int{}, kill: func() error { return nil }}
}

func (c *clusters) note(what string, id cluster.ID) {
	if text := what + " " + string(id); len(c.log) == 0 || c.log[len(c.log)-1] != text {
		c.log = append(c.log, text)
	}
}

func (c *clusters) Peer(_ context.Context, with peering.Credentials) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.foreign {
		return peering.ErrForeign
	}
	if c.unguarded != nil {
		return c.unguarded
	}
	id := with.Cluster().ID
	c.note("peer", id)
	if c.stuck {
		c.steps[id] = 1
		return c.kill()
	}
	if c.steps[id]++; c.steps[id] == 2 {
		c.pods[id] = 2
	}
	return c.kill()
}

func (c *clusters) Own(context.Context) (peering.Endpoints, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nowhere {
		return peering.Endpoints{Cluster: "here"}, errors.New("there is no Service liqo-auth")
	}
	return peering.Endpoints{Cluster: "here", Auth: "https://home.example", APIServer: "https://home.example:6443",
		Gateway: "home.example:5871"}, nil
}

func (c *clusters) Try(_ context.Context, at peering.Endpoints) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tried = append(c.tried, at)
	if len(c.unreached) > 0 {
		return c.unreached
	}
	return nil
}

func (c *clusters) State(_ context.Context, id cluster.ID) (peering.State, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := peering.State{Exists: c.steps[id] > 0, Established: c.steps[id] > 1}
	if state.Established {
		state.Nodes = []peering.Node{{Name: "liqo-" + string(id), Ready: !c.unready, Closed: c.closed}}
	}
	return state, nil
}

func (c *clusters) Requested(context.Context, cluster.ID) (corev1.ResourceList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.requested), nil
}

func (c *clusters) Drain(_ context.Context, id cluster.ID) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note("drain", id)
	c.pods[id] = max(c.pods[id]-1, 0)
	return c.pods[id], c.kill()
}

// Fit has one core leave each time, and closes nodes that are larger than the room.
func (c *clusters) Fit(_ context.Context, id cluster.ID, room corev1.ResourceList) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	have := c.requested.Cpu().DeepCopy()
	most, counts := room["cpu"]
	c.closed = counts && c.size.Cmp(most) > 0
	if !counts || have.Cmp(most) <= 0 {
		return 0, c.kill()
	}
	c.note("fit", id)
	have.Sub(resource.MustParse("1"))
	c.requested["cpu"] = have
	return 1, c.kill()
}

func (c *clusters) Open(_ context.Context, id cluster.ID, room corev1.ResourceList) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if most := room["cpu"]; c.closed && c.size.Cmp(most) <= 0 {
		c.note("open", id)
		c.closed = false
	}
	return c.kill()
}

func (c *clusters) Unpeer(_ context.Context, id cluster.ID) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note("unpeer", id)
	done := c.steps[id] == 0
	c.steps[id] = 0
	return done, c.kill()
}

// world is a buyer's cluster with its API server.
type world struct {
	t        *testing.T
	buyer    somebody
	parties  parties
	clusters *clusters
	client   client.Client
	// elapsed is how much time has passed: each call of the reconciler takes pause. The clock now may leap.
	elapsed atomic.Int64
	now     func() time.Time
	// fits is whether offers fit what purchases were made for.
	fits bool
	// unguarded is what does not keep sellers in bounds before anything is ordered; nil if all does.
	unguarded error
	// kill is asked around each write, before and after it.
	kill func() error
	// events are written for people; nil is nobody.
	events conditions.Events

	reconciler *purchases.Reconciler
}

func newWorld(t *testing.T, shops ...*shop) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := connectorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, buyer: newParty(t), parties: parties{}, clusters: newClusters(), kill: func() error { return nil }}
	begin := time.Now()
	w.now = func() time.Time { return begin.Add(w.passed()) }
	for _, s := range shops {
		s.clock = func() time.Time { return begin.Add(w.passed()) }
		announced := []registryv1.Cluster{{ID: string(s.cluster.ID), Auth: "auth.example"}}
		w.parties[s.key.ID()] = registryclient.Party{
			Said: registryv1.Announcement{Name: "Shop", Endpoint: s.url, Clusters: announced}, Keys: s.keys,
		}
	}
	killed := func(write func() error) error {
		if err := w.kill(); err != nil {
			return err
		}
		if err := write(); err != nil {
			return err
		}
		return w.kill()
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&connectorv1alpha1.Purchase{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Update: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.UpdateOption) error {
				return killed(func() error { return c.Update(ctx, object, opts...) })
			},
			SubResourceUpdate: func(
				ctx context.Context, c client.Client, sub string, object client.Object, opts ...client.SubResourceUpdateOption,
			) error {
				return killed(func() error { return c.SubResource(sub).Update(ctx, object, opts...) })
			},
		}).Build()
	w.restart()
	return w
}

// restart is a new process.
func (w *world) restart() {
	w.t.Helper()
	var err error
	w.reconciler, err = purchases.New(purchases.Config{
		Client: w.client, Reader: w.client, Parties: w.parties, Peering: w.clusters, Reach: w.clusters,
		Cluster: cluster.Identity{ID: "here", Name: "home"}, Keys: func() party.Keys { return w.buyer.keys },
		Key: func() party.Key { return w.buyer.key }, Clock: clocktest.Func(func() time.Time { return w.now() }), Elapsed: w.passed,
		Events: w.events, Fits: func(context.Context, *connectorv1alpha1.Purchase, offer.Offer) (bool, error) { return w.fits, nil },
		Guarded: func(context.Context) error { return w.unguarded },
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// pause is how much time passes with each call of the reconciler.
const pause = 10 * time.Second

// passed is how much time has passed.
func (w *world) passed() time.Duration { return time.Duration(w.elapsed.Load()) }

// wait lets time pass.
func (w *world) wait(what time.Duration) { w.elapsed.Add(int64(what)) }

// create creates a purchase for an hour.
func (w *world) create(name string, s *shop, change func(*connectorv1alpha1.PurchaseSpec)) {
	w.t.Helper()
	object := &connectorv1alpha1.Purchase{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		Spec: connectorv1alpha1.PurchaseSpec{
			Seller: connectorv1alpha1.PartyID(s.key.ID()), Offer: "small", Plan: "one",
			Resources: v1alpha1.Quantities{"cpu": resource.MustParse("2")}, Duration: &metav1.Duration{Duration: time.Hour},
			MaxPrice: &connectorv1alpha1.Price{Amount: "1", Currency: "EUR", Period: "PT1H"},
		},
	}
	if change != nil {
		change(&object.Spec)
	}
	if err := w.client.Create(context.Background(), object); err != nil {
		w.t.Fatal(err)
	}
}

// get returns a purchase; nil if it is gone.
func (w *world) get(name string) *connectorv1alpha1.Purchase {
	w.t.Helper()
	object := &connectorv1alpha1.Purchase{}
	switch err := w.client.Get(context.Background(), types.NamespacedName{Name: name}, object); {
	case client.IgnoreNotFound(err) != nil:
		w.t.Fatal(err)
	case err != nil:
		return nil
	}
	return object
}

// change changes what people want.
func (w *world) change(name string, change func(*connectorv1alpha1.PurchaseSpec)) {
	w.t.Helper()
	kill := w.kill
	w.kill = func() error { return nil }
	object := w.get(name)
	change(&object.Spec)
	if err := w.client.Update(context.Background(), object); err != nil {
		w.t.Fatal(err)
	}
	w.kill = kill
}

// once calls the reconciler once, and starts another process if it was killed.
func (w *world) once(name string) ctrl.Result {
	w.t.Helper()
	w.wait(pause)
	result, err := w.reconciler.Reconcile(context.Background(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
	switch {
	case errors.Is(err, errKilled):
		w.restart()
	case err != nil:
		w.t.Fatal(err)
	}
	return result
}

// until calls the reconciler until a purchase has the reason; the seller does its duties between.
func (w *world) until(name, reason string, s *shop, between ...func()) *connectorv1alpha1.Purchase {
	w.t.Helper()
	var object *connectorv1alpha1.Purchase
	for range 100 {
		w.once(name)
		if object = w.get(name); object == nil || reasonOf(object) == reason {
			return object
		}
		if s != nil {
			s.serve(w.t, w.key(name))
		}
		for _, do := range between {
			do()
		}
	}
	w.t.Fatalf("%s is not %s: %+v", name, reason, object.Status.Conditions)
	return nil
}

// serve does the seller's duty.
func (s *shop) serve(t *testing.T, key contract.Key) {
	t.Helper()
	record, err := s.Get(t.Context(), key)
	if err != nil || record == nil {
		return
	}
	switch record.Duty() { //nolint:exhaustive // The others are nothing to tell.
	case contract.GrantDuty:
		if record.State == contract.Signed {
			s.decide(t, key, contract.Grant)
		}
	case contract.WithdrawDuty:
		s.decide(t, key, contract.Withdrawn)
	}
}

func (w *world) key(name string) contract.Key {
	return contract.Key{Buyer: string(w.buyer.key.ID()), ID: "uid-" + name}
}

func reasonOf(object *connectorv1alpha1.Purchase) string {
	if c := meta.FindStatusCondition(object.Status.Conditions, connectorv1alpha1.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
}

// remote is the seller's cluster.
func remote() cluster.Identity { return cluster.Identity{ID: "a", Name: "cluster-a"} }

// TestAnotherCluster has a seller give credentials for another cluster than before: the buyer does not peer with it.
func TestAnotherCluster(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, nil)
	for range 20 {
		w.once("p")
		s.serve(t, w.key("p"))
		if len(w.clusters.log) > 0 {
			break
		}
	}
	s.cluster = cluster.Identity{ID: "b", Name: "cluster-b"}
	for range 3 {
		w.once("p")
	}
	p := w.get("p")
	if want := []string{"peer a"}; !slices.Equal(w.clusters.log, want) || reasonOf(p) != connectorv1alpha1.ReasonSellerUnreachable {
		t.Errorf("another cluster: %q, %s", w.clusters.log, reasonOf(p))
	}
}

// TestUnfair does not order what has to be left for more than half of the time.
func TestUnfair(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, func(spec *connectorv1alpha1.PurchaseSpec) { spec.Duration.Duration = 90 * time.Second })
	p := w.until("p", connectorv1alpha1.ReasonOrderRefused, s)
	if p.Status.Record != "" {
		t.Errorf("ordered: %+v", p.Status)
	}
}

// TestLife takes a purchase from the quote to its end, by spec.end and by its deletion.
func TestLife(t *testing.T) {
	for _, how := range []string{"end", "deletion"} {
		t.Run(how, func(t *testing.T) {
			s := open(t, remote())
			w := newWorld(t, s)
			w.create("p", s, nil)
			p := w.until("p", connectorv1alpha1.ReasonActive, s)
			if !meta.IsStatusConditionTrue(p.Status.Conditions, connectorv1alpha1.ConditionReady) || p.Status.State != "Active" ||
				p.Status.Cluster.ID != "a" || !slices.Equal(p.Status.Nodes, []string{"liqo-a"}) || p.Status.Price.Amount != "0.3" ||
				p.Status.Resources.Cpu().Value() != 2 || p.Status.Seller.Endpoint != s.url || len(p.Status.Seller.Keys) != 1 ||
				p.Status.EndTime == nil {
				t.Errorf("active: %+v", p.Status)
			}
			if how == "end" {
				w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) {
					spec.End = &connectorv1alpha1.ContractEnd{Reason: "enough"}
				})
			} else if err := w.client.Delete(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			p = w.until("p", connectorv1alpha1.ReasonEnded, s)
			s.serve(t, w.key("p"))
			if (p == nil) != (how == "deletion") {
				t.Errorf("after its %s: %+v", how, p)
			}
			if want := []string{"peer a", "drain a", "unpeer a"}; !slices.Equal(w.clusters.log, want) {
				t.Errorf("done: %q, want %q", w.clusters.log, want)
			}
			if record, _ := s.Get(t.Context(), w.key("p")); record.State != contract.Ended || len(s.Ledger().Holds) != 0 {
				t.Errorf("the seller has %s and %d holds", record.State, len(s.Ledger().Holds))
			}
		})
	}
}

// TestKill kills the process before and after each write, and after each step of a peering: the outcome is the same.
func TestKill(t *testing.T) {
	for n := 1; ; n++ {
		calls, killed := 0, false
		s := open(t, remote())
		w := newWorld(t, s)
		w.create("p", s, nil)
		w.kill = func() error {
			if calls++; calls == n {
				killed = true
				return errKilled
			}
			return nil
		}
		w.clusters.kill = w.kill
		s.AfterWrite = w.kill
		w.until("p", connectorv1alpha1.ReasonActive, s)
		if err := w.client.Delete(t.Context(), w.get("p")); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			w.once("p")
			s.serve(t, w.key("p"))
			if w.get("p") == nil {
				break
			}
		}
		s.serve(t, w.key("p"))
		record, _ := s.Get(t.Context(), w.key("p"))
		if w.get("p") != nil || record.State != contract.Ended || len(s.Ledger().Holds) != 0 || w.clusters.steps["a"] != 0 ||
			!slices.Equal(w.clusters.log, []string{"peer a", "drain a", "unpeer a"}) {
			t.Fatalf("killed at %d: %+v, the seller has %s and %d holds, done: %q", n, w.get("p"), record.State, len(s.Ledger().Holds),
				w.clusters.log)
		}
		if !killed {
			if n < 30 {
				t.Errorf("only %d places to be killed at", n-1)
			}
			return
		}
	}
}

// TestNotOrdered orders nothing that costs too much, is refused, or is of nobody that is known.
func TestNotOrdered(t *testing.T) {
	for reason, change := range map[string]func(*connectorv1alpha1.PurchaseSpec){
		connectorv1alpha1.ReasonTooExpensive: func(spec *connectorv1alpha1.PurchaseSpec) {
			spec.MaxPrice = &connectorv1alpha1.Price{Amount: "0.29", Currency: "EUR", Period: "PT1H"}
		},
		connectorv1alpha1.ReasonOrderRefused:  func(spec *connectorv1alpha1.PurchaseSpec) { spec.Plan = "other" },
		connectorv1alpha1.ReasonSellerUnknown: func(spec *connectorv1alpha1.PurchaseSpec) { spec.Seller = "nobody" },
	} {
		s := open(t, remote())
		w := newWorld(t, s)
		w.create("p", s, change)
		w.until("p", reason, s)
		if record, _ := s.Get(t.Context(), w.key("p")); record != nil {
			t.Errorf("%s: the seller has a contract", reason)
		}
		if err := w.client.Delete(t.Context(), w.get("p")); err != nil {
			t.Fatal(err)
		}
		if w.once("p"); w.get("p") != nil {
			t.Errorf("%s: it is not let go of", reason)
		}
	}
}

// TestUnguarded orders nothing while nothing keeps sellers in bounds, and peers with nobody if that is found when both have signed. What
// has begun can be ended.
func TestUnguarded(t *testing.T) {
	missing := fmt.Errorf("%w: there is no guard", peering.ErrUnguarded)
	s := open(t, remote())
	w := newWorld(t, s)
	w.unguarded = missing
	w.create("p", s, nil)
	w.until("p", connectorv1alpha1.ReasonUnguarded, s)
	if result := w.once("p"); result.RequeueAfter != 5*time.Second || !strings.Contains(messageOf(w.get("p")), "there is no guard") {
		t.Errorf("%q, looked at again after %s", messageOf(w.get("p")), result.RequeueAfter)
	}
	if record, err := s.Get(t.Context(), w.key("p")); record != nil || err != nil {
		t.Errorf("it is ordered: %+v, %v", record, err)
	}

	w.unguarded, w.clusters.unguarded = nil, missing
	for range 20 {
		w.once("p")
		s.serve(t, w.key("p"))
	}
	if p := w.get("p"); p.Status.State != string(contract.Provisioning) || reasonOf(p) != connectorv1alpha1.ReasonUnguarded ||
		len(w.clusters.log) > 0 {
		t.Errorf("signed: %s, %s, %q", p.Status.State, reasonOf(p), w.clusters.log)
	}
	w.end("p")
	w.until("p", connectorv1alpha1.ReasonEnded, s)
	if slices.Contains(w.clusters.log, "peer "+string(remote().ID)) {
		t.Errorf("it has peered: %q", w.clusters.log)
	}

	w.clusters.unguarded = nil
	w.create("q", s, nil)
	w.until("q", connectorv1alpha1.ReasonActive, s)
}

// TestListed orders what was listed, and of an offer that has changed since only what is as good: not what is dearer, elsewhere, ended
// without notice, or does not fit the request.
func TestListed(t *testing.T) {
	for name, c := range map[string]struct {
		listed func(*connectorv1alpha1.ListedPlan)
		unfit  bool
		most   string
		reason string
	}{
		"the offer":   {func(*connectorv1alpha1.ListedPlan) {}, true, "", connectorv1alpha1.ReasonActive},
		"a newer one": {func(l *connectorv1alpha1.ListedPlan) { l.Digest = "x" }, false, "", connectorv1alpha1.ReasonActive},
		"a cheaper one": {
			func(l *connectorv1alpha1.ListedPlan) { l.Digest, l.Price.Amount = "x", "0.5" }, false, "", connectorv1alpha1.ReasonActive,
		},
		"a dearer one": {
			func(l *connectorv1alpha1.ListedPlan) { l.Digest, l.Price.Amount = "x", "0.29" }, false, "", connectorv1alpha1.ReasonTooExpensive,
		},
		"a dearer one, within limits": {
			func(l *connectorv1alpha1.ListedPlan) { l.Digest, l.Price.Amount = "x", "0.29" }, false, "0.3", connectorv1alpha1.ReasonActive,
		},
		"in another currency": {
			func(l *connectorv1alpha1.ListedPlan) { l.Digest, l.Price.Currency = "x", "USD" }, false, "", connectorv1alpha1.ReasonTooExpensive,
		},
		"elsewhere": {
			func(l *connectorv1alpha1.ListedPlan) { l.Digest, l.Region = "x", "eu-south" }, false, "", connectorv1alpha1.ReasonOrderRefused,
		},
		"without notice": {func(l *connectorv1alpha1.ListedPlan) {
			l.Digest, l.Notice.Duration = "x", time.Hour
		}, false, "", connectorv1alpha1.ReasonOrderRefused},
		"unfit":    {func(l *connectorv1alpha1.ListedPlan) { l.Digest = "x" }, true, "", connectorv1alpha1.ReasonOrderRefused},
		"no limit": {nil, false, "", connectorv1alpha1.ReasonTooExpensive},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, remote())
			w := newWorld(t, s)
			w.fits = !c.unfit
			w.create("p", s, func(spec *connectorv1alpha1.PurchaseSpec) {
				spec.MaxPrice = nil
				if c.most != "" {
					spec.MaxPrice = &connectorv1alpha1.Price{Amount: connectorv1alpha1.Amount(c.most), Currency: "EUR", Period: "PT1H"}
				}
				if c.listed != nil {
					spec.Listed = &connectorv1alpha1.ListedPlan{
						Digest: s.offer.Fingerprint(), Price: connectorv1alpha1.Price{Amount: "0.3", Currency: "EUR", Period: "PT1H"}, Region: "eu-north",
					}
					c.listed(spec.Listed)
				}
			})
			w.until("p", c.reason, s)
		})
	}
}

// TestNothingOf orders nothing of what is wanted in a quantity of zero.
func TestNothingOf(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, func(spec *connectorv1alpha1.PurchaseSpec) { spec.Resources["nvidia.com/gpu"] = resource.MustParse("0") })
	if p := w.until("p", connectorv1alpha1.ReasonActive, s); len(p.Status.Resources) != 3 {
		t.Errorf("bought: %v", p.Status.Resources)
	}
}

// TestOrderAnew has the offer change between the quote and the order: other terms are ordered, by another name.
func TestOrderAnew(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	handler, changes := s.server.Handler, 2
	s.server.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && changes > 0 {
			changes--
			s.mu.Lock()
			s.offer.Revision++
			s.mu.Unlock()
		}
		handler.ServeHTTP(out, r)
	})
	w.create("p", s, nil)
	p := w.until("p", connectorv1alpha1.ReasonActive, nil, func() { s.serve(t, contract.Key{Buyer: string(w.buyer.key.ID()), ID: "uid-p-3"}) })
	if p.Status.ContractID != "uid-p-3" {
		t.Errorf("the contract is called %s", p.Status.ContractID)
	}
}

// TestCurrency does not compare prices of different currencies.
func TestCurrency(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, func(spec *connectorv1alpha1.PurchaseSpec) {
		spec.MaxPrice = &connectorv1alpha1.Price{Amount: "100", Currency: "USD", Period: "PT1H"}
	})
	w.until("p", connectorv1alpha1.ReasonTooExpensive, s)
	w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) {
		spec.MaxPrice = &connectorv1alpha1.Price{Amount: "7.2", Currency: "EUR", Period: "P1D"} // It is 0.3 for an hour.
	})
	w.until("p", connectorv1alpha1.ReasonActive, s)
}

// TestMaxTotal orders nothing, and asks for nothing else, that costs more in all than people say: to a billionth.
func TestMaxTotal(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	most := func(amount connectorv1alpha1.Amount) func(*connectorv1alpha1.PurchaseSpec) {
		return func(spec *connectorv1alpha1.PurchaseSpec) {
			spec.MaxTotal = &connectorv1alpha1.Money{Amount: amount, Currency: "EUR"}
		}
	}
	w.create("p", s, most("0.299999999")) // An hour costs 0.3.
	w.until("p", connectorv1alpha1.ReasonTooExpensive, s)
	w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) {
		spec.MaxTotal = &connectorv1alpha1.Money{Amount: "5", Currency: "USD"}
	})
	w.until("p", connectorv1alpha1.ReasonTooExpensive, s)
	w.change("p", most("0.3"))
	first := w.until("p", connectorv1alpha1.ReasonActive, s)
	is := func(cpus int64, lasts time.Duration) {
		t.Helper()
		w.once("p")
		w.once("p")
		if p := w.get("p"); p.Status.Resources.Cpu().Value() != cpus || p.Status.EndTime.Sub(first.Status.StartTime.Time) != lasts {
			t.Errorf("it has %s CPUs for %s", p.Status.Resources.Cpu(), p.Status.EndTime.Sub(first.Status.StartTime.Time))
		}
	}
	w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.Resources["cpu"] = resource.MustParse("4") })
	is(2, time.Hour)
	w.change("p", most("0.5"))
	is(4, time.Hour)
	w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.Duration.Duration = 2 * time.Hour })
	is(4, time.Hour)
	w.change("p", most("1"))
	is(4, 2*time.Hour)
	// A smaller size is always asked for.
	w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) {
		most("0.1")(spec)
		spec.Resources["cpu"] = resource.MustParse("2")
	})
	is(2, 2*time.Hour)
}

// TestChange asks for another size and a later end, but not above the price.
func TestChange(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, func(spec *connectorv1alpha1.PurchaseSpec) {
		spec.MaxPrice = &connectorv1alpha1.Price{Amount: "0.5", Currency: "EUR", Period: "PT1H"}
	})
	before := w.until("p", connectorv1alpha1.ReasonActive, s)
	w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) {
		spec.Resources["cpu"], spec.Duration.Duration = resource.MustParse("4"), 2*time.Hour
	})
	w.once("p")
	after := w.get("p")
	if after.Status.Resources.Cpu().Value() != 4 || after.Status.Price.Amount != "0.5" ||
		!after.Status.EndTime.Time.Equal(before.Status.EndTime.Add(time.Hour)) {
		t.Errorf("changed: %+v", after.Status)
	}
	if was := after.Status.Superseded; len(was) != 2 || was[0].Resources.Cpu().Value() != 2 ||
		was[0].Price.Amount != before.Status.Price.Amount ||
		was[1].Resources.Cpu().Value() != 4 || !was[1].EndTime.Equal(before.Status.EndTime) {
		t.Errorf("what was agreed before is %+v", was)
	}
	if !after.Status.EffectiveTime.Equal(before.Status.EndTime) || !after.Status.PaidUntilTime.Equal(after.Status.EndTime) {
		t.Errorf("the later end counts from %s on, and is paid until %s", after.Status.EffectiveTime, after.Status.PaidUntilTime)
	}
	w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.Resources["cpu"] = resource.MustParse("5") })
	w.once("p")
	if p := w.get("p"); p.Status.Resources.Cpu().Value() != 4 || reasonOf(p) != connectorv1alpha1.ReasonActive {
		t.Errorf("above the price: %+v", p.Status)
	}
}

// TestMove moves a contract to another plan of its offer, as that is sold now, and stays with the old one while it cannot have it.
func TestMove(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, nil)
	before := w.until("p", connectorv1alpha1.ReasonActive, s)
	is := func(plan, price, says string) contract.Record {
		t.Helper()
		w.once("p")
		w.once("p")
		p := w.get("p")
		record, err := s.Get(t.Context(), w.key("p"))
		if err != nil {
			t.Fatal(err)
		}
		hold, _ := s.Ledger().Get(w.key("p"))
		message := meta.FindStatusCondition(p.Status.Conditions, connectorv1alpha1.ConditionReady).Message
		if p.Status.Plan != plan || string(p.Status.Price.Amount) != price || record.Terms.Plan != plan ||
			!slices.Equal(hold.Plans(), []string{plan}) || !strings.Contains(message, says) || reasonOf(p) != connectorv1alpha1.ReasonActive {
			t.Errorf("it has plan %s for %s, the seller %s, and holds %v: %s", p.Status.Plan, p.Status.Price.Amount, record.Terms.Plan,
				hold.Plans(), message)
		}
		return *record
	}
	move := func(to connectorv1alpha1.Label) {
		t.Helper()
		w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.Plan = to })
	}
	old := string(before.Status.Price.Amount)
	// What is not sold, costs too much or is sold out.
	move("two")
	is("one", old, "two")
	s.sells("two", "9")
	move("one")
	is("one", old, "in use")
	move("two")
	is("one", old, "maxPrice")
	w.create("q", s, func(spec *connectorv1alpha1.PurchaseSpec) {
		spec.Plan = "two"
		spec.MaxPrice = &connectorv1alpha1.Price{Amount: "20", Currency: "EUR", Period: "PT1H"}
	})
	w.until("q", connectorv1alpha1.ReasonActive, s)
	w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) {
		spec.MaxPrice = &connectorv1alpha1.Price{Amount: "20", Currency: "EUR", Period: "PT1H"}
	})
	if refused := is("one", old, "").Refused; refused == nil || !strings.Contains(refused.Reason, "1 of 1") {
		t.Errorf("sold out, and refused for %+v", refused)
	}
	// A later end is asked for of the plan that it has.
	w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.Duration.Duration = 2 * time.Hour })
	is("one", old, "")
	if p := w.get("p"); !p.Status.EndTime.Time.Equal(before.Status.EndTime.Add(time.Hour)) {
		t.Errorf("it ends at %s", p.Status.EndTime)
	}
	// One of it is left.
	s.mu.Lock()
	s.stocks["two"] = 2
	s.mu.Unlock()
	w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.Resources["cpu"] = resource.MustParse("1") })
	terms := is("two", "9.1", "in use").Terms
	p := w.get("p")
	if was := p.Status.Superseded; len(was) != 2 || was[0].Plan != "one" || was[1].Plan != "one" || p.Status.Resources.Cpu().Value() != 1 ||
		terms.Notice != 10*time.Minute || terms.OfferRevision != s.offer.Revision {
		t.Errorf("before, it had %+v, and now %+v", was, terms)
	}
	// And back, though nothing of it is for sale: what it has is not signed of that plan any more.
	s.mu.Lock()
	gone := s.offer.Plans[0]
	s.offer.Plans, s.offer.Revision = s.offer.Plans[1:], s.offer.Revision+1
	s.mu.Unlock()
	move("one")
	is("two", "9.1", "one")
	// When it is for sale again: the longer notice, that both have signed, stays.
	s.mu.Lock()
	s.offer.Plans, s.offer.Revision = append(slices.Clone(s.offer.Plans), gone), s.offer.Revision+1
	s.mu.Unlock()
	w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.Resources["cpu"] = resource.MustParse("2") })
	if again := is("one", old, "in use").Terms; again.Notice != 10*time.Minute {
		t.Errorf("back, its notice is %s", again.Notice)
	}
}

// TestMoveWaits moves a contract that is suspended, or for which something else is asked, as soon as it can be asked for.
func TestMoveWaits(t *testing.T) {
	for name, c := range map[string]struct {
		open   func(*testing.T) *shop
		before func(*world, *shop)
		after  []contract.Event
	}{
		"suspended": {
			func(t *testing.T) *shop { t.Helper(); return open(t, remote()) },
			func(w *world, s *shop) { s.decide(w.t, w.key("p"), contract.Suspend) },
			[]contract.Event{contract.Resume},
		},
		"another size is asked for": {
			openAsking,
			func(w *world, _ *shop) {
				w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.Resources["cpu"] = resource.MustParse("3") })
			},
			[]contract.Event{contract.Refuse, contract.Approve},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.open(t)
			w := newWorld(t, s)
			w.create("p", s, nil)
			w.until("p", connectorv1alpha1.ReasonActive, s, func() {
				if record, _ := s.Get(t.Context(), w.key("p")); record != nil && record.State == contract.Proposed {
					s.decide(t, w.key("p"), contract.Approve)
				}
			})
			s.sells("two", "0.2")
			c.before(w, s)
			for range 3 {
				w.once("p")
			}
			w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.Plan = "two" })
			for _, event := range append([]contract.Event{""}, c.after...) {
				if event != "" {
					s.decide(t, w.key("p"), event)
				}
				w.restart()
				for range 4 {
					w.once("p")
				}
				record, _ := s.Get(t.Context(), w.key("p"))
				want := map[bool]string{true: "two", false: "one"}[event == c.after[len(c.after)-1]]
				if p := w.get("p"); p.Status.Plan != want || record.Terms.Plan != want {
					t.Errorf("after %q it has plan %s, and its seller %s: %s", event, p.Status.Plan, record.Terms.Plan, messageOf(p))
				}
			}
		})
	}
}

// TestMoveKilled kills the process of either side before and after each write while a contract moves to another plan: the outcome is the
// same.
func TestMoveKilled(t *testing.T) {
	for n, killed := 1, true; killed; n++ {
		s := open(t, remote())
		w := newWorld(t, s)
		w.create("p", s, nil)
		w.until("p", connectorv1alpha1.ReasonActive, s)
		s.sells("two", "0.2")
		w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.Plan = "two" })
		calls := 0
		killed = false
		w.kill = func() error {
			if calls++; calls == n {
				killed = true
				return errKilled
			}
			return nil
		}
		s.AfterWrite = w.kill
		for range 100 {
			if w.once("p"); w.get("p").Status.Plan == "two" {
				break
			}
		}
		s.serve(t, w.key("p"))
		hold, _ := s.Ledger().Get(w.key("p"))
		if p := w.get("p"); p.Status.Plan != "two" || !slices.Equal(hold.Plans(), []string{"two"}) {
			t.Fatalf("killed at call %d, it has plan %s, and its seller holds %+v", n, p.Status.Plan, hold)
		}
		if n > 100 {
			t.Fatal("it is killed without end")
		}
	}
}

// TestDocuments has both sides know the documents of the offer that the terms in force name, however the offer has changed since.
func TestDocuments(t *testing.T) {
	s := open(t, remote())
	sells := func(version string) map[string]string {
		return map[string]string{
			offer.TermsURL: "https://seller.example/" + version, offer.TermsSHA256: strings.Repeat("0a", 32), "colour": "green",
		}
	}
	s.offer.Properties = sells("1")
	w := newWorld(t, s)
	w.create("p", s, nil)
	w.until("p", connectorv1alpha1.ReasonActive, s)
	is := func(version string) {
		t.Helper()
		want, got := "https://seller.example/"+version, w.get("p").Status.Documents
		record, err := s.Get(t.Context(), w.key("p"))
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 2 || string(got[offer.TermsURL]) != want || len(record.Documents) != 2 || record.Documents[offer.TermsURL] != want {
			t.Errorf("the buyer knows %v, and the seller %v, want %s", got, record.Documents, want)
		}
	}
	is("1")
	s.offer.Revision++
	s.offer.Properties = sells("2")
	w.once("p")
	is("1")
	w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.Resources["cpu"] = resource.MustParse("4") })
	w.once("p")
	is("2")
}

// TestSmaller asks for a smaller size when what runs on the nodes fits into it, and not before: what is given back can be sold at once.
func TestSmaller(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, func(spec *connectorv1alpha1.PurchaseSpec) { spec.Resources["cpu"] = resource.MustParse("4") })
	w.until("p", connectorv1alpha1.ReasonActive, s)
	w.clusters.requested = corev1.ResourceList{"cpu": resource.MustParse("2500m"), "pods": resource.MustParse("3")}
	w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.Resources["cpu"] = resource.MustParse("2") })
	for range 3 {
		if result := w.once("p"); result.RequeueAfter == 0 || result.RequeueAfter > time.Minute {
			t.Errorf("it is looked at again after %s", result.RequeueAfter)
		}
	}
	p := w.get("p")
	ready := meta.FindStatusCondition(p.Status.Conditions, connectorv1alpha1.ConditionReady)
	if p.Status.Resources.Cpu().Value() != 4 || !strings.Contains(ready.Message, "2500m of cpu") ||
		reasonOf(p) != connectorv1alpha1.ReasonActive {
		t.Errorf("while pods use it: %s, %s", p.Status.Resources.Cpu(), ready.Message)
	}
	if hold, held := s.Ledger().Get(w.key("p")); !held || hold.Resources.Cpu().Value() != 4 {
		t.Errorf("the seller holds %+v", hold)
	}
	w.clusters.requested["cpu"] = resource.MustParse("2")
	w.once("p")
	p = w.get("p")
	ready = meta.FindStatusCondition(p.Status.Conditions, connectorv1alpha1.ConditionReady)
	if p.Status.Resources.Cpu().Value() != 2 || ready.Message != "The contract is in use." {
		t.Errorf("after they left: %s, %s", p.Status.Resources.Cpu(), ready.Message)
	}
	// Another contract for the same cluster has a part of what the nodes have.
	w.create("q", s, nil)
	w.until("q", connectorv1alpha1.ReasonActive, s)
	w.clusters.requested["cpu"] = resource.MustParse("3")
	w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.Resources["cpu"] = resource.MustParse("1") })
	w.once("p")
	if p := w.get("p"); p.Status.Resources.Cpu().Value() != 1 {
		t.Errorf("with another contract's part: %s", p.Status.Resources.Cpu())
	}
}

// TestDeadSeller goes on alone when the contract should be over, without any registry either.
func TestDeadSeller(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, nil)
	w.create("unsigned", s, nil)
	w.until("p", connectorv1alpha1.ReasonActive, s)
	s.AfterWrite = func() error { return errKilled }
	w.until("unsigned", connectorv1alpha1.ReasonSellerUnreachable, nil)
	clear(w.parties)
	w.restart()
	w.once("p")
	if reason := reasonOf(w.get("p")); reason != connectorv1alpha1.ReasonActive {
		t.Errorf("without registries: %s", reason)
	}
	s.server.Close()
	if result := w.once("p"); !result.Requeue || reasonOf(w.get("p")) != connectorv1alpha1.ReasonActive {
		t.Errorf("dead: %+v, %+v", result, w.get("p").Status.Conditions)
	}
	if err := w.client.Delete(t.Context(), w.get("unsigned")); err != nil {
		t.Fatal(err)
	}
	if w.once("unsigned"); w.get("unsigned") != nil {
		t.Errorf("what was not signed waits for a dead seller: %+v", w.get("unsigned").Status)
	}
	w.wait(time.Hour)
	w.until("p", connectorv1alpha1.ReasonEnded, nil)
	if want := []string{"peer a", "drain a", "unpeer a"}; !slices.Equal(w.clusters.log, want) {
		t.Errorf("done: %q, want %q", w.clusters.log, want)
	}
}

// TestNodeNotReady does not call a purchase ready while no node is.
func TestNodeNotReady(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, nil)
	w.clusters.unready = true
	p := w.until("p", connectorv1alpha1.ReasonNodeNotReady, s)
	if meta.IsStatusConditionTrue(p.Status.Conditions, connectorv1alpha1.ConditionReady) {
		t.Errorf("ready without a ready node: %+v", p.Status.Conditions)
	}
	w.clusters.unready = false
	w.until("p", connectorv1alpha1.ReasonActive, s)
	w.clusters.unready = true
	w.until("p", connectorv1alpha1.ReasonNodeNotReady, s)
}

// TestShared keeps a peering while another purchase needs it, and lets no other seller take it.
func TestShared(t *testing.T) {
	s, thief := open(t, remote()), open(t, remote())
	w := newWorld(t, s, thief)
	w.create("p", s, nil)
	w.create("q", s, nil)
	w.create("stolen", thief, nil)
	w.until("p", connectorv1alpha1.ReasonActive, s)
	w.until("q", connectorv1alpha1.ReasonActive, s)
	w.until("stolen", connectorv1alpha1.ReasonPeeringForeign, thief)
	for _, name := range []string{"stolen", "p"} {
		w.change(name, func(spec *connectorv1alpha1.PurchaseSpec) { spec.End = &connectorv1alpha1.ContractEnd{} })
		w.until(name, connectorv1alpha1.ReasonEnded, nil)
	}
	if want := []string{"peer a"}; !slices.Equal(w.clusters.log, want) {
		t.Errorf("done: %q, want %q", w.clusters.log, want)
	}
	w.change("q", func(spec *connectorv1alpha1.PurchaseSpec) { spec.End = &connectorv1alpha1.ContractEnd{} })
	w.until("q", connectorv1alpha1.ReasonEnded, s)
	if want := []string{"peer a", "drain a", "unpeer a"}; !slices.Equal(w.clusters.log, want) {
		t.Errorf("done: %q, want %q", w.clusters.log, want)
	}
}

// topped returns a world with two contracts for the same nodes, of two and of four cores, five of which pods use.
func topped(t *testing.T) (*shop, *world) {
	t.Helper()
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("base", s, nil)
	w.create("top", s, func(spec *connectorv1alpha1.PurchaseSpec) { spec.Resources["cpu"] = resource.MustParse("4") })
	w.until("base", connectorv1alpha1.ReasonActive, s)
	w.until("top", connectorv1alpha1.ReasonActive, s)
	w.clusters.requested = corev1.ResourceList{"cpu": resource.MustParse("5"), "pods": resource.MustParse("5")}
	return s, w
}

// TestOneOfTwo ends one of two contracts for the same nodes: pods leave until those that stay fit into what the other gives, and only then
// the seller is told that it may sell the rest.
func TestOneOfTwo(t *testing.T) {
	s, w := topped(t)
	w.clusters.size = resource.MustParse("6")
	w.change("top", func(spec *connectorv1alpha1.PurchaseSpec) { spec.End = &connectorv1alpha1.ContractEnd{} })
	for cores := 4; cores > 2; cores-- {
		w.once("top")
		record, _ := s.Get(t.Context(), w.key("top"))
		if p := w.get("top"); record.State != contract.Terminating || p.Status.PodsLeft != 1 ||
			w.clusters.requested.Cpu().Value() != int64(cores) {
			t.Errorf("the seller has %s, %d pods are left, and %s cores are used", record.State, p.Status.PodsLeft, w.clusters.requested.Cpu())
		}
	}
	w.until("top", connectorv1alpha1.ReasonEnded, s)
	// What has left may come again, so nothing comes until the nodes are smaller.
	if w.once("base"); !w.clusters.closed {
		t.Error("the nodes, which have five cores, are open for two")
	}
	w.clusters.size = resource.MustParse("2")
	if w.once("base"); w.clusters.closed {
		t.Error("the nodes are still closed when they are as small as the contract that is left")
	}
	if want := []string{"peer a", "fit a", "open a"}; !slices.Equal(w.clusters.log, want) || w.clusters.requested.Cpu().Value() != 2 ||
		reasonOf(w.get("base")) != connectorv1alpha1.ReasonActive {
		t.Errorf("done: %q, %s cores are used, the other is %s", w.clusters.log, w.clusters.requested.Cpu(), reasonOf(w.get("base")))
	}
}

// TestOneOfTwoAway ends one of two contracts for the same nodes while the buyer's connector is away, until it is over: pods leave when it
// is back.
func TestOneOfTwoAway(t *testing.T) {
	s, w := topped(t)
	for _, event := range []contract.Event{contract.Notice, contract.Drained, contract.Withdrawn} {
		s.decide(t, w.key("top"), event)
	}
	for range 10 {
		w.once("top")
	}
	w.once("base")
	if p := w.get("top"); w.clusters.requested.Cpu().Value() != 2 || p.Status.PodsLeft != 0 || !contract.State(p.Status.State).Final() {
		t.Errorf("it is %s, %d pods are left, and %s cores are used", p.Status.State, p.Status.PodsLeft, w.clusters.requested.Cpu())
	}
	if want := []string{"peer a", "fit a"}; !slices.Equal(w.clusters.log, want) || reasonOf(w.get("base")) != connectorv1alpha1.ReasonActive {
		t.Errorf("done: %q, the other is %s", w.clusters.log, reasonOf(w.get("base")))
	}
}

// TestOneOfTwoUnpeered ends one of two contracts for the same nodes before its buyer has peered for it: pods were there as soon as it was
// granted.
func TestOneOfTwoUnpeered(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("base", s, nil)
	w.until("base", connectorv1alpha1.ReasonActive, s)
	w.create("top", s, func(spec *connectorv1alpha1.PurchaseSpec) { spec.Resources["cpu"] = resource.MustParse("4") })
	w.clusters.unguarded = peering.ErrUnguarded
	w.until("top", connectorv1alpha1.ReasonUnguarded, s)
	w.clusters.requested = corev1.ResourceList{"cpu": resource.MustParse("5"), "pods": resource.MustParse("5")}
	w.change("top", func(spec *connectorv1alpha1.PurchaseSpec) { spec.End = &connectorv1alpha1.ContractEnd{} })
	w.until("top", connectorv1alpha1.ReasonEnded, s)
	if w.clusters.requested.Cpu().Value() != 2 || reasonOf(w.get("base")) != connectorv1alpha1.ReasonActive {
		t.Errorf("%s cores are used, the other is %s", w.clusters.requested.Cpu(), reasonOf(w.get("base")))
	}
}

// TestOneOfTwoSmaller ends one of two contracts for the same nodes while the other waits to become smaller: pods are left what it will give
// then.
func TestOneOfTwoSmaller(t *testing.T) {
	s, w := topped(t)
	w.clusters.requested = corev1.ResourceList{"cpu": resource.MustParse("3"), "pods": resource.MustParse("3")}
	w.change("base", func(spec *connectorv1alpha1.PurchaseSpec) { spec.Resources["cpu"] = resource.MustParse("1") })
	handler := s.server.Handler
	s.server.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut { // It gives quotes, and is not heard to take terms.
			panic(http.ErrAbortHandler)
		}
		handler.ServeHTTP(rw, r)
	})
	w.once("base")
	s.server.Handler = handler
	w.change("top", func(spec *connectorv1alpha1.PurchaseSpec) { spec.End = &connectorv1alpha1.ContractEnd{} })
	w.until("top", connectorv1alpha1.ReasonEnded, s)
	if w.clusters.requested.Cpu().Value() != 1 {
		t.Errorf("%s cores are used", w.clusters.requested.Cpu())
	}
}

// TestOneOfTwoProvisioned ends one of two contracts for the same nodes while the other is not yet active: what the other gives stays.
func TestOneOfTwoProvisioned(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("top", s, func(spec *connectorv1alpha1.PurchaseSpec) { spec.Resources["cpu"] = resource.MustParse("4") })
	w.until("top", connectorv1alpha1.ReasonActive, s)
	w.clusters.size, w.clusters.requested = resource.MustParse("6"),
		corev1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("4")}
	w.create("base", s, nil)
	w.clusters.unguarded = peering.ErrUnguarded
	w.until("base", connectorv1alpha1.ReasonUnguarded, s)
	w.change("top", func(spec *connectorv1alpha1.PurchaseSpec) { spec.End = &connectorv1alpha1.ContractEnd{} })
	w.until("top", connectorv1alpha1.ReasonEnded, s)
	w.clusters.unguarded = nil
	if w.until("base", connectorv1alpha1.ReasonActive, s); w.clusters.requested.Cpu().Value() != 2 || !w.clusters.closed {
		t.Errorf("done: %q, %s cores are used, and the nodes are closed: %t", w.clusters.log, w.clusters.requested.Cpu(), w.clusters.closed)
	}
}

// TestOneOfTwoRefused has the seller refuse another size of the contract that is left, again and again: the nodes are opened that were
// closed for the other.
func TestOneOfTwoRefused(t *testing.T) {
	s, w := topped(t)
	w.clusters.size = resource.MustParse("6")
	w.change("top", func(spec *connectorv1alpha1.PurchaseSpec) { spec.End = &connectorv1alpha1.ContractEnd{} })
	w.until("top", connectorv1alpha1.ReasonEnded, s)
	handler, refused := s.server.Handler, 0
	s.server.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/resize") {
			handler.ServeHTTP(rw, r)
			return
		}
		refused++
		rw.Header().Set("Content-Type", "application/problem+json")
		rw.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = fmt.Fprintf(rw, `{"type":%q,"status":422}`, negotiationv1.ProblemTerms)
	})
	w.change("base", func(spec *connectorv1alpha1.PurchaseSpec) { spec.Resources["cpu"] = resource.MustParse("3") })
	w.once("base")
	w.clusters.size = resource.MustParse("2")
	if w.once("base"); refused != 2 || w.clusters.closed {
		t.Errorf("it was refused %d times, and the nodes are closed: %t; %s", refused, w.clusters.closed, messageOf(w.get("base")))
	}
}

// TestForeign leaves a peering alone that people have made.
func TestForeign(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.clusters.foreign = true
	w.create("p", s, nil)
	w.until("p", connectorv1alpha1.ReasonPeeringForeign, s)
	w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) { spec.End = &connectorv1alpha1.ContractEnd{} })
	w.until("p", connectorv1alpha1.ReasonEnded, s)
	if slices.Contains(w.clusters.log, "drain a") {
		t.Errorf("done: %q", w.clusters.log)
	}
}

// TestUnreadable does nothing with a record that cannot be read, and parts when the object is deleted.
func TestUnreadable(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, nil)
	p := w.until("p", connectorv1alpha1.ReasonActive, s)
	p.Status.Record = "{"
	if err := w.client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if p = w.until("p", connectorv1alpha1.ReasonUnreadable, s); p.Status.Record != "{" {
		t.Errorf("it wrote over %+v", p.Status)
	}
	if err := w.client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.once("p")
	}
	if w.get("p") != nil || !slices.Contains(w.clusters.log, "unpeer a") {
		t.Errorf("deleted: %+v, %q", w.get("p"), w.clusters.log)
	}
}

// TestChangeAfterClosing renews, and gives back a part, at the signed price when the seller sells nothing any more, and gets no more than
// that.
func TestChangeAfterClosing(t *testing.T) {
	s := open(t, remote())
	w := newWorld(t, s)
	w.create("p", s, func(spec *connectorv1alpha1.PurchaseSpec) { spec.Resources["cpu"] = resource.MustParse("4") })
	before := w.until("p", connectorv1alpha1.ReasonActive, s)
	s.mu.Lock()
	s.offer.ID = "another"
	s.mu.Unlock()
	for _, cpu := range []string{"2", "8"} {
		w.change("p", func(spec *connectorv1alpha1.PurchaseSpec) {
			spec.Resources["cpu"], spec.Duration.Duration = resource.MustParse(cpu), 2*time.Hour
		})
		w.once("p")
		w.once("p")
		after := w.get("p")
		if after.Status.Resources.Cpu().Value() != 2 || *after.Status.Price != *before.Status.Price ||
			!after.Status.EndTime.Time.Equal(before.Status.EndTime.Add(time.Hour)) {
			t.Errorf("%s cores are wanted: changed to %s for %+v until %s", cpu, after.Status.Resources.Cpu(), after.Status.Price,
				after.Status.EndTime)
		}
	}
}
