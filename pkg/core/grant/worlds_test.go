// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package grant_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/test/worlds"
)

// anyList returns some of some resources, of which some are zero.
func anyList(r *rand.Rand) corev1.ResourceList {
	if r.IntN(5) == 0 {
		return nil
	}
	l := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{"cpu", "memory", "pods", "nvidia.com/gpu"} {
		if r.IntN(6) > 0 {
			l[name] = *resource.NewQuantity(r.Int64N(6), resource.DecimalSI)
		}
	}
	return l
}

// anyOffers returns what a consumer is offered on nodes of some providers, and on the one for all of them.
func anyOffers(r *rand.Rand, providers int) []capacity.NodeOffer {
	var offers []capacity.NodeOffer
	if r.IntN(4) > 0 {
		offers = append(offers, capacity.NodeOffer{Offered: resources.Sum(anyList(r))})
	}
	for p := range providers {
		id := cluster.ID(fmt.Sprint("p", p))
		offer := capacity.NodeOffer{Node: nodeOf(string(id)), Provider: id, Offered: resources.Sum(anyList(r))}
		switch r.IntN(5) {
		case 0: // It is not counted.
			continue
		case 1: // Its provider is gone.
			offer.Provider = ""
		}
		offers = append(offers, offer)
	}
	return offers
}

// anyRequests returns what a consumer asks for: nodes of providers, and others. Each name is there once.
func anyRequests(r *rand.Rand, providers int) []grant.Request {
	var requests []grant.Request
	others := r.IntN(4)
	if r.IntN(10) == 0 {
		others += 2 * grant.MaxRequests
	}
	for n := range providers + others {
		if r.IntN(4) == 0 {
			continue
		}
		name := nodeOf(fmt.Sprint("p", n))
		if n >= providers {
			name = fmt.Sprint("x", n)
		}
		q := request(name, r.IntN(4), func(q *grant.Request) {
			q.Wanted, q.Authenticated = anyList(r), r.IntN(5) > 0
			q.Frozen, q.Ending = r.IntN(8) == 0, r.IntN(8) == 0
			if r.IntN(10) == 0 {
				q.Unreadable = "spec.resources[pods]: no quantity"
			}
			q.Verdict, q.Granted = grant.Verdict(r.IntN(3)), anyList(r)
		})
		requests = append(requests, q)
	}
	return requests
}

// same reports whether two answers make a broker write the same.
func same(a, b *grant.Answer) bool {
	return a.Verdict == b.Verdict && a.Provider == b.Provider && a.Unknown == b.Unknown && a.Reason == b.Reason && a.Message == b.Message &&
		resources.Same(a.Granted, b.Granted)
}

// checkAnswer checks what is promised of the answer to one request.
func checkAnswer(t *testing.T, q *grant.Request, a *grant.Answer) {
	t.Helper()
	had := q.Verdict == grant.Accepted || !resources.Equal(q.Granted, nil)
	for what, wrong := range map[string]bool{
		"it is denied, and had a node":        a.Verdict == grant.Denied && had,
		"it is denied, and granted something": a.Verdict == grant.Denied && !resources.Equal(a.Granted, nil),
		"it gets more than it asks for":       !resources.Covers(resources.AtMost(a.Granted, q.Wanted), a.Granted),
		"it gets less than nothing":           !resources.Covers(a.Granted, nil),
		"it is frozen, and gets more":         q.Frozen && !resources.Covers(q.Granted, a.Granted),
		"it is frozen, and gets a node":       q.Frozen && !had,
		"it is unreadable, and gets some":     q.Unreadable != "" && !resources.Equal(a.Granted, nil),
		"nobody is told why":                  a.Reason == "" || a.Message == "",
		"it is of a provider, and of none":    a.Provider != "" && a.Unknown,
	} {
		if wrong {
			t.Errorf("%s: %+v is answered %+v", what, q, a)
		}
	}
	for name := range q.Granted {
		if _, named := a.Granted[name]; !named {
			t.Errorf("%s stays on the node: %+v is answered %+v", name, q, a)
		}
	}
}

// anyDecision decides of anything that a consumer may ask for, and checks what is promised of all decisions.
func anyDecision(t *testing.T, r *rand.Rand, seen map[grant.Reason]int) {
	t.Helper()
	providers, perProvider := r.IntN(5), r.IntN(2) == 0
	requests, offers := anyRequests(r, providers), anyOffers(r, providers)
	answers := grant.Decide(requests, offers, perProvider, grant.Views{})

	// What is granted is there, and is what the one who asks may have.
	offered, granted := resources.Sum(), resources.Sum()
	for _, o := range offers {
		resources.Add(offered, o.Offered)
	}
	for i := range answers {
		seen[answers[i].Reason]++
		if answers[i].Verdict == grant.Open {
			continue
		}
		resources.Add(granted, answers[i].Granted)
		checkAnswer(t, &requests[i], &answers[i])
	}
	if !resources.Covers(offered, granted) {
		t.Errorf("%v is granted, and %v is offered: %+v are answered %+v", granted, offered, requests, answers)
	}

	// In whatever order the requests come, each is answered the same.
	order := r.Perm(len(requests))
	shuffled := make([]grant.Request, len(requests))
	for to, from := range order {
		shuffled[to] = requests[from]
	}
	for at, a := range grant.Decide(shuffled, offers, perProvider, grant.Views{}) {
		if is := order[at]; !same(&a, &answers[is]) {
			t.Errorf("%+v is answered %+v, and in another order %+v", requests[is], answers[is], a)
		}
	}

	// What was answered stays so: nothing is written again.
	after := slices.Clone(requests)
	for i, a := range answers {
		if a.Verdict != grant.Open {
			after[i].Verdict, after[i].Granted = a.Verdict, a.Granted
		}
	}
	for i, a := range grant.Decide(after, offers, perProvider, grant.Views{}) {
		if a.Verdict != grant.Open && !same(&a, &answers[i]) {
			t.Errorf("%+v is answered %+v, and then %+v", requests[i], answers[i], a)
		}
	}
}

// enough decisions try everything.
const enough = 500

// TestAnyDecision decides in random worlds.
func TestAnyDecision(t *testing.T) {
	seen, decisions := map[grant.Reason]int{}, 0
	worlds.Run(t, func(t *testing.T, seed uint64) {
		t.Helper()
		decisions++
		anyDecision(t, rand.New(rand.NewPCG(seed, 1)), seen)
	})
	for _, reason := range []grant.Reason{
		"", grant.Granted, grant.NothingOffered, grant.NothingRequested, grant.InvalidRequest, grant.OneNode, grant.NodePerProvider,
		grant.TooManyRequests,
	} {
		if decisions >= enough && seen[reason] == 0 {
			t.Errorf("nothing is answered %q: the test does not try it", reason)
		}
	}
}

// anyViews returns what an agent has told that may be missing, old, ahead of its time, or wrong: it acknowledges what was granted, another
// prefix, or what was not granted.
func anyViews(r *rand.Rand, providers int) grant.Views {
	prefix := func() netip.Prefix {
		if n := r.IntN(4); n > 0 {
			return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n)}), 16)
		}
		return netip.Prefix{}
	}
	v := grant.Views{
		Asked: r.IntN(6) > 0, Granted: map[cluster.ID]grant.View{}, Acknowledged: map[string]netip.Prefix{"none": prefix()},
		Now: time.Unix(1_000_000, 0),
	}
	for p := range providers {
		key := fmt.Sprint("k", p)
		view := grant.View{Key: key, Prefix: prefix()}
		if r.IntN(5) > 0 {
			v.Granted[cluster.ID(fmt.Sprint("p", p))] = view
		}
		switch r.IntN(4) {
		case 0: // It says nothing of it.
		case 1:
			v.Acknowledged[key] = prefix()
		default:
			v.Acknowledged[key] = view.Prefix
		}
	}
	late := time.Duration(1 + r.Int64N(int64(time.Hour)))
	switch r.IntN(6) {
	case 0: // It is missing.
	case 1:
		v.Told = v.Now.Add(-grant.MaxSilence - late)
	case 2:
		v.Told = v.Now.Add(grant.MaxSilence + late)
	default:
		v.Told = v.Now.Add(time.Duration(r.Int64N(2*int64(grant.MaxSilence))) - grant.MaxSilence)
	}
	return v
}

// anyViewed decides of anything that a consumer may ask for, whatever its agent has told, and checks that nothing more is granted than what
// it has acknowledged lately, that it is told why, and only of views that it is granted.
func anyViewed(t *testing.T, r *rand.Rand, seen map[grant.Reason]int) {
	t.Helper()
	providers, perProvider := r.IntN(5), r.IntN(2) == 0
	requests, offers, v := anyRequests(r, providers), anyOffers(r, providers), anyViews(r, providers)
	without := grant.Decide(requests, offers, perProvider, grant.Views{})
	isHeard := !v.Told.IsZero() && v.Now.Sub(v.Told).Abs() <= 5*time.Minute
	isInstalled := func(provider cluster.ID) bool {
		for id, view := range v.Granted {
			if (provider == "" || provider == id) && view.Prefix.IsValid() && v.Acknowledged[view.Key] == view.Prefix {
				return true
			}
		}
		return false
	}
	for i, a := range grant.Decide(requests, offers, perProvider, v) {
		q, other := &requests[i], &without[i]
		seen[a.Reason]++
		if a.Verdict == grant.Open {
			continue
		}
		checkAnswer(t, q, &a)
		more := !resources.Covers(q.Granted, a.Granted)
		withheld := !resources.Equal(a.Granted, other.Granted)
		missing := a.Reason == grant.AgentMissing && !isHeard || a.Reason == grant.ViewUnknown && isHeard
		for what, wrong := range map[string]bool{
			"it gets more, and was not heard":           v.Asked && more && !isHeard,
			"it gets more, and has not acknowledged it": v.Asked && more && !isInstalled(a.Provider),
			"it gets less, and nobody is asked":         !v.Asked && withheld,
			"it gets less, and is not told why":         withheld && !missing && !resources.IsZero(other.Granted),
			"it gets more than others":                  !resources.Covers(other.Granted, a.Granted),
		} {
			if wrong {
				t.Errorf("%s: %+v with %+v is answered %+v, else %+v", what, q, v, a, other)
			}
		}
		for key, prefix := range a.Views {
			isGranted := false
			for id, view := range v.Granted {
				isGranted = isGranted || view == grant.View{Key: key, Prefix: prefix} && (a.Provider == "" || a.Provider == id)
			}
			if !isGranted || !prefix.IsValid() {
				t.Errorf("it is told of %s=%s: %+v with %+v is answered %+v", key, prefix, q, v, a)
			}
		}
	}
}

// TestAnyViews decides in random worlds whose agents are missing, old and lying.
func TestAnyViews(t *testing.T) {
	seen, decisions := map[grant.Reason]int{}, 0
	worlds.Run(t, func(t *testing.T, seed uint64) {
		t.Helper()
		decisions++
		anyViewed(t, rand.New(rand.NewPCG(seed, 2)), seen)
	})
	for _, reason := range []grant.Reason{grant.Granted, grant.AgentMissing, grant.ViewUnknown} {
		if decisions >= enough && seen[reason] == 0 {
			t.Errorf("nothing is answered %q: the test does not try it", reason)
		}
	}
}
