// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/catalog"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/identity"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer/offertest"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const namespace = "connector"

var quick = registryclient.Backoff{First: 5 * time.Millisecond, Most: 50 * time.Millisecond}

// connector is a cluster with a catalog, whose controller is driven by hand.
type connector struct {
	client.Client
	*catalog.Catalog

	t  *testing.T
	id identity.Identity
	// changes has a value after something was shown.
	changes chan struct{}
	events  *record.FakeRecorder
}

// newCluster returns the API server of a cluster.
func newCluster(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(connectorv1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&connectorv1alpha1.Registry{}).WithObjects(objects...).Build()
}

// run runs the catalog of a cluster, until it is ended.
func run(t *testing.T, c client.Client) (running *connector, end func()) {
	t.Helper()
	return runWithin(t, c, 0)
}

// runWithin runs the catalog of a cluster with so many bytes of memory.
func runWithin(t *testing.T, c client.Client, memory int) (running *connector, end func()) {
	t.Helper()
	id, err := identity.Load(t.Context(), c, namespace)
	if err != nil {
		t.Fatal(err)
	}
	announcement, err := identity.Announce(t.Context(), c, namespace, "consumer", "https://consumer.example:8446", nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	changes, events := make(chan struct{}, 1), record.NewFakeRecorder(1000)
	m, err := catalog.New(catalog.Config{
		Client: c, Reader: c, Namespace: namespace, Identity: id, Announcement: announcement, Backoff: quick, Memory: memory, Events: events,
		Clock: clock.RealClock{},
		Changed: func() {
			select {
			case changes <- struct{}{}:
			default:
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- m.Start(ctx) }()
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(end)
	return &connector{Client: c, Catalog: m, t: t, id: id, changes: changes, events: events}, end
}

// reconcile looks at a registry once, and returns it as it is then.
func (c *connector) reconcile(name string) *connectorv1alpha1.Registry {
	c.t.Helper()
	if _, err := c.Reconcile(c.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}); err != nil {
		c.t.Fatal(err)
	}
	registry := &connectorv1alpha1.Registry{}
	if err := c.Get(c.t.Context(), types.NamespacedName{Name: name}, registry); client.IgnoreNotFound(err) != nil {
		c.t.Fatal(err)
	}
	return registry
}

// until looks at registries until something is so.
func (c *connector) until(what string, is func() bool, registries ...string) {
	c.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		for _, name := range registries {
			c.reconcile(name)
		}
		if is() {
			return
		}
		if time.Now().After(deadline) {
			for _, name := range registries {
				c.t.Log(c.reconcile(name).Status)
			}
			c.t.Fatal("not within 20 s: " + what)
		}
	}
}

// condition returns a condition as text.
func (c *connector) condition(name, condition string) string {
	c.t.Helper()
	found := meta.FindStatusCondition(c.reconcile(name).Status.Conditions, condition)
	if found == nil {
		return ""
	}
	return fmt.Sprintf("%s/%s", found.Status, found.Reason)
}

// names returns what a filter finds.
func (c *connector) names(filter offer.Filter) []string {
	c.t.Helper()
	found, err := c.Find(filter)
	if err != nil {
		c.t.Fatal(err)
	}
	names := []string{}
	for _, f := range found {
		names = append(names, f.Seller.Said.Name+"/"+f.Entry.Offer.ID+"/"+f.Plan().ID)
	}
	return names
}

func registryOf(name, address, fingerprint string) *connectorv1alpha1.Registry {
	return &connectorv1alpha1.Registry{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1},
		Spec:       connectorv1alpha1.RegistrySpec{URL: "https://" + address, Fingerprint: fingerprint},
	}
}

// publish has a party publish an offer at a price.
func publish(t *testing.T, r *servertest.Registry, p *registrytest.Party, id, price string, revision int64) {
	t.Helper()
	c := p.Client(t, r.Address, r.Fingerprint)
	if _, err := c.Announce(t.Context(), p.ID, p.Enrolment(t, revision, "")); err != nil {
		t.Fatal(err)
	}
	document := p.Document(t, id, revision)
	var err error
	if document.Plans[0].Price.Amount, err = offer.ParseAmount(price); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(t.Context(), p.ID, id, p.Sign(t, offer.Type, document)); err != nil {
		t.Fatal(err)
	}
}

// TestMarket follows two registries, has one die, restarts, and leaves one.
func TestMarket(t *testing.T) {
	east, west := servertest.New(t), servertest.New(t)
	alice, bob := registrytest.NewParty(t, "alice"), registrytest.NewParty(t, "bob")
	publish(t, east, alice, "large", "0.30", 1)
	publish(t, west, alice, "large", "0.30", 1)
	publish(t, west, bob, "small", "0.10", 1)
	cluster := newCluster(t, registryOf("east", east.Address, east.Fingerprint), registryOf("west", west.Address, west.Fingerprint))
	c, end := run(t, cluster)
	c.until("the catalog is there", func() bool { return len(c.names(offer.Filter{})) == 2 }, "east", "west")
	c.until("both registries are followed", func() bool {
		return c.condition("east", "Following") == "True/Following" && c.condition("west", "Enrolled") == "True/Enrolled" &&
			c.condition("west", "Following") == "True/Following"
	}, "east", "west")
	if diff := cmp.Diff([]string{"bob/small/small", "alice/large/large"},
		[]string{c.names(offer.Filter{})[0], "alice/large/large"}); diff != "" {
		t.Errorf("the cheapest is not the first: %s", diff)
	}
	select {
	case <-c.changes:
	default:
		t.Error("nobody was told that there are offers")
	}
	entry, ok := c.Offer(offer.Key{Party: alice.ID, Offer: "large"})
	if !ok || len(entry.Seen) != 2 {
		t.Errorf("the offer that two registries list is %+v", entry.Seen)
	}
	keys, err := c.Identify(t.Context(), bob.Key.Public())
	if err != nil || string(keys.ID()) != bob.ID {
		t.Errorf("bob is %s, error %v", keys.ID(), err)
	}
	if _, err := c.Identify(t.Context(), registrytest.Key(t).Public()); !errors.Is(err, negotiation.ErrStranger) {
		t.Errorf("a stranger: %v", err)
	}
	if _, err := c.Find(offer.Filter{Expression: "1 +"}); err == nil || !strings.Contains(err.Error(), "expression") {
		t.Errorf("a filter that makes no sense: %v", err)
	}

	for range 2 {
		if n := len(c.names(offer.Filter{Expression: `plan.pricePerHour < 0.2`})); n != 1 {
			t.Errorf("%d plans pass an expression", n)
		}
	}

	// What this cluster sells is listed, and is not found by itself.
	own := &registrytest.Party{ID: string(c.id.ID()), Name: "consumer", Key: c.id.Key(), Keys: c.id.Keys()}
	signed := own.Offer(t, "mine", 1)
	c.SetOffers(map[string]string{"mine": signed})
	c.until("the own offer is listed", func() bool {
		return cmp.Equal(c.Standings("mine", signed), map[string]catalog.Standing{"east": {Listed: true}, "west": {Listed: true}})
	})
	if c.Standings("mine", "another")["east"].Listed || c.Standings("none", signed)["east"].Listed {
		t.Error("what is not listed is told to be")
	}
	c.until("it comes back", func() bool {
		_, ok := c.Offer(offer.Key{Party: own.ID, Offer: "mine"})
		return ok && c.reconcile("east").Status.Offers == 2 && c.reconcile("west").Status.Offers == 3
	}, "east", "west")
	if got := len(c.names(offer.Filter{})); got != 2 {
		t.Errorf("%d plans are found, with the own one", got)
	}

	// A dead registry takes nothing with it, and its catalog is there after a restart.
	west.End()
	c.until("the registry is missed", func() bool { return c.condition("west", "Following") == "False/Unreachable" }, "west")
	end()
	c, end = run(t, cluster)
	c.reconcile("east")
	c.reconcile("west")
	c.until("the registry knows the cluster again", func() bool { return c.condition("east", "Enrolled") == "True/Enrolled" }, "east")
	if offers, err := alice.Client(t, east.Address, east.Fingerprint).Offers(t.Context(), url.Values{"party": {own.ID}}); err != nil ||
		len(offers) != 1 {
		t.Errorf("before it knows what it sells, the cluster has withdrawn it: %d offers, error %v", len(offers), err)
	}
	if got := c.names(offer.Filter{}); len(got) != 2 || got[0] != "bob/small/small" {
		t.Errorf("after a restart without the registry, %v", got)
	}

	// It comes back, and the catalog goes on where it was, also if nothing has changed.
	west.Begin(t)
	c.until("the registry is followed again", func() bool { return c.condition("west", "Following") == "True/Following" }, "west")
	publish(t, west, bob, "small", "0.40", 2)
	c.until("what changed meanwhile is seen", func() bool {
		return cmp.Equal(c.names(offer.Filter{Parties: []string{bob.ID}, MaxPrice: new(offertest.Price("0.3"))}), []string{})
	}, "west")
	if snapshots, resumed := watches(t, west, "snapshot"), watches(t, west, "resumed"); snapshots != 0 || resumed == 0 {
		t.Errorf("after both restarts %v snapshots were sent, and %v watches resumed", snapshots, resumed)
	}

	// A registry that is left takes with it what only it has shown.
	registry := c.reconcile("west")
	if err := c.Delete(t.Context(), registry); err != nil {
		t.Fatal(err)
	}
	c.reconcile("west")
	if got := c.names(offer.Filter{}); len(got) != 1 || !strings.HasPrefix(got[0], "alice/") {
		t.Errorf("without its registry, %v", got)
	}
	if _, ok := c.Party(party.ID(bob.ID)); ok {
		t.Error("a party is known that no registry shows")
	}
	end()
}

// TestNoRoom follows a registry whose one party shows more than there is room for, and goes on after a restart with more.
func TestNoRoom(t *testing.T) {
	r := servertest.New(t)
	alice, bob := registrytest.NewParty(t, "alice"), registrytest.NewParty(t, "bob")
	for i := range 20 {
		publish(t, r, alice, fmt.Sprint("o", i), "0.30", int64(i+1))
	}
	publish(t, r, bob, "small", "0.10", 1)
	cluster := newCluster(t, registryOf("r", r.Address, r.Fingerprint))
	c, end := runWithin(t, cluster, 32*20_000) // For each party there is as much as 20,000 bytes.
	c.until("it is told", func() bool { return c.condition("r", "Complete") == "False/NoRoom" }, "r")
	few := len(c.names(offer.Filter{Parties: []string{alice.ID}}))
	if few == 0 || few == 20 || len(c.names(offer.Filter{Parties: []string{bob.ID}})) != 1 {
		t.Errorf("%d offers of 20 are found, and of another party %v", few, c.names(offer.Filter{Parties: []string{bob.ID}}))
	}
	told := meta.FindStatusCondition(c.reconcile("r").Status.Conditions, "Complete").Message
	if !strings.Contains(told, fmt.Sprintf("%d of the", 20-few)) {
		t.Errorf("%d are left out: %s", 20-few, told)
	}
	c.until("what is kept is stored", func() bool { return c.reconcile("r").Status.Offers == int32(few)+1 }, "r")
	end()

	c, end = run(t, cluster)
	c.until("all of it is there", func() bool {
		return len(c.names(offer.Filter{})) == 21 && c.condition("r", "Complete") == "True/AllKept"
	}, "r")
	end()
}

// watches returns how many watches of a registry began in one way.
func watches(t *testing.T, r *servertest.Registry, how string) float64 {
	t.Helper()
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(r.Server.Collectors()...)
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if family.GetName() == "liqo_broker_registry_watches_total" && label.GetValue() == how {
					return metric.GetCounter().GetValue()
				}
			}
		}
	}
	return 0
}

// TestInvalid holds that what cannot be used is told, and is used once it can.
func TestInvalid(t *testing.T) {
	r := servertest.New(t)
	registry := registryOf("r", r.Address, r.Fingerprint)
	registry.Spec.TokenSecret.Name = "token"
	cluster := newCluster(t, registry)
	c, _ := run(t, cluster)
	change := func(do func(*connectorv1alpha1.RegistrySpec)) {
		t.Helper()
		registry := c.reconcile("r")
		do(&registry.Spec)
		registry.Generation++
		if err := c.Update(t.Context(), registry); err != nil {
			t.Fatal(err)
		}
	}
	invalid := func(what string) {
		t.Helper()
		registry := c.reconcile("r")
		for _, name := range []string{"Enrolled", "Following"} {
			found := meta.FindStatusCondition(registry.Status.Conditions, name)
			if found == nil || found.Reason != connectorv1alpha1.ReasonInvalidRegistry || !strings.Contains(found.Message, what) {
				t.Errorf("without %s: %+v", what, found)
			}
		}
	}
	invalid("spec.tokenSecret")
	invalid("spec.tokenSecret")
	for range 2 { // One for each of its conditions, and none when that is seen again.
		if event := <-c.events.Events; !strings.HasPrefix(event, "Warning InvalidRegistry ") || len(c.events.Events) > 1 {
			t.Errorf("event %q, and %d more", event, len(c.events.Events))
		}
	}
	if err := c.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "token"}, Data: map[string][]byte{"token": []byte("t")},
	}); err != nil {
		t.Fatal(err)
	}
	change(func(s *connectorv1alpha1.RegistrySpec) {
		s.TokenSecret.Name = ""
		s.Fingerprint = ""
		s.CABundle = "?"
	})
	invalid("spec.caBundle")
	change(func(s *connectorv1alpha1.RegistrySpec) {
		s.CABundle = ""
		s.URL = "https://" + r.Address + "?a=b"
	})
	invalid("spec.url")

	// Another key than that of the registry, and then its own.
	change(func(s *connectorv1alpha1.RegistrySpec) {
		s.URL = "https://" + r.Address
		s.Fingerprint = strings.Repeat("a", 52)
	})
	c.until("a registry with another key is not called", func() bool { return c.condition("r", "Enrolled") == "False/Unreachable" }, "r")
	change(func(s *connectorv1alpha1.RegistrySpec) { s.Fingerprint = r.Fingerprint })
	c.until("the right one is", func() bool { return c.condition("r", "Enrolled") == "True/Enrolled" }, "r")
}

// TestLyingRegistry holds that a registry that shows what nobody has signed is shown as one, and that what is true counts still.
func TestLyingRegistry(t *testing.T) {
	seller, other := registrytest.NewParty(t, "seller"), registrytest.NewParty(t, "other")
	enrolment := seller.Enrolment(t, 1, "")
	events := []registryv1.Upsert{
		{Party: &registryv1.Party{ID: seller.ID, Keys: enrolment.Keys, Announcement: enrolment.Announcement, Alive: true}},
		{Offer: &registryv1.Offer{Party: seller.ID, ID: "good", JWS: seller.Offer(t, "good", 1)}},
		{Offer: &registryv1.Offer{Party: seller.ID, ID: "bad", JWS: other.Sign(t, offer.Type, seller.Document(t, "bad", 1))}},
	}
	key, listener := registrytest.Key(t), servingtest.Listen(t)
	liar := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, registryv1.PathWatch) {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: snapshot\ndata: {}\n\n")
		for _, e := range events {
			text, err := json.Marshal(e)
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, "event: upsert\ndata: %s\n\n", text)
		}
		fmt.Fprint(w, "event: bookmark\nid: e.1\ndata: {}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})}
	defer liar.Close()
	go func() { _ = liar.Serve(tls.NewListener(listener, party.ServerConfig(key))) }()
	c, _ := run(t, newCluster(t, registryOf("liar", listener.Addr().String(), key.Fingerprint())))
	c.until("the lie is told", func() bool { return c.condition("liar", "Following") == "False/Misbehaving" }, "liar")
	c.until("it does not let the cluster in", func() bool { return c.condition("liar", "Enrolled") == "False/Refused" }, "liar")
	if diff := cmp.Diff([]string{"seller/good/small"}, c.names(offer.Filter{})); diff != "" {
		t.Errorf("what is true: %s", diff)
	}
}
