// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package grant_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/grant"
)

// TestAgent says how agents are, and when they may be otherwise without a word.
func TestAgent(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	one, other := netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("10.2.0.0/16")
	told := map[string]netip.Prefix{"a": one, "b": other}
	const soon = grant.MaxSilence - time.Minute
	for name, tc := range map[string]struct {
		reason string
		heard  grant.Heard
		want   grant.Agent
		turns  time.Duration
		behind int
	}{
		"NotAsked": {"Nobody is asked.", grant.Heard{Unreadable: "x", ToldViews: told}, grant.AgentNotAsked, 0, 2},
		"Never": {
			"Nothing was told.", grant.Heard{Views: grant.Views{Asked: true, Now: now}, ToldViews: told}, grant.AgentNeverHeard, 0, 2,
		},
		"Nothing readable": {
			"Something was told.", grant.Heard{Views: grant.Views{Asked: true, Now: now}, Unreadable: "x"}, grant.AgentUnreadable, 0, 0,
		},
		"Silent": {
			"It is too old to count, whatever it says.", grant.Heard{Views: grant.Views{
				Asked: true, Now: now, Told: now.Add(-grant.MaxSilence - 1),
			}, Unreadable: "x", ToldViews: told}, grant.AgentSilent, 0, 2,
		},
		"Ahead": {
			"Its clock is ahead, and after a minute less than counts.", grant.Heard{Views: grant.Views{
				Asked: true, Now: now, Told: now.Add(grant.MaxSilence + time.Minute),
			}}, grant.AgentSilent, time.Minute, 0,
		},
		"PartUnreadable": {
			"The rest counts.", grant.Heard{
				Views: grant.Views{Asked: true, Now: now, Told: now.Add(-time.Minute)}, Unreadable: "x", ToldViews: told,
			}, grant.AgentUnreadable, soon + 1, 2,
		},
		"Behind": {
			"One view is acknowledged as it was before.", grant.Heard{Views: grant.Views{
				Asked: true, Now: now, Told: now.Add(-time.Minute), Acknowledged: map[string]netip.Prefix{"a": one, "b": one, "c": one},
			}, ToldViews: told}, grant.AgentBehind, soon + 1, 1,
		},
		"Reporting": {
			"All is as it should be.", grant.Heard{Views: grant.Views{
				Asked: true, Now: now, Told: now.Add(-time.Minute), Acknowledged: told,
			}, ToldViews: told}, grant.AgentReporting, soon + 1, 0,
		},
		"ToldNothing": {
			"There is nothing to acknowledge.", grant.Heard{Views: grant.Views{Asked: true, Now: now, Told: now.Add(-time.Minute)}},
			grant.AgentReporting, soon + 1, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if is, turns := tc.heard.Agent(); is != tc.want || turns != tc.turns || tc.heard.Behind() != tc.behind {
				t.Errorf("%s It is %d for %s, and %d views behind, want %d, %s, %d", tc.reason, is, turns, tc.heard.Behind(), tc.want, tc.turns,
					tc.behind)
			}
		})
	}
}
