// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trade

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/clocktest"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/sales"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationtest"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/test/worlds/apiserver"
)

// What sellers offer, and how long they wait.
const (
	offerID    = "small"
	planID     = "one"
	otherPlan  = "two"
	drainFor   = 5 * time.Minute
	reserveFor = 5 * time.Minute
	decideFor  = 40 * time.Minute
)

// seller is a cluster that sells.
type seller struct {
	host
	*somebody

	identity cluster.Identity
	offer    offer.Offer
	closed   bool
	// stock is how many contracts it has of a plan, cores how many cores for all of them, and most how many of these for one.
	stock       map[string]int64
	cores, most int64
	liqo        sellerLiqo
	leader      *replica
	underway    []message
	// backup is an older copy of its objects, and restored whether one has come back.
	backup   *sellerBackup
	restored bool
	// vanished is whether it knows no contract now, and hid whether it ever has.
	vanished, hid bool
	records       readRecords
	// told is what it has written of its contracts, and granted what it grants, as of the version grantedAt.
	told      map[contract.Key]*told
	granted   *grant.Book
	grantedAt int

	web  *http.Server
	done chan struct{}
}

// replica is one run of a seller's connector.
type replica struct {
	*process

	of    *seller
	books *books.Store
	sales *sales.Reconciler
	// peerings is shared by what drives sales and what answers.
	peerings *sales.Peerings
	// answers is nil until somebody asks: to make one takes long.
	answers *negotiation.Server
	waits   contract.Seller
}

// newSeller opens a shop.
func (w *world) newSeller(name string) *seller {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	s := &seller{
		host: w.newHost(name), somebody: w.newParty(name, cluster.ID(name), "https://"+listener.Addr().String()),
		identity: cluster.Identity{ID: cluster.ID(name), Name: name}, liqo: sellerLiqo{map[cluster.ID]*issued{}}, records: readRecords{},
		told: map[contract.Key]*told{}, done: make(chan struct{}), cores: 4 + w.r.Int64N(14), most: 3 + w.r.Int64N(6),
		stock: map[string]int64{planID: 1 + w.r.Int64N(6), otherPlan: 1 + w.r.Int64N(3)},
	}
	s.offer, err = offer.Parse(fmt.Appendf(nil, `{"party":%q,"id":%q,"revision":1,"issuedAt":%q,"validUntil":%q,"kind":"Cluster","name":"Small",
		"plans":[{"id":%q,"range":{"min":{"cpu":"1","memory":"1Gi","pods":"10"},"max":{"cpu":"%d","memory":"8Gi","pods":"100"},
		"step":{"cpu":"1","memory":"1Gi","pods":"10"}},"price":{"amount":"0.1","currency":"EUR","period":"PT1H"},
		"unitPrices":{"cpu":{"amount":"0.1","per":"1"}},"available":5,"notice":"PT10M"}]}`,
		s.id, offerID, w.now.Add(-time.Hour).Format(time.RFC3339), w.now.Add(300*24*time.Hour).Format(time.RFC3339), planID, s.most))
	if err != nil {
		w.t.Fatal(err)
	}
	other := s.offer.Plans[0]
	other.ID, other.Notice = otherPlan, offer.Duration(time.Hour)
	s.offer.Plans = append(s.offer.Plans, other)
	s.web = &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(s.done)
		_ = s.web.Serve(tls.NewListener(listener, party.TLS{Current: func() party.Key { return s.key }}.Server()))
	}()
	w.sellers = append(w.sellers, s)
	s.lead()
	return s
}

// close closes the shop.
func (s *seller) close() {
	_ = s.web.Close()
	<-s.done
}

// Offer implements negotiation.Offers.
func (s *seller) Offer(_ context.Context, id string) (offer.Signed, error) {
	if id != offerID || s.closed {
		return offer.Signed{}, negotiation.ErrNotOffered
	}
	return offer.Sign(s.offer, s.key.Sign)
}

// Limits implements negotiation.Offers.
func (s *seller) Limits(_ context.Context, _, plan string) (ledger.Limits, error) {
	stock := s.stock[plan]
	return ledger.Limits{Stock: &stock, Capacity: corev1.ResourceList{
		"cpu": *resource.NewQuantity(s.cores, resource.DecimalSI), "memory": resource.MustParse("1000Gi"), "pods": resource.MustParse("10000"),
	}}, nil
}

// Admit implements negotiation.Admission.
func (s *seller) Admit(context.Context, negotiation.Application) (contract.Verdict, string, error) {
	switch w := s.w; {
	case w.once(20):
		return contract.Deny, "not you", nil
	case w.once(6):
		return contract.Ask, "", nil
	}
	return contract.Accept, "", nil
}

// newReplica starts a connector.
func (s *seller) newReplica() *replica {
	p := s.newProcess()
	r := &replica{process: p, of: s, waits: contract.Seller{ReserveFor: reserveFor, DecideFor: decideFor}}
	var err error
	if r.books, err = books.New(books.Config{Client: p.client(), Reader: p.reader(), Parties: s.w}); err != nil {
		s.w.t.Fatal(err)
	}
	if err := r.books.Watch(context.Background(), informers{p: p}); err != nil {
		s.w.t.Fatal(err)
	}
	r.peerings = sales.NewPeerings(p.reader(), r.books, liqoOfSeller{p, s})
	if r.sales, err = sales.New(sales.Config{
		Client: p.client(), Reader: p.reader(), Peerings: r.peerings, Retention: keeps(), Ledger: r.books.Ledger,
		Applier: negotiation.Applier{Store: r.books, Offers: s, Seller: r.waits, Clock: clocktest.Func(s.clock)},
	}); err != nil {
		s.w.t.Fatal(err)
	}
	return r
}

// server answers buyers.
func (r *replica) server() http.Handler {
	if r.answers != nil {
		return r.answers
	}
	s := r.of
	var err error
	r.answers, err = negotiation.NewServer(negotiation.Config{
		Party: s.id, Key: func() party.Key { return s.key }, Keys: func() party.Keys { return s.keys }, Learn: r.books.Learn,
		Identify: r.identify, Store: r.books, Offers: s, Admission: negotiation.Owners{Admission: s, Owns: s.w.owns},
		Reach: negotiationtest.Reach{At: negotiationv1.Endpoints(where(s.identity)), Unreached: s.w.unreached}, TryFor: time.Millisecond,
		Credentials: r.peerings, Seller: r.waits, Drain: drainFor, Limits: endless(), Log: logr.Discard(), Clock: clocktest.Func(s.clock),
	})
	if err != nil {
		panic(err) // It is not the test that calls.
	}
	return r.answers
}

// endless are limits that no buyer reaches.
func endless() negotiation.Limits {
	limits := negotiation.DefaultLimits()
	limits.PerSecond, limits.AtOnce, limits.NewPerMinute, limits.NewAtOnce, limits.Lapsed = 1e6, 1e6, 1e6, 1e6, 1e6
	limits.TriesPerMinute, limits.TriesAtOnce, limits.Tries = 1e6, 1e6, 1e6
	return limits
}

// lead has a new replica lead. Nothing goes wrong while it begins: it would only begin again.
func (s *seller) lead() {
	s.leader = s.newReplica()
	calm := s.w.calm
	s.w.calm = true
	s.tidy()
	s.w.calm = calm
}

// tidy has the leader tidy its ledger.
func (s *seller) tidy() {
	err := s.leading().books.Tidy(context.Background(), s.clock(), reserveFor)
	s.w.notef("%s tidies its ledger: %v", s.leader.name, err)
	if err != nil && s.w.calm {
		s.w.failf("%s tidies its ledger: %v", s.leader.name, err)
	}
}

// leading returns a replica that leads, and is alive.
func (s *seller) leading() *replica {
	if s.leader.dead {
		s.lead()
	}
	return s.leader
}

// all returns the Sales.
func (s *seller) all() []*connectorv1alpha1.Sale { return all(s.live, &connectorv1alpha1.Sale{}) }

// reconcile has the leader look at a Sale.
func (s *seller) reconcile(name string) {
	r, wrong := s.leading(), s.w.wrong
	r.behind()
	like := &connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: name}}
	sale, current := s.server.Stored(like).(*connectorv1alpha1.Sale)
	current = current && r.cache.Seen(like) == client.Object(sale)
	err := r.reconcile(name)
	if err != nil && s.w.calm {
		s.w.failf("without any fault, sale %s of %s: %v", name, s.name, err)
	}
	if err != nil || !current || s.w.wrong != wrong {
		return
	}
	record, err := books.Record(sale)
	if err != nil || record == nil {
		return
	}
	if now := s.soldTo(record.Key); now != nil {
		s.w.note(s.isInTime(now), s.name)
	}
	if b, p := s.w.purchaseOf(s, record.Key); p != nil {
		s.w.lookedAt(b, p, s, true)
	}
}

func (r *replica) reconcile(name string) error {
	result, err := r.sales.Reconcile(context.Background(), requestOf(name))
	r.w.notef("%s looks at %s: again after %s, %v", r.name, name, result.RequeueAfter, err)
	return err
}

// sellerBackup is a cluster that sells, as it was.
type sellerBackup struct {
	objects apiserver.Backup
	liqo    sellerLiqo
}

// restore brings back an older copy of the seller's cluster, if there is one; if not, it makes one.
func (s *seller) restore() {
	if s.backup == nil {
		s.backup = &sellerBackup{s.server.Backup(), s.liqo.clone()}
		// An old leader may just be about to take back what it has issued. Nobody does when the copy comes back; nothing is given through it.
		maps.DeleteFunc(s.backup.liqo.issued, func(id cluster.ID, _ *issued) bool { return !s.entitled(id) })
		s.w.notef("%s is backed up", s.name)
		return
	}
	s.server.Restore(s.backup.objects)
	s.liqo, s.backup, s.restored = s.backup.liqo.clone(), nil, true
	clear(s.records)
	s.forgetPast()
	s.w.notef("%s is restored from its backup", s.name)
	s.w.restored++
	s.lead()
}

// keeps is for how long sellers keep contracts: less than passes when a world is over.
func keeps() sales.Retention {
	keep := sales.DefaultRetention()
	keep.Signed = 7 * 24 * time.Hour
	return keep
}
