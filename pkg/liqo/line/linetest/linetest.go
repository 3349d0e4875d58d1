// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package linetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

// Run checks that a line answers of its World what package line promises.
func Run(t *testing.T, w World) {
	t.Helper()
	w.scheme = runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(w.scheme), w.Line.AddToScheme(w.scheme)); err != nil {
		t.Fatal(err)
	}
	for name, check := range map[string]func(*testing.T){
		"Kinds": w.checkKinds, "OwnIdentity": w.checkOwnIdentity,
		"Peers": w.checkPeers, "UnknownPeers": w.checkUnknownPeers, "Tenants": w.checkTenants, "Names": w.checkNames,
		"Offers": w.checkOffers, "OffersWith": w.checkOffersWith, "OffersOfNode": w.checkOffersOfNode, "ValuesOf": w.checkValuesOf,
		"Links": w.checkLinks, "Catalog": w.checkCatalog, "CatalogForStrangers": w.checkStrangersView,
		"Offloading": w.checkOffloading, "NewOffloading": w.checkNewOffloading,
		"NewOffloadingTo": w.checkNewOffloadingTo, "Receptions": w.checkReceptions, "Twins": w.checkTwins,
		"AccountChanged": w.checkAccountChanged, "Dropped": w.checkDropped, "Failures": w.checkFailures,
		"PeersWrite": w.checkPeersWrite, "Maps": w.checkMaps, "Writers": w.checkWriters, "IdentityRules": w.checkIdentityRules,
		"NetworkRules": w.checkNetworkRules, "Wishes": w.checkWishes, "OwnNetworks": w.checkOwnNetworks,
	} {
		t.Run(name, check)
	}
}

// peers returns those of the world.
func (w *World) peers() []Peer { return []Peer{w.Provider, w.Consumer, w.Liar, w.Stranger} }

// newClient returns a client that has the indexes of the line, and holds objects and NobodysNamespace. That has the ID of the Stranger, as
// the twin of one of its namespaces would.
func (w *World) newClient(t *testing.T, objects []client.Object, funcs interceptor.Funcs) client.Client {
	t.Helper()
	nobodys := &corev1.Namespace{}
	nobodys.Name, nobodys.Labels = NobodysNamespace, map[string]string{liqo.LabelRemoteClusterID: string(w.Stranger.ID)}
	b := fake.NewClientBuilder().WithScheme(w.scheme).WithInterceptorFuncs(funcs).WithObjects(nobodys)
	for _, o := range objects {
		b = b.WithObjects(copyOf(o))
	}
	for _, i := range w.Line.Indexes() {
		b = b.WithIndex(i.Object, i.Field, i.Extract)
	}
	return b.Build()
}

// reader returns one of the line, of the world as it is.
func (w *World) reader(t *testing.T) line.Reader {
	t.Helper()
	return w.readerOf(t, w.Objects)
}

func (w *World) readerOf(t *testing.T, objects []client.Object) line.Reader {
	t.Helper()
	return w.Line.Reader(w.newClient(t, objects, interceptor.Funcs{}), w.Own.ID)
}

// must returns an answer without the error that ends the test.
func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(answer T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
}

func asJSON(t *testing.T, shown any) string {
	t.Helper()
	text, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// replaced returns the objects of the world, with others for those of the same kinds and names, and new ones.
func (w *World) replaced(by ...client.Object) []client.Object {
	all := slices.Clone(w.Objects)
	for _, o := range by {
		at := slices.IndexFunc(all, func(other client.Object) bool {
			return sameKind(other, o) && client.ObjectKeyFromObject(other) == client.ObjectKeyFromObject(o)
		})
		if at < 0 {
			all = append(all, o)
		} else {
			all[at] = o
		}
	}
	return all
}

func copyOf(o client.Object) client.Object {
	return o.DeepCopyObject().(client.Object) //nolint:revive // A copy is of the same type.
}

func sameKind(a, b client.Object) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }

// ofKind returns the objects of the world that are of a kind.
func (w *World) ofKind(kind client.Object) []client.Object {
	return slices.DeleteFunc(slices.Clone(w.Objects), func(o client.Object) bool { return !sameKind(o, kind) })
}

// kinds returns all that the line watches.
func (w *World) kinds() []client.Object {
	kinds := w.Line.Kinds()
	return slices.Concat([]client.Object{kinds.Record, kinds.Offer, kinds.Network, kinds.Offloading}, kinds.Tunnels, kinds.Peering,
		kinds.Saying, kinds.Views)
}

// checkKinds checks that a client with the scheme of the line can read and list what is watched, and that nothing is shared by two callers.
func (w *World) checkKinds(t *testing.T) {
	t.Helper()
	if w.Line.Name() == "" {
		t.Error("the line has no name")
	}
	kinds := w.Line.Kinds()
	for _, kind := range []schema.GroupVersionKind{kinds.Shadow.GroupVersionKind(), kinds.Shadows().GroupVersionKind()} {
		if !w.scheme.Recognizes(kind) {
			t.Errorf("%s is not in the scheme", kind)
		}
	}
	offers, err := apiutil.GVKForObject(kinds.Offers, w.scheme)
	if of, errOf := apiutil.GVKForObject(kinds.Offer, w.scheme); err != nil || errOf != nil || offers.Kind != of.Kind+"List" {
		t.Errorf("%s is no list of %s: %v, %v", offers, of, err, errOf)
	}
	again := w.kinds()
	for i, kind := range w.kinds() {
		gvk, err := apiutil.GVKForObject(kind, w.scheme)
		if err != nil {
			t.Errorf("%T is not in the scheme: %v", kind, err)
			continue
		}
		if list := gvk.GroupVersion().WithKind(gvk.Kind + "List"); !w.scheme.Recognizes(list) {
			t.Errorf("%s is not in the scheme", list)
		}
		if kind == again[i] {
			t.Errorf("Kinds() returns the same %T twice", kind)
		}
		if len(w.ofKind(kind)) == 0 {
			t.Errorf("the world has no %T: nothing is tested with it", kind)
		}
	}
}

func (w *World) checkOwnIdentity(t *testing.T) {
	t.Helper()
	c := w.newClient(t, w.Objects, interceptor.Funcs{})
	if got, err := w.Line.OwnIdentity(t.Context(), c, liqo.DefaultNamespace); err != nil || got != w.Own {
		t.Errorf("OwnIdentity() = %v, %v, want %v", got, err, w.Own)
	}
	if got, err := w.Line.OwnIdentity(t.Context(), c, NobodysNamespace); err == nil {
		t.Errorf("OwnIdentity() where Liqo does not run = %v", got)
	}
}

// checkPeers compares what is known of each peer with what it is, and all ways to find it with each other.
func (w *World) checkPeers(t *testing.T) {
	t.Helper()
	r, up := w.reader(t), liqo.Peering{Exists: true, Established: true}
	all := must[[]liqo.Peer](t)(r.Peers(t.Context()))
	if len(all) != len(w.peers()) {
		t.Errorf("Peers() has %d peers, want %d", len(all), len(w.peers()))
	}
	for name, tc := range map[string]struct {
		reason             string
		peer               Peer
		outgoing, incoming liqo.Peering
	}{
		"Provider": {reason: "This cluster uses it, and what a liar says of it is no peering.", peer: w.Provider, outgoing: up},
		"Consumer": {reason: "It uses this cluster.", peer: w.Consumer, incoming: up},
		"Liar":     {reason: "It uses this cluster, whatever else it says.", peer: w.Liar, incoming: up},
		"Stranger": {reason: "It is known, and no more.", peer: w.Stranger},
	} {
		at := slices.IndexFunc(all, func(p liqo.Peer) bool { return p.ID == tc.peer.ID })
		if at < 0 {
			t.Errorf("%s: Peers() does not have it", name)
			continue
		}
		listed := all[at]
		got := liqo.Peer{
			Identity: listed.Identity, Record: listed.Record, Tenant: listed.Tenant, Outgoing: listed.Outgoing, Incoming: listed.Incoming,
		}
		want := liqo.Peer{
			Identity: tc.peer.Identity, Record: tc.peer.Record, Tenant: tc.peer.Tenant, Outgoing: tc.outgoing, Incoming: tc.incoming,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s\nPeers(): -want +got\n%s", name, tc.reason, diff)
		}
		if diff := cmp.Diff(&listed, must[*liqo.Peer](t)(r.Peer(t.Context(), tc.peer.ID))); diff != "" {
			t.Errorf("%s: Peer() is not what Peers() has: -want +got\n%s", name, diff)
		}
		if diff := cmp.Diff([]liqo.Peer{listed}, must[[]liqo.Peer](t)(r.PeersCalled(t.Context(), tc.peer.Name))); diff != "" {
			t.Errorf("%s: PeersCalled(): -want +got\n%s", name, diff)
		}
	}
}

func (w *World) checkUnknownPeers(t *testing.T) {
	t.Helper()
	r := w.reader(t)
	for reason, id := range map[string]cluster.ID{
		"Nobody is called so.": "no-such", "It names no cluster.": "", "No cluster is its own peer.": w.Own.ID,
	} {
		if got := must[*liqo.Peer](t)(r.Peer(t.Context(), id)); got != nil {
			t.Errorf("%s Peer(%q) = %v, want nil", reason, id, got)
		}
		if got := must[[]liqo.Peer](t)(r.PeersCalled(t.Context(), string(id))); len(got) > 0 {
			t.Errorf("%s PeersCalled(%q) = %v", reason, id, got)
		}
	}
}

func (w *World) checkTenants(t *testing.T) {
	t.Helper()
	r, nobody := w.reader(t), cluster.Identity{}
	for name, tc := range map[string]struct {
		reason, namespace string
		want              cluster.Identity
	}{
		"Provider": {"It is that of the provider.", w.Provider.Tenant, w.Provider.Identity},
		"Consumer": {"It is that of the consumer.", w.Consumer.Tenant, w.Consumer.Identity},
		"Liar":     {"It is that of the liar, whatever is in it.", w.Liar.Tenant, w.Liar.Identity},
		"Nobody":   {"The twin of a peer's namespace is no tenant namespace.", NobodysNamespace, nobody},
		"Liqo":     {"It is Liqo's own.", liqo.DefaultNamespace, nobody},
		"None":     {"There is no such namespace.", "no-such", nobody},
		"Unnamed":  {"It is the tenant namespace of who has none.", "", nobody},
	} {
		if got := must[cluster.Identity](t)(r.Tenant(t.Context(), tc.namespace)); got != tc.want {
			t.Errorf("%s: %s\nTenant(%q) = %v, want %v", name, tc.reason, tc.namespace, got, tc.want)
		}
	}
}

// checkNames checks who has which name to itself.
func (w *World) checkNames(t *testing.T) {
	t.Helper()
	r := w.reader(t)
	for _, peer := range append(w.peers(), Peer{Identity: w.Own}) {
		if got := must[[]liqo.Peer](t)(r.Namesakes(t.Context(), peer.Identity)); len(got) > 0 {
			t.Errorf("Namesakes(%s) = %v: all names differ", peer.Identity, got)
		}
	}
	for node, want := range map[string][]cluster.ID{w.Node: {w.Provider.ID}, "no-such": nil, "": nil, "-": nil} {
		if got := must[[]cluster.ID](t)(r.UsualOwners(t.Context(), node)); !slices.Equal(got, want) {
			t.Errorf("UsualOwners(%q) = %q, want %q", node, got, want)
		}
	}
}

// describe returns what offers say, in order of their names.
func describe(all []liqo.Offer) []string {
	texts := make([]string, len(all))
	for i := range all {
		o := &all[i]
		texts[i] = fmt.Sprintf("%s/%s with=%q by=%q to=%q peer=%t node=%q cpu=%s accepted=%t ending=%t deleted=%t wrong=%v",
			o.Tenant, o.Name, o.With, o.By(), o.To(), o.FromPeer, o.Node, o.Resources.Cpu(), o.Accepted, o.Ending, o.Deleted, o.Wrong)
	}
	slices.Sort(texts)
	return texts
}

func keyOf(o *liqo.Offer) client.ObjectKey {
	return client.ObjectKey{Namespace: o.Tenant, Name: o.Name}
}

// checkOffers compares whose each offer is with who has put it where.
func (w *World) checkOffers(t *testing.T) {
	t.Helper()
	type offer struct {
		With, By, To                       cluster.ID
		FromPeer, Wrong, Accepted, Deleted bool
	}
	r := w.reader(t)
	all := must[[]liqo.Offer](t)(r.Offers(t.Context()))
	if made := len(w.ofKind(w.Line.Kinds().Offer)); len(all) != made {
		t.Errorf("Offers() has %d offers, want %d", len(all), made)
	}
	provider, liar := w.Provider.ID, w.Liar.ID
	for name, tc := range map[string]struct {
		reason string
		at     client.ObjectKey
		want   offer
	}{
		"Bought":  {"The provider offers it.", w.Offers.Bought, offer{With: provider, By: provider, FromPeer: true, Accepted: true}},
		"Pending": {"It is not in force yet.", w.Offers.Pending, offer{With: provider, By: provider, FromPeer: true}},
		"Leaving": {"It is in force no more.", w.Offers.Leaving, offer{With: provider, By: provider, FromPeer: true, Deleted: true}},
		"Sold":    {"This cluster offers it.", w.Offers.Sold, offer{With: w.Consumer.ID, To: w.Consumer.ID, Accepted: true}},
		"Forged":  {"It is not where the provider writes.", w.Offers.Forged, offer{With: liar, FromPeer: true, Wrong: true, Accepted: true}},
		"Claimed": {"It is not where the consumer's are.", w.Offers.Claimed, offer{With: liar, Wrong: true, Accepted: true}},
		"Stray":   {"It is where no peer writes.", w.Offers.Stray, offer{FromPeer: true, Wrong: true, Accepted: true}},
	} {
		at := slices.IndexFunc(all, func(o liqo.Offer) bool { return keyOf(&o) == tc.at })
		if at < 0 {
			t.Errorf("%s: Offers() does not have it", name)
			continue
		}
		o := &all[at]
		got := offer{o.With, o.By(), o.To(), o.FromPeer, o.Wrong != nil, o.Accepted, o.Deleted}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s\nOffers(): -want +got\n%s", name, tc.reason, diff)
		}
		if o.Deleted && !o.Ending {
			t.Errorf("%s: it is being deleted, which is an end", name)
		}
		if tc.at == w.Offers.Bought && (o.Node != w.Node || o.Resources.Cpu().String() != Cores) {
			t.Errorf("%s: node %q with %s cores, want %q with %s", name, o.Node, o.Resources.Cpu(), w.Node, Cores)
		}
	}
}

// checkOffersWith compares the offers that are found by a peer with all.
func (w *World) checkOffersWith(t *testing.T) {
	t.Helper()
	r := w.reader(t)
	all := must[[]liqo.Offer](t)(r.Offers(t.Context()))
	for _, of := range w.peers() {
		peer := must[*liqo.Peer](t)(r.Peer(t.Context(), of.ID))
		want := slices.DeleteFunc(slices.Clone(all), func(o liqo.Offer) bool { return o.With != of.ID })
		got := must[[]liqo.Offer](t)(r.OffersWith(t.Context(), peer))
		if diff := cmp.Diff(describe(want), describe(got)); diff != "" {
			t.Errorf("OffersWith(%s): -want +got\n%s", of.Identity, diff)
		}
	}
}

// checkOffersOfNode compares the offers that are found by a node with all, each once, and looks for whose the Node is.
func (w *World) checkOffersOfNode(t *testing.T) {
	t.Helper()
	r := w.reader(t)
	all := must[[]liqo.Offer](t)(r.Offers(t.Context()))
	nodes := map[string]bool{"no-such": true, w.Node: true}
	for i := range all {
		nodes[all[i].Node] = all[i].Node != ""
	}
	for node, is := range nodes {
		if !is {
			continue
		}
		want := slices.DeleteFunc(slices.Clone(all), func(o liqo.Offer) bool { return !o.FromPeer || o.Node != node })
		got := must[[]liqo.Offer](t)(r.OffersOfNode(t.Context(), node))
		if diff := cmp.Diff(describe(want), describe(got)); diff != "" {
			t.Errorf("OffersOfNode(%q): -want +got\n%s", node, diff)
		}
	}
	owners := map[client.ObjectKey]cluster.ID{}
	for _, o := range must[[]liqo.Offer](t)(r.OffersOfNode(t.Context(), w.Node)) {
		owners[keyOf(&o)] = o.By()
	}
	want := map[client.ObjectKey]cluster.ID{w.Offers.Bought: w.Provider.ID, w.Offers.Forged: "", w.Offers.Stray: ""}
	if diff := cmp.Diff(want, owners); diff != "" {
		t.Errorf("whose the node %q is, by offer: -want +got\n%s", w.Node, diff)
	}
}

// checkValuesOf compares what single objects say with what is read, and holds that objects that say nothing say nothing here too.
func (w *World) checkValuesOf(t *testing.T) {
	t.Helper()
	r, kinds := w.reader(t), w.Line.Kinds()
	called := map[string]cluster.Identity{}
	for _, record := range w.ofKind(kinds.Record) {
		called[record.GetName()] = w.Line.IdentityOf(record)
	}
	want := map[string]cluster.Identity{}
	for _, p := range w.peers() {
		want[p.Record] = p.Identity
	}
	if diff := cmp.Diff(want, called); diff != "" {
		t.Errorf("IdentityOf(): -want +got\n%s", diff)
	}
	// Of whom an offer is, only its namespace says, and Liqo may name its node after that.
	var single []liqo.Offer
	for _, object := range w.ofKind(kinds.Offer) {
		o := w.Line.OfferOf(object)
		if o.With != "" || o.Wrong != nil {
			t.Errorf("OfferOf(%s) is with %q, wrong: %v", object.GetName(), o.With, o.Wrong)
		}
		single = append(single, o)
	}
	all := must[[]liqo.Offer](t)(r.Offers(t.Context()))
	for _, offers := range [][]liqo.Offer{all, single} {
		for i := range offers {
			offers[i].With, offers[i].Wrong, offers[i].Node = "", nil, ""
		}
	}
	if diff := cmp.Diff(describe(all), describe(single)); diff != "" {
		t.Errorf("OfferOf() is not what Offers() has: -want +got\n%s", diff)
	}
	for _, network := range w.ofKind(kinds.Network) {
		if got := w.Line.SeenOf(network); !slices.Equal(got, []netip.Prefix{netip.MustParsePrefix(Seen)}) {
			t.Errorf("SeenOf(%s) = %v", client.ObjectKeyFromObject(network), got)
		}
	}
	if got := w.Line.IdentityOf(kinds.Record); got != (cluster.Identity{}) {
		t.Errorf("IdentityOf() of an empty record = %v", got)
	}
	if got := w.Line.OfferOf(kinds.Offer); got.Accepted || got.Node != "" {
		t.Errorf("OfferOf() of an empty offer = %v", got)
	}
	if got := w.Line.SeenOf(kinds.Network); len(got) > 0 {
		t.Errorf("SeenOf() of an empty network = %v", got)
	}
}

// checkLinks compares the networks with what Liqo has measured. That in the tenant namespace of the Liar says that it leads to the
// Provider: who asks for those of the Provider does not get it.
func (w *World) checkLinks(t *testing.T) {
	t.Helper()
	type link struct {
		Peer      cluster.ID
		Connected bool
		RoundTrip time.Duration
		Seen      string
	}
	r := w.reader(t)
	linksOf := func(all []liqo.Link) map[string][]link {
		found := map[string][]link{}
		for _, l := range all {
			if measured := l.RoundTrip > 0; measured != l.Measured.Equal(Measured()) {
				t.Errorf("the network in %s has the round-trip time %s, measured at %s", l.Tenant, l.RoundTrip, l.Measured)
			}
			found[l.Tenant] = append(found[l.Tenant], link{l.Peer, l.Connected, l.RoundTrip, strings.Trim(fmt.Sprint(l.Seen), "[]")})
		}
		return found
	}
	all := linksOf(must[[]liqo.Link](t)(r.Links(t.Context())))
	want := map[string][]link{
		w.Provider.Tenant: {{w.Provider.ID, true, RoundTrip, Seen}},
		w.Consumer.Tenant: {{w.Consumer.ID, false, 0, Seen}},
		w.Liar.Tenant:     {{w.Provider.ID, true, RoundTrip, Seen}},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("Links(): -want +got\n%s", diff)
	}
	for _, of := range w.peers() {
		peer := must[*liqo.Peer](t)(r.Peer(t.Context(), of.ID))
		want := map[string][]link{}
		if of.Tenant != "" {
			want[of.Tenant] = all[of.Tenant]
		}
		if diff := cmp.Diff(want, linksOf(must[[]liqo.Link](t)(r.LinksWith(t.Context(), peer)))); diff != "" {
			t.Errorf("LinksWith(%s): -want +got\n%s", of.Identity, diff)
		}
	}
}

// written returns both views of each peer as they are answered, by its record.
func written(t *testing.T, r line.Reader) (whole, provider map[string]string) {
	t.Helper()
	whole, provider = map[string]string{}, map[string]string{}
	for _, e := range must[[]line.Entry](t)(r.Catalog(t.Context())) {
		whole[e.Peer.Record] = asJSON(t, e.Whole)
		provider[e.Peer.Record] = asJSON(t, e.Provider)
	}
	return whole, provider
}

// checkCatalog checks that all peers are in it, in order, and nothing that is nobody's business.
func (w *World) checkCatalog(t *testing.T) {
	t.Helper()
	r := w.reader(t)
	var want, got []string
	for _, p := range w.peers() {
		want = append(want, p.Record)
	}
	slices.Sort(want)
	for _, e := range must[[]line.Entry](t)(r.Catalog(t.Context())) {
		got = append(got, e.Peer.Record)
		if p := must[*liqo.Peer](t)(r.Peer(t.Context(), e.Peer.ID)); p == nil || p.Identity != e.Peer.Identity || p.Record != e.Peer.Record ||
			p.Outgoing.Exists != e.Peer.Outgoing.Exists {
			t.Errorf("the peer of the entry %s is %+v, want %+v", e.Peer.Record, e.Peer, p)
		}
		if e.Provider == nil && e.Peer.Outgoing.Exists {
			t.Errorf("strangers do not see that %s provides", e.Peer.ID)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Catalog(): -want +got\n%s", diff)
	}
	wholes, providers := written(t, r)
	for _, p := range w.peers() {
		for _, view := range []string{wholes[p.Record], providers[p.Record]} {
			if view != "null" && !strings.Contains(view, string(p.ID)) {
				t.Errorf("the entry %s does not say who it is: %s", p.Record, view)
			}
			if strings.Contains(view, Secret) || p.Tenant != "" && strings.Contains(view, p.Tenant) {
				t.Errorf("the entry %s shows what nobody may see: %s", p.Record, view)
			}
		}
	}
}

// checkStrangersView checks that a peer that consumes besides looks to strangers as if it did not.
func (w *World) checkStrangersView(t *testing.T) {
	t.Helper()
	both := w.readerOf(t, w.replaced(w.AlsoConsumes...))
	peer := must[*liqo.Peer](t)(both.Peer(t.Context(), w.Provider.ID))
	if peer == nil || !peer.Incoming.Established || !peer.Outgoing.Established {
		t.Fatalf("the provider that also consumes is %v", peer)
	}
	wholeBefore, before := written(t, w.reader(t))
	wholeAfter, after := written(t, both)
	if diff := cmp.Diff(before[w.Provider.Record], after[w.Provider.Record]); diff != "" {
		t.Errorf("strangers see that the provider consumes: -not +does\n%s", diff)
	}
	if wholeBefore[w.Provider.Record] == wholeAfter[w.Provider.Record] {
		t.Errorf("who may see all does not see that the provider consumes: %s", wholeAfter[w.Provider.Record])
	}
}

// checkWishes compares what is asked for with what the Consumer has written.
func (w *World) checkWishes(t *testing.T) {
	t.Helper()
	kinds, own := w.Line.Kinds(), w.ownKind(t)
	for _, kind := range []schema.GroupVersionKind{own(kinds.Wish), own(w.Wished)} {
		if kind != kinds.Shadow.GroupVersionKind() {
			t.Errorf("%s is wished for, and %s is its metadata", kind, kinds.Shadow.GroupVersionKind())
		}
	}
	if got := w.Line.WishOf(w.Wished); got.Pod.PriorityClassName != w.Wished.GetName() || !got.Ended {
		t.Errorf("WishOf() = %+v, want the pod %s, which has ended", got, w.Wished.GetName())
	}
	if got := w.Line.WishOf(kinds.Wish); got.Ended || !reflect.DeepEqual(*got.Pod, corev1.PodSpec{}) {
		t.Errorf("WishOf() of an empty wish = %+v", got)
	}
	changed := copyOf(w.Wished)
	w.Line.WishOf(changed).Pod.PriorityClassName = "changed"
	if got := w.Line.WishOf(changed).Pod.PriorityClassName; got != "changed" || w.Line.WishOf(w.Wished).Pod.PriorityClassName == got {
		t.Errorf("a pod that was changed is %q", got)
	}
	if empty := line.Empty(kinds.Wish); empty == kinds.Wish || !reflect.DeepEqual(empty, kinds.Wish) {
		t.Errorf("Empty() = %v", empty)
	}
	// A client lists them as they are listed here.
	c := w.newClient(t, []client.Object{w.Wished}, interceptor.Funcs{})
	var listed []string
	if err := errors.Join(c.List(t.Context(), kinds.Wishes), line.Each(kinds.Wishes, func(o client.Object) {
		listed = append(listed, w.Line.WishOf(o).Pod.PriorityClassName)
	})); err != nil || !slices.Equal(listed, []string{w.Wished.GetName()}) {
		t.Errorf("what is wished for is listed as %q, %v", listed, err)
	}
}

// ownKind returns what tells the kinds of objects.
func (w *World) ownKind(t *testing.T) func(client.Object) schema.GroupVersionKind {
	t.Helper()
	return func(o client.Object) schema.GroupVersionKind {
		t.Helper()
		return must[schema.GroupVersionKind](t)(apiutil.GVKForObject(o, w.scheme))
	}
}

// checkOwnNetworks checks which networks are this cluster's, also of what a cache keeps.
func (w *World) checkOwnNetworks(t *testing.T) {
	t.Helper()
	kinds, kept := w.Line.Kinds(), make([]client.Object, len(w.Networks))
	for i := range w.Networks {
		kept[i] = copyOf(w.Networks[i])
		for kind, drop := range w.Line.Dropped(&liqo.Compactor{}) {
			if sameKind(kind, kept[i]) {
				drop(kept[i])
			}
		}
	}
	want := []netip.Prefix{netip.MustParsePrefix(OwnNetwork)}
	for _, objects := range [][]client.Object{w.Networks, kept} {
		got := must[[]netip.Prefix](t)(line.OwnNetworks(t.Context(), w.newClient(t, objects, interceptor.Funcs{}), w.Line))
		if !slices.Equal(got, want) {
			t.Errorf("OwnNetworks() = %v, want %v", got, want)
		}
	}
	if got := w.Line.OwnNetworksOf(kinds.OwnNetwork); len(got) > 0 {
		t.Errorf("OwnNetworksOf() of nothing = %v", got)
	}
	boom := errors.New("boom")
	failing := w.newClient(t, nil, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return boom },
	})
	if _, err := line.OwnNetworks(t.Context(), failing, w.Line); !errors.Is(err, boom) {
		t.Errorf("OwnNetworks() = %v, want what failed", err)
	}
}

// checkOffloading compares how namespaces are offloaded with what the broker has written.
func (w *World) checkOffloading(t *testing.T) {
	t.Helper()
	c := w.newClient(t, w.Objects, interceptor.Funcs{})
	got := must[*liqo.Offloading](t)(line.ReadOffloading(t.Context(), c, w.Line, w.Line.Kinds().Offloading, NobodysNamespace))
	if got == nil || got.Object == nil || client.ObjectKeyFromObject(got.Object) != client.ObjectKeyFromObject(w.Offloaded) {
		t.Fatalf("Offloading() = %+v, want that of %s", got, NobodysNamespace)
	}
	both := []cluster.ID{w.Liar.ID, w.Provider.ID}
	slices.Sort(both)
	want := &liqo.Offloading{
		Namespace: NobodysNamespace, Object: got.Object, Managed: true, Leaves: true, Remote: true, Selected: both,
		Placing: []cluster.ID{w.Provider.ID}, RemoteName: RemoteName, Seen: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Offloading(): -want +got\n%s", diff)
	}
	single := w.Line.OffloadingOf(w.Offloaded)
	single.Object = got.Object
	if diff := cmp.Diff(want, &single); diff != "" {
		t.Errorf("OffloadingOf(): -want +got\n%s", diff)
	}
	stays := must[*liqo.Offloading](t)(line.ReadOffloading(t.Context(), c, w.Line, w.Line.Kinds().Offloading, liqo.DefaultNamespace))
	if stays != nil {
		t.Errorf("Offloading() of a namespace that stays here = %+v", stays)
	}
	for id, want := range map[cluster.ID][]string{
		w.Provider.ID: {NobodysNamespace}, w.Liar.ID: {NobodysNamespace}, w.Consumer.ID: nil, "": nil,
	} {
		if got := must[[]string](t)(line.OffloadedTo(t.Context(), c, w.Line, id)); !slices.Equal(got, want) {
			t.Errorf("OffloadedTo(%q) = %q, want %q", id, got, want)
		}
	}
	boom := errors.New("boom")
	failing := w.newClient(t, w.Objects, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return boom
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return boom },
	})
	if _, err := line.ReadOffloading(t.Context(), failing, w.Line, w.Line.Kinds().Offloading, NobodysNamespace); !errors.Is(err, boom) {
		t.Errorf("ReadOffloading() = %v, want what failed", err)
	}
	if _, err := line.OffloadedTo(t.Context(), failing, w.Line, w.Provider.ID); !errors.Is(err, boom) {
		t.Errorf("OffloadedTo() = %v, want what failed", err)
	}
	// What Liqo has not seen, or is about to go.
	changed, leaving := copyOf(w.Offloaded), copyOf(w.Offloaded)
	changed.SetGeneration(changed.GetGeneration() + 1)
	leaving.SetDeletionTimestamp(&metav1.Time{Time: Measured()})
	open := &corev1.Namespace{}
	open.Labels = map[string]string{"liqo.io/scheduling-enabled": "true"}
	for reason, tc := range map[string]struct {
		object client.Object
		in     *corev1.Namespace
		want   bool
	}{
		"Liqo has seen it, and opened the namespace.": {w.Offloaded, open, true},
		"The namespace is closed.":                    {w.Offloaded, &corev1.Namespace{}, false},
		"Liqo has not seen what it says now.":         {changed, open, false}, "It is about to go.": {leaving, open, false},
	} {
		if o := w.Line.OffloadingOf(tc.object); o.InForce(tc.in) != tc.want {
			t.Errorf("%s InForce() = %t", reason, !tc.want)
		}
	}
}

// checkNewOffloading checks what the broker writes: it reads the same, and Liqo can make legal names of it.
func (w *World) checkNewOffloading(t *testing.T) {
	t.Helper()
	made := w.Line.NewOffloading("web", liqo.MappingDefault, w.Own)
	two, one := []cluster.ID{"a", "b"}, []cluster.ID{"b"}
	w.Line.Select(made, two, two)
	if len(made.GetAnnotations()) > 0 {
		t.Errorf("there is nothing to note, and the annotations are %v", made.GetAnnotations())
	}
	want := liqo.Offloading{Namespace: "web", Object: made, Managed: true, Leaves: true, Remote: true, Selected: two, Placing: two, Seen: true}
	for _, placing := range [][]cluster.ID{two, one, nil, two} {
		w.Line.Select(made, two, placing)
		want.Placing = placing
		if diff := cmp.Diff(want, w.Line.OffloadingOf(made), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("placing on %v: -want +got\n%s", placing, diff)
		}
	}
	w.Line.Select(made, one, one)
	if got := w.Line.OffloadingOf(made); !slices.Equal(got.Selected, one) || !slices.Equal(got.Placing, one) {
		t.Errorf("selected are %v, placing on %v, want %v", got.Selected, got.Placing, one)
	}
	if made.GetName() != liqo.OffloadingName {
		t.Errorf("the offloading is called %q: Liqo admits no other than %q", made.GetName(), liqo.OffloadingName)
	}
	for reason, tc := range map[string]struct {
		length    int
		preferred liqo.Mapping
		want      liqo.Mapping
	}{
		"What fits gets a name of its own.":         {20, liqo.MappingDefault, liqo.MappingDefault},
		"What does not fit keeps its name.":         {63, liqo.MappingDefault, liqo.MappingSame},
		"What was asked for is kept, if that fits.": {20, liqo.MappingSame, liqo.MappingSame},
	} {
		made := w.Line.NewOffloading(strings.Repeat("n", tc.length), tc.preferred, w.Own)
		if text := asJSON(t, made); !strings.Contains(text, fmt.Sprintf("%q:%q", "namespaceMappingStrategy", tc.want)) {
			t.Errorf("%s Want %s in %s", reason, tc.want, text)
		}
	}
}

// checkNewOffloadingTo checks what people write: pods may run here and on that one cluster, and no broker takes it for its own.
func (w *World) checkNewOffloadingTo(t *testing.T) {
	t.Helper()
	made, to := w.Line.NewOffloadingTo("web", w.Own, "a"), []cluster.ID{"a"}
	want := liqo.Offloading{Namespace: "web", Object: made, Leaves: true, Selected: to, Placing: to, Seen: true}
	if diff := cmp.Diff(want, w.Line.OffloadingOf(made)); diff != "" || made.GetName() != liqo.OffloadingName {
		t.Errorf("NewOffloadingTo() is called %q: -want +got\n%s", made.GetName(), diff)
	}
	if text := asJSON(t, made); !strings.Contains(text, `"namespaceMappingStrategy":"DefaultName"`) {
		t.Errorf("the namespace gets no name of its own: %s", text)
	}
}

// checkReceptions compares what became of the namespace on each cluster with what Liqo has written.
func (w *World) checkReceptions(t *testing.T) {
	t.Helper()
	for name, tc := range map[string]struct {
		reason string
		at     Peer
		want   liqo.Reception
	}{
		"Provider": {"It has the namespace.", w.Provider, liqo.Reception{Present: true}},
		"Liar":     {"It cannot make it.", w.Liar, liqo.Reception{Refused: true, Since: Measured()}},
		"Consumer": {"It has the namespace still, and is to have it no more.", w.Consumer, liqo.Reception{}},
		"Stranger": {"Nothing is known of it.", w.Stranger, liqo.Reception{}},
	} {
		small := copyOf(w.Offloaded)
		for kind, drop := range w.Line.Dropped(&liqo.Compactor{}) {
			if sameKind(kind, small) {
				drop(small)
			}
		}
		for _, o := range []client.Object{w.Offloaded, small} {
			got := w.Line.ReceptionOf(o, tc.at.Identity)
			if got.Since.Equal(tc.want.Since) {
				got.Since = tc.want.Since
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s\nReceptionOf(): -want +got\n%s", name, tc.reason, diff)
			}
		}
	}
}

// checkTwins checks whose twin namespaces are, which is what the label of Liqo says.
func (w *World) checkTwins(t *testing.T) {
	t.Helper()
	twin := &corev1.Namespace{}
	twin.Name, twin.Labels = "shop", map[string]string{liqo.LabelRemoteClusterID: string(w.Consumer.ID)}
	twin.Annotations = map[string]string{"liqo.io/managed-by-namespace-map": "tenant/map"}
	for _, p := range append(w.peers(), Peer{Identity: w.Own}) {
		if got := w.Line.Passed(twin, p.Identity); got != (p.ID == w.Consumer.ID) {
			t.Errorf("Passed(%s) = %t: the namespace came from %s", p.Identity, got, w.Consumer.Identity)
		}
		if w.Line.TwinOfLiqo(twin, p.Identity) {
			t.Errorf("TwinOfLiqo(%s): it is any namespace", p.Identity)
		}
	}
	pod := &corev1.Pod{}
	pod.Labels, pod.Annotations = map[string]string{"app": "web"}, map[string]string{"example.com/note": "kept"}
	w.Line.Forward(pod)
	if pod.Labels["app"] != "web" || pod.Annotations["example.com/note"] != "kept" || pod.Labels["liqo.io/shadowPod"] != "true" {
		t.Errorf("Forward() makes of a pod %+v: it is to be one that runs on another cluster, and otherwise as it was", pod.ObjectMeta)
	}
}

// account returns who is a peer, and whose offers are for which nodes.
func account(t *testing.T, r line.Reader) []string {
	t.Helper()
	var all []string
	for _, p := range must[[]liqo.Peer](t)(r.Peers(t.Context())) {
		all = append(all, fmt.Sprintf("%s in %q", p.Identity, p.Tenant))
	}
	for _, o := range must[[]liqo.Offer](t)(r.Offers(t.Context())) {
		all = append(all, fmt.Sprintf("%s/%s by=%q to=%q node=%q deleted=%t", o.Tenant, o.Name, o.By(), o.To(), o.Node, o.Deleted))
	}
	slices.Sort(all)
	return all
}

// checkAccountChanged checks that what changes the account is told to change it, and what says nothing is not.
func (w *World) checkAccountChanged(t *testing.T) {
	t.Helper()
	deleted := func(o client.Object) Change {
		gone := copyOf(o)
		gone.SetDeletionTimestamp(&metav1.Time{Time: Measured()})
		gone.SetFinalizers([]string{"brokering.liqo.io/test"})
		return Change{o, gone}
	}
	var same, deletions []Change
	kinds := w.Line.Kinds()
	for _, kind := range append([]client.Object{kinds.Record, kinds.Offer, &corev1.Namespace{}}, kinds.Peering...) {
		for _, o := range w.ofKind(kind) {
			same = append(same, Change{o, copyOf(o)})
			if sameKind(o, kinds.Offer) && o.GetDeletionTimestamp().IsZero() {
				deletions = append(deletions, deleted(o))
			}
		}
	}
	now := account(t, w.reader(t))
	for name, tc := range map[string]struct {
		reason  string
		changes []Change
		want    bool
	}{
		"Same":      {"Nothing has changed.", same, false},
		"Silent":    {"What has changed is of no interest.", w.Changes.Silent, false},
		"Node":      {"An offer is for another node.", w.Changes.Node, true},
		"Tenant":    {"A peer has another tenant namespace.", w.Changes.Tenant, true},
		"Claim":     {"An offer names another cluster, so that it counts no more.", w.Changes.Claim, true},
		"Deletions": {"An offer is about to go.", deletions, true},
		"Unknown":   {"Nobody knows what it says.", []Change{{&corev1.Service{}, &corev1.Service{}}}, true},
	} {
		if len(tc.changes) == 0 {
			t.Errorf("%s: the world has no such change", name)
		}
		for i, c := range tc.changes {
			if got := w.Line.AccountChanged(c.Before, c.After); got != tc.want {
				t.Errorf("%s (%d): %s\nAccountChanged() = %t for %T %s", name, i, tc.reason, got, c.After, c.After.GetName())
			}
			if name == "Unknown" || name == "Tenant" && !sameKind(c.After, &corev1.Namespace{}) {
				continue // Nothing of it is read, or what it says counts besides what another object says.
			}
			if diff := cmp.Diff(now, account(t, w.readerOf(t, w.replaced(c.After)))); (diff != "") != tc.want {
				t.Errorf("%s (%d): %s\nthe account: -before +after\n%s", name, i, tc.reason, diff)
			}
		}
	}
}

// checkDropped checks that nothing is dropped that is read.
func (w *World) checkDropped(t *testing.T) {
	t.Helper()
	small := slices.Clone(w.Objects)
	for i := range small {
		small[i] = copyOf(small[i])
	}
	for kind, drop := range w.Line.Dropped(&liqo.Compactor{}) {
		if _, err := apiutil.GVKForObject(kind, w.scheme); err != nil {
			t.Errorf("%T is not in the scheme: %v", kind, err)
		}
		for _, o := range small {
			if sameKind(o, kind) {
				drop(o)
			}
		}
	}
	before, after := w.reader(t), w.readerOf(t, small)
	was, is := must[[]liqo.Peer](t)(before.Peers(t.Context())), must[[]liqo.Peer](t)(after.Peers(t.Context()))
	if diff := cmp.Diff(was, is); diff != "" {
		t.Errorf("Peers() of what is kept: -all +kept\n%s", diff)
	}
	all, kept := must[[]liqo.Offer](t)(before.Offers(t.Context())), must[[]liqo.Offer](t)(after.Offers(t.Context()))
	if diff := cmp.Diff(describe(all), describe(kept)); diff != "" {
		t.Errorf("Offers() of what is kept: -all +kept\n%s", diff)
	}
}

// questions are all that a reader is asked of the Provider and of everything.
func (w *World) questions(provider *liqo.Peer) map[string]func(context.Context, line.Reader) (any, error) {
	type ask = func(context.Context, line.Reader) (any, error)
	return map[string]ask{
		"Peers":        func(ctx context.Context, r line.Reader) (any, error) { return r.Peers(ctx) },
		"PeersCalled":  func(ctx context.Context, r line.Reader) (any, error) { return r.PeersCalled(ctx, provider.Name) },
		"Peer":         func(ctx context.Context, r line.Reader) (any, error) { return r.Peer(ctx, provider.ID) },
		"Namesakes":    func(ctx context.Context, r line.Reader) (any, error) { return r.Namesakes(ctx, provider.Identity) },
		"Tenant":       func(ctx context.Context, r line.Reader) (any, error) { return r.Tenant(ctx, provider.Tenant) },
		"Offers":       func(ctx context.Context, r line.Reader) (any, error) { return r.Offers(ctx) },
		"OffersWith":   func(ctx context.Context, r line.Reader) (any, error) { return r.OffersWith(ctx, provider) },
		"OffersOfNode": func(ctx context.Context, r line.Reader) (any, error) { return r.OffersOfNode(ctx, w.Node) },
		"UsualOwners":  func(ctx context.Context, r line.Reader) (any, error) { return r.UsualOwners(ctx, w.Node) },
		"Links":        func(ctx context.Context, r line.Reader) (any, error) { return r.Links(ctx) },
		"LinksWith":    func(ctx context.Context, r line.Reader) (any, error) { return r.LinksWith(ctx, provider) },
		"Catalog":      func(ctx context.Context, r line.Reader) (any, error) { return r.Catalog(ctx) },
		"Ways":         func(ctx context.Context, r line.Reader) (any, error) { return r.Ways(ctx) },
	}
}

// checkFailures lets each read of each answer fail, one at a time: what could not be read is not said not to be there.
func (w *World) checkFailures(t *testing.T) {
	t.Helper()
	boom := errors.New("boom")
	reads, failing := 0, 0
	fails := func() bool { reads++; return reads == failing }
	c := w.newClient(t, w.Objects, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if fails() {
				return boom
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if fails() {
				return boom
			}
			return c.List(ctx, list, opts...)
		},
	})
	r := w.Line.Reader(c, w.Own.ID)
	for name, ask := range w.questions(must[*liqo.Peer](t)(r.Peer(t.Context(), w.Provider.ID))) {
		// Without a failure, to count the reads.
		reads, failing = 0, 0
		if _, err := ask(t.Context(), r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		all := reads
		for failing = 1; failing <= all; failing++ {
			reads = 0
			if _, err := ask(t.Context(), r); !errors.Is(err, boom) {
				t.Errorf("%s: read %d of %d fails, and the error is %v", name, failing, all, err)
			}
		}
	}
}
