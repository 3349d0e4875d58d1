// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package sales_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/clocktest"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/sales"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer/offertest"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
)

const drain = time.Minute

var (
	start   = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	alice   = strings.Repeat("a", 52)
	bob     = strings.Repeat("b", 52)
	edge    = cluster.Identity{ID: "edge-id", Name: "edge"}
	errKill = errors.New("killed")
)

// liqo is what a seller does to clusters: it remembers which ones may peer.
type liqo struct {
	foreign bool            // Whether the cluster has peered without a contract.
	slow    func()          // What happens before something is issued.
	peered  bool            // Whether it has peered with what was issued.
	inTurn  []cluster.ID    // With which clusters this one was to peer in turn.
	let     map[string]bool // By cluster ID; false once it was withdrawn.
	leaves  int             // How often Withdraw says that the cluster has not left yet.
}

func (l *liqo) Issue(_ context.Context, buyer cluster.Identity) (peering.Credentials, error) {
	if l.slow != nil {
		l.slow()
	}
	if l.foreign {
		return peering.Credentials{}, peering.ErrForeign
	}
	l.let[string(buyer.ID)] = true
	return peering.NewCredentials(cluster.Identity{ID: "own", Name: "own"}, "https://192.0.2.1:30443", "token")
}

func (l *liqo) Sold(context.Context, cluster.ID) (bool, error) { return l.peered, nil }

func (l *liqo) PeerInTurn(_ context.Context, buyer cluster.ID) (bool, error) {
	l.inTurn = append(l.inTurn, buyer)
	return l.peered, nil
}

func (l *liqo) Withdraw(_ context.Context, buyer cluster.ID) (bool, error) {
	l.let[string(buyer)] = false
	if l.leaves > 0 {
		l.leaves--
		return false, nil
	}
	return true, nil
}

// shop sells 4 CPUs.
type shop struct{}

func (shop) Offer(context.Context, string) (offer.Signed, error) {
	return offer.Signed{}, negotiation.ErrNotOffered
}

func (shop) Limits(context.Context, string, string) (ledger.Limits, error) {
	return ledger.Limits{Capacity: corev1.ResourceList{"cpu": resource.MustParse("4")}}, nil
}

// seller is the seller's side of contracts, with an API server.
type seller struct {
	t       *testing.T
	api     client.Client
	store   *books.Store
	applier negotiation.Applier
	liqo    *liqo
	now     time.Time
	// broker is whether the seller is one.
	broker bool
	// dies is how many writes there are before the controller is killed; negative is never.
	dies    int
	changes int
	// events are written for people; nil is nobody.
	events conditions.Events
	// ledger is what the controller is told of the ledger, and read how often that was read from the API server.
	ledger func(context.Context) (ledger.Ledger, error)
	read   int
	// knows is what the controller knows of all contracts.
	knows sales.Contracts
}

func newSeller(t *testing.T) *seller {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(connectorv1alpha1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	s := &seller{t: t, now: start, liqo: &liqo{let: map[string]bool{}}, dies: -1}
	s.api = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&connectorv1alpha1.Sale{}).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*connectorv1alpha1.SalesLedger); is {
				s.read++
			}
			return c.Get(ctx, key, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := s.write(); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if err := s.write(); err != nil {
				return err
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	}).Build()
	var err error
	if s.store, err = books.New(books.Config{Client: s.api, Reader: s.api}); err != nil {
		t.Fatal(err)
	}
	s.ledger, s.knows = s.store.Ledger, s.store
	s.applier = negotiation.Applier{
		Store: s.store, Offers: shop{}, Clock: clocktest.Func(func() time.Time { return s.now }),
		Seller: contract.Seller{ReserveFor: time.Minute, DecideFor: time.Hour},
	}
	return s
}

func (s *seller) write() error {
	if s.dies == 0 {
		return errKill
	}
	s.dies--
	return nil
}

func terms(buyer, id string) contract.Terms {
	return contract.Terms{
		ID: id, Buyer: buyer, Seller: strings.Repeat("s", 52), Revision: 1, Cluster: edge, Offer: "o", OfferRevision: 1,
		OfferDigest: "sha256:0", Plan: "p", Resources: corev1.ResourceList{"cpu": resource.MustParse("1")}, Price: offertest.Price("1"),
		StartsAt: start, EndsAt: start.Add(time.Hour), Drain: drain,
	}
}

// ask applies a request of a buyer, as the server of negotiations does.
func (s *seller) ask(buyer, id string, event contract.Event, verdict contract.Verdict) contract.Record {
	s.t.Helper()
	agreed := terms(buyer, id)
	record, err := s.applier.Apply(s.t.Context(), agreed.Key(), func(*contract.Record) contract.Request {
		return contract.Request{Event: event, Terms: agreed, Verdict: verdict, Signature: "s", Countersignature: "c"}
	})
	if err != nil {
		s.t.Fatalf("%s contract %s: %v", event, agreed.Key(), err)
	}
	return record
}

// signed makes a contract that both have signed.
func (s *seller) signed(buyer, id string) {
	s.t.Helper()
	s.ask(buyer, id, contract.Reserve, contract.Accept)
	if record := s.ask(buyer, id, contract.Sign, contract.Accept); record.State != contract.Signed {
		s.t.Fatalf("the contract is %s, not signed", record.State)
	}
}

// reconcile runs a new controller, as after a restart.
func (s *seller) reconcile(buyer, id string) (ctrl.Result, error) {
	s.t.Helper()
	controller, err := sales.New(sales.Config{
		Client: cached{s.api}, Reader: s.api, Applier: s.applier, Peerings: sales.NewPeerings(s.api, s.knows, s.issuer()),
		Changed: func() { s.changes++ }, Retention: sales.DefaultRetention(), Ledger: s.ledger, Events: s.events,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return controller.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: books.Name(terms(buyer, id).Key())}})
}

// cached reads as from the connector's cache, which does not keep Sales whole.
type cached struct{ client.Client }

func (c cached) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if err := c.Client.Get(ctx, key, o, opts...); err != nil {
		return err
	}
	_, err := books.Kept(o)
	return err
}

// TestWritesWhole looks at what the controller has left of a contract whose terms were changed, and that is over: it has read only a part
// of it.
func TestWritesWhole(t *testing.T) {
	s := newSeller(t)
	s.signed(alice, "a")
	s.settle(alice, "a")
	s.ask(alice, "a", contract.Peered, "")
	larger := terms(alice, "a")
	larger.Revision, larger.Resources = 2, corev1.ResourceList{"cpu": resource.MustParse("2")}
	for _, event := range []contract.Event{contract.Resize, contract.Confirm} {
		if event == contract.Confirm {
			larger.EffectiveAt = s.now
		}
		if _, err := s.applier.Apply(t.Context(), larger.Key(), func(*contract.Record) contract.Request {
			return contract.Request{Event: event, Terms: larger, Verdict: contract.Accept, Signature: "second", Countersignature: "both"}
		}); err != nil {
			t.Fatalf("%s: %v", event, err)
		}
	}
	whole := func(when string) {
		t.Helper()
		s.settle(alice, "a")
		sale := s.sale(alice, "a")
		record, err := books.Record(sale)
		if err != nil || len(record.Superseded) != 1 || record.Signature != "second" || record.Countersignature != "both" ||
			len(sale.Status.Superseded) != 1 {
			t.Errorf("%s: record %+v with %+v, %v", when, record, sale.Status.Superseded, err)
		}
	}
	whole("it has another size")
	s.ask(alice, "a", contract.Terminate, "")
	s.ask(alice, "a", contract.Drained, "")
	whole("it is over")
	s.is(alice, "a", contract.Ended, connectorv1alpha1.ReasonEnded)
}

// issuer returns what issues credentials.
func (s *seller) issuer() peering.Seller {
	if s.broker {
		return s.consumers().Seller(s.liqo)
	}
	return s.liqo
}

// settle runs controllers until nothing is left to do now, over all kills.
func (s *seller) settle(buyer, id string) {
	s.t.Helper()
	for range 20 {
		result, err := s.reconcile(buyer, id)
		if errors.Is(err, errKill) {
			s.dies = -1
			continue
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if !result.Requeue && (result.RequeueAfter == 0 || result.RequeueAfter > 10*time.Second) {
			s.dies = -1
			return
		}
	}
	s.t.Fatal("the controller comes to no end")
}

// sale returns a Sale; nil if it is gone.
func (s *seller) sale(buyer, id string) *connectorv1alpha1.Sale {
	s.t.Helper()
	var sale connectorv1alpha1.Sale
	err := s.api.Get(s.t.Context(), client.ObjectKey{Name: books.Name(terms(buyer, id).Key())}, &sale)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return &sale
}

// is fails if a Sale has another state or reason.
func (s *seller) is(buyer, id string, state contract.State, reason string) {
	s.t.Helper()
	sale := s.sale(buyer, id)
	if sale == nil {
		s.t.Fatalf("sale %s is gone", id)
	}
	ready := meta.FindStatusCondition(sale.Status.Conditions, connectorv1alpha1.ConditionReady)
	if sale.Status.State != string(state) || ready == nil || ready.Reason != reason {
		s.t.Fatalf("sale %s is %s with %+v, not %s with reason %s", id, sale.Status.State, ready, state, reason)
	}
}

// granted returns how many CPUs the cluster is offered, and false if it is not offered even zero.
func (s *seller) granted() (int64, bool) {
	s.t.Helper()
	book, err := sales.NewGrants(s.store).Book(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	nodes := book.NodeOffers(edge.ID)
	if len(nodes) == 0 {
		return 0, false
	}
	return nodes[0].Offered.Cpu().Value(), true
}

// told is contracts of which a test says when they have changed.
type told struct {
	all     []books.Known
	changes int64
	known   bool
	asked   int
}

func (c *told) All(context.Context) ([]books.Known, error) {
	c.asked++
	return c.all, nil
}

func (c *told) Changes() (int64, bool) { return c.changes, c.known }

// TestGrantsOnce makes the book once after each change: Liqo asks for many clusters, one by one.
func TestGrantsOnce(t *testing.T) {
	key := terms(alice, "x").Key()
	record := &contract.Record{View: contract.View{Key: key, Version: 1, State: contract.Active, Terms: terms(alice, "x")}}
	c := &told{all: []books.Known{{Name: books.Name(key), Key: key, Record: record}}}
	grants := sales.NewGrants(c)
	is := func(step string, cpus int64, asked int) {
		t.Helper()
		for range 3 {
			book, err := grants.Book(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := book.Granted(edge.ID); got.Cpu().Value() != cpus {
				t.Errorf("%s: %s are granted, want %d", step, got.Cpu(), cpus)
			}
		}
		if c.asked != asked {
			t.Errorf("%s: the contracts were read %d times, want %d", step, c.asked, asked)
		}
	}
	is("nobody tells of changes", 1, 3)
	c.known = true
	is("nothing changes", 1, 4)
	suspended := *record
	suspended.State = contract.Suspended
	c.all[0].Record, c.changes = &suspended, 7
	is("it is suspended", 0, 5)
	c.known = false
	is("nobody tells of changes any more", 0, 8)
}

// TestSale walks a contract from its signature to its deletion, with a controller that is killed at each of its writes in turn.
func TestSale(t *testing.T) {
	for dies := range 12 {
		s := newSeller(t)
		if _, offered := s.granted(); offered {
			t.Fatal("a cluster without a contract is offered something")
		}
		s.signed(alice, "x")
		s.dies = dies
		s.settle(alice, "x")
		s.is(alice, "x", contract.Provisioning, connectorv1alpha1.ReasonSettingUp)
		if cpus, _ := s.granted(); cpus != 1 || !s.liqo.let[string(edge.ID)] {
			t.Fatalf("killed at write %d, the cluster is offered %d CPUs", dies, cpus)
		}
		s.ask(alice, "x", contract.Peered, "")
		s.settle(alice, "x")
		s.is(alice, "x", contract.Active, connectorv1alpha1.ReasonActive)

		// Whoever deletes it ends it, after a time in which the buyer drains.
		if err := s.api.Delete(t.Context(), s.sale(alice, "x")); err != nil {
			t.Fatal(err)
		}
		s.settle(alice, "x")
		s.is(alice, "x", contract.Terminating, connectorv1alpha1.ReasonEnding)
		if cpus, _ := s.granted(); cpus != 1 {
			t.Fatalf("while the buyer drains, it is offered %d CPUs", cpus)
		}
		s.liqo.leaves = 2
		s.now = s.now.Add(2 * drain)
		s.dies = dies
		s.settle(alice, "x")
		if sale := s.sale(alice, "x"); sale != nil || s.liqo.let[string(edge.ID)] {
			t.Fatalf("killed at write %d, what was granted is left: %+v", dies, sale)
		}
		if held, err := s.store.Ledger(t.Context()); err != nil || len(held.Holds) != 0 {
			t.Fatalf("killed at write %d, the ledger holds %+v: %v", dies, held, err)
		}
		if s.changes == 0 {
			t.Error("the resource plugin was not told")
		}
	}
}

// TestEvents holds that people are told once of each step of a sale, and of none that strangers can take alone.
func TestEvents(t *testing.T) {
	s := newSeller(t)
	events := record.NewFakeRecorder(100)
	s.events = events
	s.ask(bob, "x", contract.Reserve, contract.Accept)
	s.settle(bob, "x")
	s.ask(bob, "x", contract.Terminate, "")
	s.settle(bob, "x")
	if len(events.Events) > 0 {
		t.Errorf("of what nobody has signed people read %q", <-events.Events)
	}
	s.signed(alice, "x")
	s.settle(alice, "x")
	s.ask(alice, "x", contract.Peered, "")
	for range 3 {
		s.settle(alice, "x")
	}
	for _, want := range []string{"Normal SettingUp ", "Normal Active "} {
		if event := <-events.Events; !strings.HasPrefix(event, want) || len(events.Events) > 1 {
			t.Errorf("event %q and %d more, want %s", event, len(events.Events), want)
		}
	}
}

// TestRest looks at a contract about which nothing happens, as a process does that has begun again: it reads nothing of it from the API
// server, unless the ledger, of which it was told, does not hold what the contract needs.
func TestRest(t *testing.T) {
	s := newSeller(t)
	s.signed(alice, "x")
	s.settle(alice, "x")
	s.ask(alice, "x", contract.Peered, "")
	s.settle(alice, "x")
	held, err := s.store.Ledger(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	told := held
	s.ledger = func(context.Context) (ledger.Ledger, error) { return told, nil }
	s.read = 0
	result, err := s.reconcile(alice, "x")
	if want := time.Hour - drain; err != nil || result.RequeueAfter != want {
		t.Errorf("it is looked at again after %s, %v, want %s", result.RequeueAfter, err, want)
	}
	if s.is(alice, "x", contract.Active, connectorv1alpha1.ReasonActive); s.read != 0 {
		t.Errorf("a contract at rest has the ledger read %d times", s.read)
	}

	// Who wrote the record was killed before it wrote the ledger.
	twice := held.Holds[0]
	twice.Resources = corev1.ResourceList{"cpu": resource.MustParse("2")}
	told = held.Keep(twice)
	object := &connectorv1alpha1.SalesLedger{}
	if err := s.api.Get(t.Context(), client.ObjectKey{Name: connectorv1alpha1.LedgerName}, object); err != nil {
		t.Fatal(err)
	}
	object.Holds[0].Resources = twice.Resources
	if err := s.api.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if _, err := s.reconcile(alice, "x"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.store.Ledger(t.Context()); err != nil || !got.Equal(held) {
		t.Errorf("the ledger holds %+v, %v, want %+v", got, err, held)
	}

	// Its time has come.
	told, s.now = held, s.now.Add(time.Hour-drain)
	s.settle(alice, "x")
	s.is(alice, "x", contract.Terminating, connectorv1alpha1.ReasonEnding)
}

// TestEndedIsOfferedNothing holds that a cluster that had a contract is offered zero, so that Liqo takes away what it had.
func TestEndedIsOfferedNothing(t *testing.T) {
	s := newSeller(t)
	s.signed(alice, "x")
	s.settle(alice, "x")
	s.ask(alice, "x", contract.Peered, "")
	s.ask(alice, "x", contract.Terminate, "")
	s.ask(alice, "x", contract.Drained, "")
	s.settle(alice, "x")
	s.is(alice, "x", contract.Ended, connectorv1alpha1.ReasonEnded)
	if cpus, offered := s.granted(); cpus != 0 || !offered {
		t.Errorf("the cluster is offered %d CPUs, %t", cpus, offered)
	}
}

// TestRetention forgets what is over after a time: soon if nobody has signed, and never while something is left to withdraw.
func TestRetention(t *testing.T) {
	s := newSeller(t)
	keep := sales.DefaultRetention()
	s.ask(alice, "unsigned", contract.Reserve, contract.Accept)
	s.ask(alice, "unsigned", contract.Terminate, "")
	s.signed(alice, "signed")
	s.settle(alice, "signed")
	s.ask(alice, "signed", contract.Terminate, "")
	s.ask(alice, "signed", contract.Drained, "")
	s.signed(bob, "left")
	s.ask(bob, "left", contract.Terminate, "")
	s.ask(bob, "left", contract.Drained, "") // And it is not withdrawn.
	s.settle(alice, "unsigned")
	s.settle(alice, "signed")
	s.now = s.now.Add(keep.Unsigned - time.Second)
	if result, err := s.reconcile(alice, "unsigned"); err != nil || result.RequeueAfter != time.Second || s.sale(alice, "unsigned") == nil {
		t.Errorf("a moment before its time: %+v, %v", result, err)
	}
	s.now = s.now.Add(time.Second)
	s.settle(alice, "unsigned")
	s.settle(alice, "unsigned")
	s.settle(alice, "signed")
	if s.sale(alice, "unsigned") != nil || s.sale(alice, "signed") == nil {
		t.Errorf("after %s: unsigned %v, signed %v", keep.Unsigned, s.sale(alice, "unsigned"), s.sale(alice, "signed"))
	}
	s.now = s.now.Add(keep.Signed)
	s.liqo.leaves = 1
	if _, err := s.reconcile(bob, "left"); err != nil || s.sale(bob, "left").DeletionTimestamp != nil {
		t.Errorf("one that is not withdrawn: %v", err)
	}
	for range 2 {
		s.settle(alice, "signed")
	}
	if sale := s.sale(alice, "signed"); sale != nil {
		t.Errorf("after %s: %+v", keep.Signed, sale)
	}
}

// TestDecisions holds that what people write into the spec counts, and only for the terms that they have seen.
func TestDecisions(t *testing.T) {
	s := newSeller(t)
	change := func(id string, with func(*connectorv1alpha1.SaleSpec)) {
		t.Helper()
		sale := s.sale(alice, id)
		with(&sale.Spec)
		if err := s.api.Update(t.Context(), sale); err != nil {
			t.Fatal(err)
		}
		s.settle(alice, id)
	}
	for _, id := range []string{"wanted", "unwanted"} {
		s.ask(alice, id, contract.Reserve, contract.Ask)
		s.settle(alice, id)
		s.is(alice, id, contract.Proposed, connectorv1alpha1.ReasonAwaitsApproval)
	}
	change("wanted", func(spec *connectorv1alpha1.SaleSpec) {
		spec.Decision, spec.DecisionRevision = connectorv1alpha1.DecisionApprove, 2
	})
	s.is(alice, "wanted", contract.Proposed, connectorv1alpha1.ReasonAwaitsApproval) // Of terms that are not there.
	change("wanted", func(spec *connectorv1alpha1.SaleSpec) { spec.DecisionRevision = 1 })
	s.is(alice, "wanted", contract.Reserved, connectorv1alpha1.ReasonNegotiating)
	change("unwanted", func(spec *connectorv1alpha1.SaleSpec) {
		spec.Decision, spec.Reason = connectorv1alpha1.DecisionRefuse, "not for you"
	})
	s.is(alice, "unwanted", contract.Rejected, connectorv1alpha1.ReasonRejected)
	if ready := meta.FindStatusCondition(s.sale(alice, "unwanted").Status.Conditions,
		connectorv1alpha1.ConditionReady); ready.Message != "not for you" {
		t.Errorf("the reason is told as %q", ready.Message)
	}

	s.ask(alice, "wanted", contract.Sign, contract.Accept)
	s.settle(alice, "wanted")
	s.ask(alice, "wanted", contract.Peered, "")
	change("wanted", func(spec *connectorv1alpha1.SaleSpec) { spec.Suspended = true })
	s.is(alice, "wanted", contract.Suspended, connectorv1alpha1.ReasonContractSuspended)
	if cpus, _ := s.granted(); cpus != 0 {
		t.Errorf("while it is suspended, the cluster is offered %d CPUs", cpus)
	}
	change("wanted", func(spec *connectorv1alpha1.SaleSpec) { spec.Suspended = false })
	s.is(alice, "wanted", contract.Active, connectorv1alpha1.ReasonActive)
	change("wanted", func(spec *connectorv1alpha1.SaleSpec) { spec.End = &connectorv1alpha1.ContractEnd{Reason: "we close"} })
	s.is(alice, "wanted", contract.Terminating, connectorv1alpha1.ReasonEnding)
}

// TestOneClusterOneParty holds that nobody buys for a cluster that is another party's, and that this one keeps what it has.
func TestOneClusterOneParty(t *testing.T) {
	s := newSeller(t)
	s.signed(alice, "x")
	s.settle(alice, "x")
	s.signed(bob, "y")
	s.settle(bob, "y")
	s.is(bob, "y", contract.Failed, connectorv1alpha1.ReasonClusterTaken)
	if cpus, _ := s.granted(); cpus != 1 || !s.liqo.let[string(edge.ID)] {
		t.Errorf("the owner of the cluster is offered %d CPUs, %v", cpus, s.liqo.let)
	}
	// A second contract of the same party adds up, and its end takes back nothing of the first.
	s.signed(alice, "z")
	s.settle(alice, "z")
	if cpus, _ := s.granted(); cpus != 2 {
		t.Errorf("two contracts give %d CPUs", cpus)
	}
	s.ask(alice, "z", contract.Terminate, "")
	s.ask(alice, "z", contract.Drained, "")
	s.settle(alice, "z")
	if cpus, _ := s.granted(); cpus != 1 || !s.liqo.let[string(edge.ID)] {
		t.Errorf("after the end of one of two contracts the cluster is offered %d CPUs, %v", cpus, s.liqo.let)
	}
}

// TestForeignPeeringIsLeftAlone holds that clusters that peered without a contract are not touched.
func TestForeignPeeringIsLeftAlone(t *testing.T) {
	s := newSeller(t)
	s.liqo.foreign = true
	s.signed(alice, "x")
	s.settle(alice, "x")
	s.is(alice, "x", contract.Failed, connectorv1alpha1.ReasonFailed)
	if _, touched := s.liqo.let[string(edge.ID)]; touched {
		t.Error("the peering was touched")
	}
}

// TestUnreadableRecord holds that nothing is done for, or written over, what cannot be read.
func TestUnreadableRecord(t *testing.T) {
	s := newSeller(t)
	s.signed(alice, "x")
	sale := s.sale(alice, "x")
	sale.Status.Record = "{"
	if err := s.api.Status().Update(t.Context(), sale); err != nil {
		t.Fatal(err)
	}
	s.settle(alice, "x")
	s.is(alice, "x", contract.Signed, connectorv1alpha1.ReasonUnreadable)
	if after := s.sale(alice, "x"); after.Status.Record != "{" || !slices.Contains(after.Finalizers, connectorv1alpha1.Finalizer) {
		t.Errorf("the record was written over: %q", after.Status.Record)
	}
}

// TestCredentials issues them while the contract is in force, and not when it has begun to end.
func TestCredentials(t *testing.T) {
	s := newSeller(t)
	s.signed(alice, "x")
	s.settle(alice, "x")
	active := s.ask(alice, "x", contract.Peered, "")
	peerings := sales.NewPeerings(s.api, s.store, s.liqo)
	if document, err := peerings.Credentials(t.Context(), active); err != nil || len(document) == 0 {
		t.Fatalf("in force: %s, %v", document, err)
	}
	s.ask(alice, "x", contract.Terminate, "")
	if _, err := peerings.Credentials(t.Context(), active); !errors.Is(err, contract.ErrLate) {
		t.Errorf("while it ends: %v", err)
	}
	s.ask(alice, "x", contract.Drained, "")
	s.settle(alice, "x")
	for range 2 {
		if _, err := peerings.Credentials(t.Context(), active); !errors.Is(err, contract.ErrLate) || s.liqo.let[string(edge.ID)] {
			t.Errorf("for who has read the record before the end: %v, the cluster may peer: %t", err, s.liqo.let[string(edge.ID)])
		}
	}
}

// TestIssuedAfterTheEnd takes back what one process issues while another one ends the contract and withdraws, and nothing that another
// contract for the cluster needs.
func TestIssuedAfterTheEnd(t *testing.T) {
	end := func(s *seller) {
		s.ask(alice, "x", contract.Terminate, "")
		s.ask(alice, "x", contract.Drained, "")
		s.settle(alice, "x")
	}
	for name, test := range map[string]struct {
		begin func(s *seller) contract.Record
		issue func(s *seller, record contract.Record) error
		left  bool
	}{
		"credentials": {
			begin: func(s *seller) contract.Record { s.settle(alice, "x"); return s.ask(alice, "x", contract.Peered, "") },
			issue: func(s *seller, record contract.Record) error {
				_, err := sales.NewPeerings(s.api, s.store, s.liqo).Credentials(t.Context(), record)
				return err
			},
		},
		"grant": {
			begin: func(*seller) contract.Record { return contract.Record{} },
			issue: func(s *seller, _ contract.Record) error { _, err := s.reconcile(alice, "x"); return err },
		},
		"two contracts": {
			begin: func(s *seller) contract.Record {
				s.settle(alice, "x")
				s.signed(alice, "y")
				s.settle(alice, "y")
				return s.ask(alice, "x", contract.Peered, "")
			},
			issue: func(s *seller, record contract.Record) error {
				_, err := sales.NewPeerings(s.api, s.store, s.liqo).Credentials(t.Context(), record)
				return err
			},
			left: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSeller(t)
			s.signed(alice, "x")
			record := test.begin(s)
			s.liqo.slow = func() {
				s.liqo.slow = nil
				end(s)
			}
			err := test.issue(s, record)
			if may := s.liqo.let[string(edge.ID)]; may != test.left || record.Version > 0 && !errors.Is(err, contract.ErrLate) {
				t.Errorf("the cluster may peer: %t, want %t; %v", may, test.left, err)
			}
			s.settle(alice, "x")
			s.is(alice, "x", contract.Ended, connectorv1alpha1.ReasonEnded)
		})
	}
}

// TestBehind has a process act that knows another contract for the cluster as it was before it ended: that one neither keeps what was
// issued, nor the cluster from another party.
func TestBehind(t *testing.T) {
	end := func(s *seller, buyer, id string) {
		s.ask(buyer, id, contract.Terminate, "")
		s.ask(buyer, id, contract.Drained, "")
	}
	granted := func(s *seller, buyer, id string) {
		s.signed(buyer, id)
		s.settle(buyer, id)
		s.ask(buyer, id, contract.Peered, "")
	}
	behind := func(s *seller) *told {
		s.t.Helper()
		known, err := s.store.All(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		return &told{all: known}
	}
	is := func(s *seller, may bool) {
		s.t.Helper()
		if s.liqo.let[string(edge.ID)] != may {
			s.t.Errorf("the cluster may peer: %t", !may)
		}
	}
	t.Run("of the same party", func(t *testing.T) {
		s := newSeller(t)
		granted(s, alice, "x")
		granted(s, alice, "y")
		known := behind(s)
		end(s, alice, "y")
		s.settle(alice, "y")
		is(s, true) // The first contract needs it.
		end(s, alice, "x")
		s.knows = known
		s.settle(alice, "x")
		s.is(alice, "x", contract.Ended, connectorv1alpha1.ReasonEnded)
		is(s, false)
	})
	t.Run("of another party", func(t *testing.T) {
		s := newSeller(t)
		granted(s, bob, "y")
		s.signed(alice, "x")
		known := behind(s)
		end(s, bob, "y")
		s.settle(bob, "y")
		s.knows = known
		s.settle(alice, "x")
		s.is(alice, "x", contract.Provisioning, connectorv1alpha1.ReasonSettingUp)
		is(s, true)
		s.ask(alice, "x", contract.Peered, "")
		end(s, alice, "x")
		s.settle(alice, "x")
		s.is(alice, "x", contract.Ended, connectorv1alpha1.ReasonEnded)
		is(s, false)
	})
}
