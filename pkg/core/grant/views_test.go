// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package grant_test

import (
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
)

func TestViews(t *testing.T) {
	much := []string{"cpu=8", "memory=8Gi", "pods=80"}
	p, q, r := netip.MustParsePrefix("10.69.0.0/16"), netip.MustParsePrefix("10.65.0.0/16"), netip.MustParsePrefix("10.66.0.0/16")
	now := time.Unix(10_000, 0)
	both := map[cluster.ID]grant.View{"a": {Key: "n1", Prefix: p}, "b": {Key: "n2", Prefix: q}}
	views := func(told time.Duration, acknowledged map[string]netip.Prefix) grant.Views {
		return grant.Views{Asked: true, Granted: both, Acknowledged: acknowledged, Told: now.Add(told), Now: now}
	}
	silent, unchecked := grant.Views{Asked: true, Granted: both, Now: now}, grant.Views{Granted: both, Now: now}
	all := map[string]netip.Prefix{"n1": p, "n2": q}
	cases := map[string]struct {
		reason  string
		request grant.Request
		nothing bool // Nothing is offered.
		node    string
		views   grant.Views
		verdict grant.Verdict
		granted []string
		why     grant.Reason
		says    string
		told    map[string]netip.Prefix
	}{
		"NotAsked": {
			reason: "Who asks no agent waits for none.", request: request("x", 1), verdict: grant.Accepted, granted: much, why: grant.Granted,
		},
		"Unchecked": {
			reason: "Who need not acknowledge is told what it may reach.", request: request("x", 1), views: unchecked,
			verdict: grant.Accepted, granted: much, why: grant.Granted, told: all,
		},
		"NeverTold": {
			reason: "The views are told first.", request: request("x", 1), views: silent, verdict: grant.Denied, why: grant.AgentMissing,
			says: "not installed", told: all,
		},
		"Told": {
			reason: "Then there is something.", request: request("x", 1), views: views(-time.Minute, all),
			verdict: grant.Accepted, granted: much, why: grant.Granted, told: all,
		},
		"LongAgo": {
			reason: "A report is a sign of life.", request: request("x", 1), views: views(-grant.MaxSilence-time.Second, all),
			verdict: grant.Denied, why: grant.AgentMissing, says: "5m0s", told: all,
		},
		"JustSo": {
			reason: "Five minutes are long enough.", request: request("x", 1), views: views(-grant.MaxSilence, all),
			verdict: grant.Accepted, granted: much, why: grant.Granted, told: all,
		},
		"Future": {
			reason: "A report of tomorrow would be fresh until tomorrow.", request: request("x", 1), views: views(time.Hour, all),
			verdict: grant.Denied, why: grant.AgentMissing, says: "clock", told: all,
		},
		"NoView": {
			reason: "Of none nothing can be used.", request: request("x", 1), views: views(0, nil),
			verdict: grant.Denied, why: grant.ViewUnknown, says: "any provider", told: all,
		},
		"OneView": {
			reason: "One is enough for the node of all: where pods go, others see to.", request: request("x", 1),
			views: views(0, map[string]netip.Prefix{"n2": q}), verdict: grant.Accepted, granted: much, why: grant.Granted, told: all,
		},
		"AnotherPrefix": {
			reason: "What was acknowledged is not what is granted now.", request: request("x", 1),
			views: views(0, map[string]netip.Prefix{"n1": r, "n2": p}), verdict: grant.Denied, why: grant.ViewUnknown, says: "any", told: all,
		},
		"OtherKeys": {
			reason: "A consumer acknowledges nothing that it was not granted.", request: request("x", 1),
			views: views(0, map[string]netip.Prefix{"a": p}), verdict: grant.Denied, why: grant.ViewUnknown, says: "any", told: all,
		},
		"OfProvider": {
			reason: "A node of one provider needs the view of that.", request: request(nodeOf("a"), 1), node: "a",
			views: views(0, map[string]netip.Prefix{"n1": p}), verdict: grant.Accepted, granted: much, why: grant.Granted,
			told: map[string]netip.Prefix{"n1": p},
		},
		"OfAnother": {
			reason: "And no other.", request: request(nodeOf("a"), 1), node: "a", views: views(0, map[string]netip.Prefix{"n2": q}),
			verdict: grant.Denied, why: grant.ViewUnknown, says: "this node", told: map[string]netip.Prefix{"n1": p},
		},
		"NoPrefix": {
			reason: "A provider that is not seen yet is none.", request: request(nodeOf("c"), 1), node: "c",
			views:   grant.Views{Asked: true, Granted: map[cluster.ID]grant.View{"c": {Key: "n3"}}, Told: now, Now: now},
			verdict: grant.Denied, why: grant.ViewUnknown, says: "this node",
		},
		"HasNode": {
			reason: "What runs goes on, and nothing more comes.", request: request("x", 1, accepted("cpu=1", "memory=9Gi", "pods=10")),
			views: silent, verdict: grant.Accepted, granted: []string{"cpu=1", "memory=8Gi", "pods=10"}, why: grant.AgentMissing, told: all,
			says: "not installed",
		},
		"NoPods": {
			reason: "Nothing more comes where no pod could start either.", views: silent, verdict: grant.Accepted, why: grant.NothingRequested,
			request: request("x", 1, wants("cpu=8", "memory=8Gi", "pods=0"), accepted("cpu=1", "pods=10")), granted: []string{"cpu=1"}, told: all,
		},
		"Nothing": {
			reason: "Where nothing is offered, that is why.", request: request("x", 1), nothing: true, views: silent,
			verdict: grant.Denied, why: grant.NothingOffered, told: all,
		},
		"Ending": {
			reason: "What ends is told so.", request: request("x", 1, ending, accepted(much...)), views: silent,
			verdict: grant.Accepted, granted: much, why: grant.Granted, told: all,
		},
		"OnOneNode": {
			reason: "A node of a provider is none of a consumer that has one for all: it is told nothing.", request: request(nodeOf("b"), 1),
			views: silent, verdict: grant.Denied, why: grant.OneNode,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			offer := capacity.NodeOffer{Offered: list(much...)}
			if tc.node != "" {
				offer.Node, offer.Provider = tc.request.Name, cluster.ID(tc.node)
			}
			if tc.nothing {
				offer.Offered = nil
			}
			a := grant.Decide([]grant.Request{tc.request}, []capacity.NodeOffer{offer}, tc.node != "", tc.views)[0]
			if a.Verdict != tc.verdict || a.Reason != tc.why || !resources.Equal(a.Granted, list(tc.granted...)) ||
				!strings.Contains(a.Message, tc.says) || !maps.Equal(a.Views, tc.told) {
				t.Errorf("%s: %+v", tc.reason, a)
			}
		})
	}
}

// TestKnows asks where new pods of a consumer may go, and for how long that holds.
func TestKnows(t *testing.T) {
	p, q := netip.MustParsePrefix("10.69.0.0/16"), netip.MustParsePrefix("10.65.0.0/16")
	now := time.Unix(10_000, 0)
	of := func(told time.Duration, acknowledged netip.Prefix) grant.Views {
		return grant.Views{
			Asked: true, Granted: map[cluster.ID]grant.View{"a": {Key: "n1", Prefix: p}, "none": {Key: "n2"}},
			Acknowledged: map[string]netip.Prefix{"n1": acknowledged, "n3": q}, Told: now.Add(told), Now: now,
		}
	}
	silent := of(0, p)
	silent.Told = time.Time{}
	cases := map[string]struct {
		reason   string
		views    grant.Views
		provider cluster.ID
		want     bool
		lasts    time.Duration
	}{
		"NotAsked":      {reason: "Who is not asked shows what it gets.", provider: "a", want: true},
		"Acknowledged":  {"What is installed is shown as it is.", of(-time.Minute, p), "a", true, grant.MaxSilence - time.Minute + 1},
		"AnotherPrefix": {"What was installed before is not what is granted.", of(0, q), "a", false, grant.MaxSilence + 1},
		"NotGranted":    {"Of a provider without a view nothing is installed.", of(0, p), "b", false, grant.MaxSilence + 1},
		"NoPrefix":      {"Nor of one that is not seen yet.", of(0, netip.Prefix{}), "none", false, grant.MaxSilence + 1},
		"NeverTold":     {"Who says nothing has nothing.", silent, "a", false, 0},
		"JustSo":        {"Five minutes of silence are not too long.", of(-grant.MaxSilence, p), "a", true, 1},
		"Silent":        {"Longer ones are.", of(-grant.MaxSilence-1, p), "a", false, 0},
		"Ahead":         {"A wrong clock tells nothing until its time has come.", of(time.Hour, p), "a", false, time.Hour - grant.MaxSilence},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.views.Knows(tc.provider); got != tc.want || tc.views.Turns() != tc.lasts {
				t.Errorf("%s: %t for %s", tc.reason, got, tc.views.Turns())
			}
		})
	}
}
