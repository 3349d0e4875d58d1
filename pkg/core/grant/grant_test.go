// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package grant_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
)

// list returns quantities of resources, each written as name=quantity.
func list(all ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for _, text := range all {
		name, quantity, _ := strings.Cut(text, "=")
		l[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return l
}

// nodeOf returns what the broker calls the node of a provider.
func nodeOf(provider string) string {
	return nodename.Name("broker", cluster.Identity{ID: cluster.ID(provider), Name: provider})
}

// request returns one that was made at a minute, has its certificate, and asks for nothing in particular.
func request(name string, minute int, by ...func(*grant.Request)) grant.Request {
	r := grant.Request{Name: name, Made: time.Unix(int64(minute)*60, 0), Authenticated: true}
	for _, change := range by {
		change(&r)
	}
	return r
}

func wants(all ...string) func(*grant.Request) {
	return func(r *grant.Request) { r.Wanted = list(all...) }
}

func accepted(all ...string) func(*grant.Request) {
	return func(r *grant.Request) { r.Verdict, r.Granted = grant.Accepted, list(all...) }
}

func denied(all ...string) func(*grant.Request) {
	return func(r *grant.Request) { r.Verdict, r.Granted = grant.Denied, list(all...) }
}

func waits(r *grant.Request)  { r.Authenticated = false }
func ending(r *grant.Request) { r.Ending = true }
func frozen(r *grant.Request) { r.Frozen = true }

func TestDecide(t *testing.T) {
	much, zero := []string{"cpu=8", "memory=8Gi", "pods=80"}, []string{"cpu=0", "memory=0", "pods=0"}
	on := func(node, provider string, all ...string) capacity.NodeOffer {
		return capacity.NodeOffer{Node: node, Provider: cluster.ID(provider), Offered: list(all...)}
	}
	whole := []capacity.NodeOffer{on("", "", much...)}
	a, b := nodeOf("a"), nodeOf("b")
	apart := []capacity.NodeOffer{on(a, "a", much...), on(b, "b", "cpu=1", "memory=1Gi", "pods=10")}
	type answer struct {
		verdict  grant.Verdict
		granted  []string
		provider cluster.ID
		unknown  bool
		reason   grant.Reason
		says     string
	}
	granted := func(all ...string) answer {
		return answer{verdict: grant.Accepted, granted: all, reason: grant.Granted, says: "as far as it asks"}
	}
	of := func(provider cluster.ID, all ...string) answer {
		a := granted(all...)
		a.provider = provider
		return a
	}
	no := func(reason grant.Reason, says string, zeros ...string) answer {
		return answer{verdict: grant.Denied, granted: zeros, reason: reason, says: says}
	}
	nothing := func(reason grant.Reason, says string, all ...string) answer {
		return answer{verdict: grant.Accepted, granted: all, reason: reason, says: says}
	}
	open := answer{}
	cases := map[string]struct {
		reason      string
		requests    []grant.Request
		offers      []capacity.NodeOffer
		perProvider bool
		want        []answer
	}{
		"Whole": {
			reason: "Who asks for nothing in particular gets all.", requests: []grant.Request{request("x", 1)}, offers: whole,
			want: []answer{granted(much...)},
		},
		"Bounded": {
			reason: "What is named is bounded, and what is not is granted in full.", offers: whole,
			requests: []grant.Request{request("x", 1, wants("cpu=2", "pods=1k", "nvidia.com/gpu=1"))},
			want:     []answer{granted("cpu=2", "memory=8Gi", "pods=80")},
		},
		"Withdrawn": {
			reason: "What there was and is no more is there as zero.", offers: whole,
			requests: []grant.Request{request("x", 1, wants("nvidia.com/gpu=1"), accepted("cpu=9", "nvidia.com/gpu=1", "storage=0"))},
			want:     []answer{granted("cpu=8", "memory=8Gi", "pods=80", "nvidia.com/gpu=0", "storage=0")},
		},
		"Oldest": {
			reason: "The oldest has the node, in whatever order they are listed.", offers: whole,
			requests: []grant.Request{request("a", 2), request("z", 1), request("b", 2)},
			want: []answer{
				no(grant.OneNode, "that of resource slice z: delete one"), granted(much...), no(grant.OneNode, "resource slice z"),
			},
		},
		"SameTime": {
			reason: "The name decides.", offers: whole, requests: []grant.Request{request("b", 1), request("a", 1)},
			want: []answer{no(grant.OneNode, "resource slice a"), granted(much...)},
		},
		"First": {
			reason: "Who has the node keeps it, whatever comes.", offers: whole,
			requests: []grant.Request{request("a", 1), request("b", 2, accepted(much...))},
			want:     []answer{no(grant.OneNode, "resource slice b"), granted(much...)},
		},
		"Second": {
			reason: "One that was accepted by somebody else is emptied: a denial would leave it as it is.", offers: whole,
			requests: []grant.Request{request("a", 1, accepted("cpu=1")), request("b", 2, accepted("cpu=1k"))},
			want:     []answer{granted(much...), nothing(grant.OneNode, "resource slice a", "cpu=0")},
		},
		"Waits": {
			reason: "Who has no certificate waits, and holds nobody up.", offers: whole,
			requests: []grant.Request{request("a", 1, waits), request("b", 2)}, want: []answer{open, granted(much...)},
		},
		"LostCertificate": {
			reason: "What was decided before is kept up to date.", offers: whole,
			requests: []grant.Request{request("a", 1, waits, accepted("cpu=1"))}, want: []answer{granted(much...)},
		},
		"Ending": {
			reason: "Who has the node and ends keeps it until it is gone.", offers: whole,
			requests: []grant.Request{request("a", 1, ending, accepted(much...)), request("b", 2)},
			want:     []answer{granted(much...), no(grant.OneNode, "resource slice a")},
		},
		"EndingLess": {
			reason: "It may wait to be gone for as long as it likes: it gets less if there is less, and nothing more.", offers: whole,
			requests: []grant.Request{request("a", 1, ending, accepted("cpu=1", "memory=9Gi", "pods=10"))},
			want:     []answer{granted("cpu=1", "memory=8Gi", "pods=10")},
		},
		"EndingEmpty": {
			reason: "It says why there is nothing.", offers: whole, requests: []grant.Request{request("a", 1, ending, accepted(zero...))},
			want: []answer{nothing(grant.NothingOffered, "being deleted", zero...)},
		},
		"EndingUnknown": {
			reason: "Nothing is offered any more on a node that goes.", perProvider: true, offers: apart,
			requests: []grant.Request{request(nodeOf("c"), 1, ending, accepted("cpu=4"))},
			want: []answer{{
				verdict: grant.Accepted, granted: []string{"cpu=0"}, reason: grant.NothingOffered, says: "being deleted", unknown: true,
			}},
		},
		"EndingOfProvider": {
			reason: "Nor does that of a provider get more.", perProvider: true, offers: apart,
			requests: []grant.Request{request(b, 1, ending, accepted("cpu=4", "memory=1Gi", "pods=5"))},
			want:     []answer{of("b", "cpu=1", "memory=1Gi", "pods=5")},
		},
		"EndingDenied": {
			reason: "What has nothing is not asked for any more.", offers: whole,
			requests: []grant.Request{request("a", 1, ending, denied())}, want: []answer{open},
		},
		"EndingWithout": {
			reason: "Who has none does not.", offers: whole, requests: []grant.Request{request("a", 1, ending), request("b", 2)},
			want: []answer{open, granted(much...)},
		},
		"Frozen": {
			reason: "It gets nothing more, and less if there is less.", offers: whole,
			requests: []grant.Request{request("a", 1, frozen, accepted("cpu=1", "memory=9Gi", "pods=10"))},
			want:     []answer{granted("cpu=1", "memory=8Gi", "pods=10")},
		},
		"FrozenBefore": {
			reason: "What was not accepted Liqo denies.", offers: whole,
			requests: []grant.Request{request("a", 1, frozen), request("b", 2, frozen, denied())}, want: []answer{open, open},
		},
		"FrozenEmpty": {
			reason: "It says why there is nothing.", offers: whole, requests: []grant.Request{request("a", 1, frozen, accepted(zero...))},
			want: []answer{nothing(grant.NothingOffered, "cordoned", zero...)},
		},
		"NoProvider": {
			reason: "Until there is something, there is no node.", offers: []capacity.NodeOffer{on("", "", zero...)},
			requests: []grant.Request{request("a", 1, denied("cpu=0"))},
			want:     []answer{no(grant.NothingOffered, "at present", "cpu=0")},
		},
		"DeniedByOthers": {
			reason: "What somebody else has denied has its node, which is emptied.", offers: []capacity.NodeOffer{on("", "", zero...)},
			requests: []grant.Request{request("a", 1, denied("cpu=2"))},
			want:     []answer{nothing(grant.NothingOffered, "at present", zero...)},
		},
		"DeniedByOthersFirst": {
			reason: "And keeps it.", offers: whole, requests: []grant.Request{request("a", 1), request("b", 2, denied("cpu=2"))},
			want: []answer{no(grant.OneNode, "resource slice b"), granted(much...)},
		},
		"DeniedByOthersApart": {
			reason: "Also if it is that of a provider, of which nothing is counted while it is denied.", perProvider: true, offers: apart,
			requests: []grant.Request{request(nodeOf("c"), 1, denied("cpu=2"))},
			want: []answer{{
				verdict: grant.Accepted, granted: []string{"cpu=0"}, reason: grant.NodePerProvider, says: "none that is called so; others",
				unknown: true,
			}},
		},
		"ComesBack": {
			reason: "What was denied is accepted when there is something.", offers: whole,
			requests: []grant.Request{request("a", 1, denied("cpu=0"))}, want: []answer{granted(much...)},
		},
		"Vanishes": {
			reason: "Who has a node keeps it, with nothing.", offers: []capacity.NodeOffer{on("", "", zero...)},
			requests: []grant.Request{request("a", 1, accepted("cpu=2", "nvidia.com/gpu=1"))},
			want:     []answer{nothing(grant.NothingOffered, "at present", "cpu=0", "memory=0", "pods=0", "nvidia.com/gpu=0")},
		},
		"KeepsUse": {
			reason: "What it uses it keeps.", offers: []capacity.NodeOffer{on("", "", "cpu=1", "memory=1Gi", "pods=1")},
			requests: []grant.Request{request("a", 1, accepted(much...))}, want: []answer{granted("cpu=1", "memory=1Gi", "pods=1")},
		},
		"AsksNothing": {
			reason: "No pod could start.", offers: whole, requests: []grant.Request{request("a", 1, wants("pods=0")), request("b", 2)},
			want: []answer{no(grant.NothingRequested, "ask for some"), no(grant.OneNode, "resource slice a")},
		},
		"Negative": {
			reason: "Nobody is granted less than nothing.", offers: whole,
			requests: []grant.Request{request("a", 1, wants("nvidia.com/gpu=-1", "cpu=-1"))},
			want:     []answer{no(grant.NothingRequested, "ask for some")},
		},
		"Unreadable": {
			reason: "What cannot be read is no lack of a bound.", offers: whole,
			requests: []grant.Request{request("a", 1, func(r *grant.Request) { r.Unreadable = "spec.resources[cpu]: no quantity" })},
			want:     []answer{no(grant.InvalidRequest, "spec.resources[cpu]: no quantity")},
		},
		"PerProvider": {
			reason: "Each has the node that is called like it.", perProvider: true, offers: apart,
			requests: []grant.Request{request(b, 1, wants("cpu=4")), request(a, 2, wants("cpu=4"))},
			want:     []answer{of("b", "cpu=1", "memory=1Gi", "pods=10"), of("a", "cpu=4", "memory=8Gi", "pods=80")},
		},
		"AnotherName": {
			reason: "Others are told how they could be called.", perProvider: true, offers: apart,
			requests: []grant.Request{request("broker", 1), request(a, 2)},
			want:     []answer{no(grant.NodePerProvider, "keep this one; without an agent, make resource slices called "+b), of("a", much...)},
		},
		"UnknownProvider": {
			reason: "A name like that of a provider's node is none.", perProvider: true, offers: apart,
			requests: []grant.Request{request(nodeOf("c"), 1), request(a, 2), request(b, 2)},
			want: []answer{
				no(grant.NodePerProvider, "none that is called so"), of("a", much...), of("b", "cpu=1", "memory=1Gi", "pods=10"),
			},
		},
		"Full": {
			reason: "A provider that has nothing left is waited for.", perProvider: true,
			offers:   []capacity.NodeOffer{on(a, "a", zero...), on(b, "b", much...)},
			requests: []grant.Request{request(a, 1)}, want: []answer{no(grant.NothingOffered, "could be called "+b)},
		},
		"ProviderVanishes": {
			reason: "The node stays, and is empty.", perProvider: true, offers: []capacity.NodeOffer{on(a, "", zero...)},
			requests: []grant.Request{request(a, 1, accepted("cpu=4"))},
			want:     []answer{{verdict: grant.Accepted, granted: zero, reason: grant.NothingOffered, says: "at present", unknown: true}},
		},
		"NotCountedYet": {
			reason: "What was accepted a moment ago is not emptied.", perProvider: true, offers: apart,
			requests: []grant.Request{request(nodeOf("c"), 1, accepted("cpu=4"))}, want: []answer{open},
		},
		"FormerWhole": {
			reason: "The node for all keeps what it uses, and another one does not come.", perProvider: true,
			offers:   append([]capacity.NodeOffer{on("", "", "cpu=1", "memory=1Gi", "pods=1")}, apart...),
			requests: []grant.Request{request("x", 2, accepted(much...)), request("y", 1)},
			want:     []answer{granted("cpu=1", "memory=1Gi", "pods=1"), no(grant.NodePerProvider, "make resource slices called "+a+", "+b)},
		},
		"FormerNodes": {
			reason:   "Nodes of providers keep what they use when there is to be one, which another request has.",
			offers:   []capacity.NodeOffer{on("", "", much...), on(a, "a", "cpu=1", "memory=1Gi", "pods=1"), on(b, "b", zero...)},
			requests: []grant.Request{request(a, 1, accepted(much...)), request(b, 1, accepted(much...)), request("x", 2)},
			want: []answer{
				of("a", "cpu=1", "memory=1Gi", "pods=1"),
				{verdict: grant.Accepted, granted: zero, provider: "b", reason: grant.NothingOffered, says: "at present"},
				granted(much...),
			},
		},
		"NameOfProvider": {
			reason: "The one node is not called like that of a provider.", offers: whole, requests: []grant.Request{request(a, 1), request("x", 2)},
			want: []answer{no(grant.OneNode, "another name"), granted(much...)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := grant.Decide(tc.requests, tc.offers, tc.perProvider, grant.Views{})
			if len(got) != len(tc.want) {
				t.Fatalf("%s\n%d answers, want %d", tc.reason, len(got), len(tc.want))
			}
			for i, want := range tc.want {
				is := got[i]
				if is.Verdict != want.verdict || is.Provider != want.provider || is.Unknown != want.unknown || is.Reason != want.reason ||
					!strings.Contains(is.Message, want.says) || !resources.Same(is.Granted, list(want.granted...)) {
					t.Errorf("%s\nanswer to %s: %+v\nwant %+v", tc.reason, tc.requests[i].Name, is, want)
				}
			}
		})
	}
}

// TestDecideIsBounded has a consumer with more requests, and resources, than are looked at.
func TestDecideIsBounded(t *testing.T) {
	offer := capacity.NodeOffer{Offered: list("cpu=8", "memory=8Gi", "pods=80")}
	var requests []grant.Request
	offers := []capacity.NodeOffer{}
	for i := range grant.MaxRequests + 3 {
		name := nodeOf(fmt.Sprint(i))
		requests = append(requests, request(name, i))
		offers = append(offers, capacity.NodeOffer{Node: name, Provider: cluster.ID(fmt.Sprint(i)), Offered: offer.Offered})
	}
	requests[grant.MaxRequests+2].Made = time.Unix(0, 0) // It is the oldest.
	refused := 0
	for i, a := range grant.Decide(requests, offers, true, grant.Views{}) {
		if a.Reason != grant.TooManyRequests {
			continue
		}
		refused++
		if a.Verdict != grant.Denied || len(a.Granted) > 0 || i < grant.MaxRequests-1 || i > grant.MaxRequests+1 {
			t.Errorf("answer %d: %+v", i, a)
		}
	}
	if refused != 3 {
		t.Errorf("%d are refused, want 3", refused)
	}

	// Of what is zero already, less is kept each time, until it is no more than can be meant. What is not is told once.
	r := request("x", 1, accepted())
	for i := range 3 * resources.MaxResources {
		r.Granted[corev1.ResourceName(fmt.Sprintf("example.com/r%03d", i))] = resource.MustParse("1")
	}
	for _, want := range []int{3*resources.MaxResources + 3, resources.MaxResources, resources.MaxResources} {
		a := grant.Decide([]grant.Request{r}, []capacity.NodeOffer{offer}, false, grant.Views{})[0]
		if len(a.Granted) != want || !resources.Equal(a.Granted, offer.Offered) {
			t.Fatalf("%d resources are granted, want %d", len(a.Granted), want)
		}
		r.Granted = a.Granted
	}
}

// TestDecideNamesSomeNodes holds that a message stays readable.
func TestDecideNamesSomeNodes(t *testing.T) {
	var offers []capacity.NodeOffer
	for i := range 13 {
		offers = append(offers, capacity.NodeOffer{Node: nodeOf(fmt.Sprint(i)), Offered: list("cpu=8", "memory=8Gi", "pods=80")})
	}
	said := grant.Decide([]grant.Request{request("x", 1)}, offers, true, grant.Views{})[0].Message
	if !strings.Contains(said, nodeOf("9")+", and 3 more") || strings.Contains(said, nodeOf("10")) {
		t.Errorf("it says %q", said)
	}
}

// TestDecideSettles applies answers until nothing changes: the second time already nothing does.
func TestDecideSettles(t *testing.T) {
	offers := []capacity.NodeOffer{{Offered: list("cpu=8", "memory=8Gi", "pods=80", "nvidia.com/gpu=0")}}
	requests := []grant.Request{request("a", 1, wants("cpu=1")), request("b", 2), request(nodeOf("a"), 3), request("c", 4, accepted("cpu=1"))}
	var before []grant.Answer
	for range 3 {
		answers := grant.Decide(requests, offers, false, grant.Views{})
		for i, a := range answers {
			if before != nil && (a.Verdict != before[i].Verdict || a.Message != before[i].Message || !resources.Same(a.Granted, before[i].Granted)) {
				t.Errorf("%s is answered %+v, and then %+v", requests[i].Name, before[i], a)
			}
			requests[i].Verdict, requests[i].Granted = a.Verdict, a.Granted
		}
		before = answers
	}
}

// TestNodes tells a consumer which nodes it is to have.
func TestNodes(t *testing.T) {
	a, b := nodeOf("a"), nodeOf("b")
	everyone := func(cluster.ID) bool { return true }
	for name, tc := range map[string]struct {
		reason string
		offers []capacity.NodeOffer
		peers  func(cluster.ID) bool
		want   map[string]cluster.ID
	}{
		"Each": {
			"It has one for each provider, also for one that has nothing at present, and none for all of them.",
			[]capacity.NodeOffer{{Offered: list("cpu=1")}, {Node: a, Provider: "a", Offered: list("cpu=1")}, {Node: b, Provider: "b"}}, everyone,
			map[string]cluster.ID{a: "a", b: "b"},
		},
		"Unknown": {
			"Nothing is known of its provider any more.", []capacity.NodeOffer{{Node: a}, {Node: b, Provider: "b"}}, everyone,
			map[string]cluster.ID{b: "b"},
		},
		"Left": {
			"Its provider does not peer any more.", []capacity.NodeOffer{{Node: a, Provider: "a"}, {Node: b, Provider: "b"}},
			func(id cluster.ID) bool { return id == "a" }, map[string]cluster.ID{a: "a"},
		},
		"None": {"There is none.", nil, everyone, map[string]cluster.ID{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := grant.Nodes(nil, tc.offers, tc.peers); !maps.Equal(got, tc.want) {
				t.Errorf("%s\ngot %v, want %v", tc.reason, got, tc.want)
			}
		})
	}

	// Of too many it keeps those that it has asked for, and room for the request by which it is told.
	var offers []capacity.NodeOffer
	for i := range 2 * grant.MaxRequests {
		id := cluster.ID(fmt.Sprintf("p%03d", i))
		offers = append(offers, capacity.NodeOffer{Node: nodeOf(string(id)), Provider: id})
	}
	last := offers[len(offers)-1].Node
	got := grant.Nodes([]grant.Request{request(last, 1)}, offers, everyone)
	if len(got) != grant.MaxRequests-1 || got[last] == "" || got[offers[0].Node] == "" {
		t.Errorf("%d nodes: %v", len(got), got)
	}
	if of, other := request(a, 1), request("broker", 1); of.TellsNodes() || !other.TellsNodes() {
		t.Errorf("the request of a node tells of others: %t, another one does: %t", of.TellsNodes(), other.TellsNodes())
	}
}
