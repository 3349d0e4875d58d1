// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

func prefixes(texts ...string) []netip.Prefix {
	p := make([]netip.Prefix, len(texts))
	for i := range texts {
		p[i] = netip.MustParsePrefix(texts[i])
	}
	return p
}

func networks() Networks {
	return Networks{
		External: netip.MustParsePrefix("10.70.0.0/16"), Proxy: []netip.Addr{netip.MustParseAddr("10.70.0.2")}, Pods: prefixes("10.201.0.0/16"),
	}
}

func peers() []Peer {
	return []Peer{
		{
			ID: "c", Consumes: true, Pods: prefixes("10.200.0.0/16"), External: prefixes("10.90.0.0/16"),
			Granted: prefixes("10.69.0.0/16"),
		},
		{ID: "d", Consumes: true, Pods: prefixes("10.66.0.0/16")},
		{ID: "p", Provides: true, Pods: prefixes("10.69.0.0/16"), External: prefixes("10.91.0.0/16", "fd00::/64")},
		{ID: "q", Provides: true, Pods: prefixes("10.65.0.0/16")},
		{ID: "both", Provides: true, Consumes: true, Pods: prefixes("10.67.0.0/16"), Granted: prefixes("10.64.0.0/15", "10.67.0.0/16")},
		{ID: "wide", Consumes: true, Pods: prefixes("10.62.0.0/16"), Granted: prefixes("0.0.0.0/0")},
		{ID: "inner", Consumes: true, Pods: prefixes("10.61.0.0/16"), Granted: prefixes("10.69.0.0/24")},
		{ID: "neither", Pods: prefixes("10.63.0.0/16")},
	}
}

func dropped(r []Range, address string) bool {
	a := netip.MustParseAddr(address)
	return slices.ContainsFunc(r, func(r Range) bool { return r.From.Compare(a) <= 0 && a.Compare(r.To) <= 0 })
}

func TestOf(t *testing.T) {
	const (
		ownPod, ownService, node, internet = "10.201.3.4", "10.80.0.1", "172.30.0.2", "8.8.8.8"
		answers, proxy, opened, tunnel     = "10.70.0.0", "10.70.0.2", "10.70.0.9", "169.254.18.1"
		ofC, ofD, ofP, ofQ, ofBoth         = "10.200.1.1", "10.66.1.1", "10.69.1.1", "10.65.1.1", "10.67.1.1"
	)
	every := []string{
		ownPod, ownService, node, internet, answers, proxy, opened, tunnel, ofC, ofD, ofP, ofQ, ofBoth, "10.63.1.1", "0.0.0.0",
		"255.255.255.255", "10.69.0.0", "10.69.255.255", "10.70.255.255", "169.254.18.4", "169.254.169.254",
	}
	cases := map[string]struct {
		reason string
		peer   cluster.ID
		passes []string
	}{
		"Consumer": {
			"A consumer reaches the pods of providers that it was granted, its answers, and the API server.",
			"c", []string{answers, proxy, tunnel, ofP, "10.69.0.0", "10.69.255.255"},
		},
		"New consumer": {"One that was granted nothing reaches no pods.", "d", []string{answers, proxy, tunnel}},
		"Provider": {
			"A provider reaches what is opened, and no pods by their own addresses.",
			"p", []string{answers, proxy, opened, "10.70.255.255", tunnel},
		},
		"Both": {
			"Who is both reaches both, but not itself through the broker.", "both",
			[]string{answers, proxy, opened, "10.70.255.255", tunnel, ofQ},
		},
		"Everything granted": {
			"However much is granted, it is pods of providers: no consumers, and nothing of the broker.",
			"wide", []string{answers, proxy, tunnel, ofP, "10.69.0.0", "10.69.255.255", ofQ, ofBoth},
		},
		"A part granted": {"A part of what a provider has is not opened.", "inner", []string{answers, proxy, tunnel}},
		"Neither":        {"Who neither consumes nor provides gets answers.", "neither", []string{answers, tunnel}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := peers()
			at := slices.IndexFunc(all, func(p Peer) bool { return p.ID == tc.peer })
			rules, err := Of(networks(), &all[at], all)
			if err != nil || len(rules.Forwarded) > 0 {
				t.Fatalf("%s: %v, %v", tc.reason, rules.Forwarded, err)
			}
			for _, address := range every {
				if got, want := !dropped(rules.Arriving, address), slices.Contains(tc.passes, address); got != want {
					t.Errorf("%s: packets to %s pass: %t, want %t", tc.reason, address, got, want)
				}
			}
		})
	}
}

func TestEverywhere(t *testing.T) {
	rules, err := Everywhere(networks(), peers())
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"10.201.3.4", "10.80.0.1", "172.30.0.2", "8.8.8.8", "0.0.0.0", "255.255.255.255", "169.254.169.254"} {
		if !dropped(rules.Arriving, address) {
			t.Errorf("a peer that nobody knows yet reaches %s", address)
		}
	}
	for _, address := range []string{"10.70.0.0", "10.70.0.9", "10.69.1.1", "10.200.1.1", "169.254.18.2"} {
		if dropped(rules.Arriving, address) {
			t.Errorf("nobody reaches %s", address)
		}
	}
	if !dropped(rules.Forwarded, "10.201.3.4") || dropped(rules.Forwarded, "10.69.1.1") || dropped(rules.Forwarded, "10.80.0.1") {
		t.Errorf("an opened address leads to own pods, or to nobody: %v", rules.Forwarded)
	}
}

// TestSources holds from where packets may come: from a peer, as this cluster sees it, and of all peers only from those with own rules.
func TestSources(t *testing.T) {
	n, all := networks(), peers()
	n.Allowed = prefixes("8.8.8.0/24", "10.201.3.0/24") // It is reached, and sends nothing.
	every := []string{
		"10.200.1.1", "10.90.0.0", "10.69.1.1", "10.91.255.255", "10.66.1.1", "10.201.3.4", "10.70.0.9", "10.80.0.1", "172.30.0.2", "8.8.8.8",
		"169.254.18.1", "0.0.0.0", "255.255.255.255", "10.89.255.255", "10.92.0.0",
	}
	everywhere, err := Everywhere(n, all[:3]) // The third provides.
	ofC, err2 := Of(n, &all[0], all)
	ofP, err3 := Of(n, &all[2], all)
	nobodys, err4 := Everywhere(n, nil)
	ofNew, err5 := Of(n, &Peer{ID: "new"}, all)
	if err := errors.Join(err, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason string
		rules  Rules
		passes []string
	}{
		"All": {
			"Any peer with own rules sends.", everywhere, []string{"10.200.1.1", "10.90.0.0", "10.69.1.1", "10.91.255.255", "10.66.1.1"},
		},
		"Consumer": {"A consumer sends as itself.", ofC, []string{"10.200.1.1", "10.90.0.0"}},
		"Provider": {"And so does a provider.", ofP, []string{"10.69.1.1", "10.91.255.255"}},
		"Nobody":   {"Who has no own rules sends nothing.", nobodys, nil},
		"New":      {"Nor does a peer of which it is not known how it is seen.", ofNew, nil},
	} {
		for _, address := range every {
			if got, want := !dropped(tc.rules.Leaving, address), slices.Contains(tc.passes, address); got != want {
				t.Errorf("%s: %s Packets from %s pass: %t, want %t", name, tc.reason, address, got, want)
			}
		}
	}
	// A network of a peer that is this cluster's own is not the peer's.
	all[0].External = prefixes("10.201.0.0/16")
	everywhere, err = Everywhere(n, all)
	ofC, err2 = Of(n, &all[0], all)
	if err := errors.Join(err, err2); err != nil || !dropped(everywhere.Leaving, "10.201.3.4") || !dropped(ofC.Leaving, "10.201.3.4") {
		t.Errorf("a peer sends as one of this cluster's own pods: %v, %v, %v", everywhere.Leaving, ofC.Leaving, err)
	}
}

func TestAllowed(t *testing.T) {
	n, all := networks(), peers()
	n.Allowed = prefixes("10.201.3.0/24")
	everywhere, err := Everywhere(n, all)
	of, err2 := Of(n, &all[0], all)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string][]Range{"all": everywhere.Arriving, "forwarded": everywhere.Forwarded, "one": of.Arriving} {
		if dropped(r, "10.201.3.4") || !dropped(r, "10.201.2.255") || !dropped(r, "10.201.4.0") {
			t.Errorf("%s: what people allow of own pods passes, and no more: %v", name, r)
		}
	}
	// A network of a peer that is this cluster's own opens nothing.
	all[2].Pods, all[0].Granted = prefixes("10.201.0.0/16"), prefixes("10.201.0.0/16")
	everywhere, err = Everywhere(networks(), all)
	of, err2 = Of(networks(), &all[0], all)
	if err := errors.Join(err, err2); err != nil || !dropped(everywhere.Arriving, "10.201.3.4") || !dropped(of.Arriving, "10.201.3.4") {
		t.Errorf("a provider that is seen as own pods opens them: %v, %v, %v", everywhere.Arriving, of.Arriving, err)
	}
}

func TestNothingKnown(t *testing.T) {
	for external, reason := range map[netip.Prefix]string{
		{}:                                 "There is none.",
		netip.MustParsePrefix("fd00::/64"): "One of IPv6 is none.",
		netip.MustParsePrefix("fd00::/8"):  "However wide it is.",
		netip.MustParsePrefix("::/0"):      "It may be all there is.",
		netip.MustParsePrefix("::1/128"):   "Or a single address.",
	} {
		n := networks()
		n.External = external
		_, err := Everywhere(n, peers())
		_, err2 := Of(n, &Peer{Provides: true, Consumes: true}, peers())
		if !errors.Is(err, ErrNoExternal) || !errors.Is(err2, ErrNoExternal) {
			t.Errorf("%s It decides where answers arrive: %v, %v", reason, err, err2)
		}
	}
}

// TestComplement compares with what each address says by itself.
func TestComplement(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var s []span
		for range random.IntN(6) {
			from := random.Uint32N(40)
			s = append(s, span{from, from + random.Uint32N(10)})
		}
		if random.IntN(3) == 0 {
			s = append(s, span{1<<32 - 1 - random.Uint32N(5), 1<<32 - 1})
		}
		rest := complement(s)
		has := func(in []span, a uint32) bool {
			return slices.ContainsFunc(in, func(s span) bool { return s.from <= a && a <= s.to })
		}
		for _, a := range append(seq(0, 60), seq(1<<32-7, 1<<32-1)...) {
			if has(s, a) == has(rest, a) {
				t.Fatalf("%d is both in %v and out, or neither: %v", a, s, rest)
			}
		}
		for i := 1; i < len(rest); i++ {
			if rest[i-1].to >= rest[i].from {
				t.Fatalf("%v overlap", rest)
			}
		}
	}
}

func seq(from, to uint64) []uint32 {
	var s []uint32
	for ; from <= to; from++ {
		s = append(s, uint32(from))
	}
	return s
}

func TestRange(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	if one, two := (Range{a, a}).String(), (Range{a, b}).String(); one != "10.0.0.1" || two != "10.0.0.1-10.0.0.2" {
		t.Errorf("ranges are written as %s and %s", one, two)
	}
}
