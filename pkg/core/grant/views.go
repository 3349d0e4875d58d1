// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// MaxSilence is how long a consumer's agent may be silent before nothing more is granted, and by how much the two clusters' clocks may
// differ. Agents rely on it, also those of other versions: what a broker may believe for longer they have taken away.
const MaxSilence = 5 * time.Minute

// Views is under which prefixes this cluster sees the pods of providers, and what the consumer has told of them. It has to install them
// before it gets what is there: else it would show addresses that are not those of its pods. The zero Views asks for nothing.
type Views struct {
	// Asked tells that an agent of the consumer has to acknowledge views.
	Asked bool
	// Granted are the views of the providers that the consumer may use.
	Granted map[cluster.ID]View
	// Acknowledged are those that the consumer tells it has installed, by their keys, and Told when it told so, by its own clock; zero if it
	// never did.
	Acknowledged map[string]netip.Prefix
	Told         time.Time
	// Now is the time.
	Now time.Time
}

// View is the prefix under which this cluster sees the pods of a provider.
type View struct {
	// Key is what it is called towards the consumer, which may not learn whose it is.
	Key    string
	Prefix netip.Prefix
}

// IsFresh reports whether what a consumer has told at a time, by its own clock, counts now. A time that is yet to come is no sign of life
// either, or the report of a clock that is wrong would be one for as long as it is ahead.
func IsFresh(told, now time.Time) bool { return !told.IsZero() && now.Sub(told).Abs() <= MaxSilence }

// IsFresh reports whether the consumer has told something lately.
func (v *Views) IsFresh() bool { return IsFresh(v.Told, v.Now) }

// Knows reports whether new pods of the consumer may go to a provider: no agent has to acknowledge views, or it has told lately that it has
// installed that of the provider, as it is now.
func (v *Views) Knows(provider cluster.ID) bool { return !v.Asked || v.IsFresh() && v.knows(provider) }

// Turns returns after how long Knows may say something else though nobody has told anything; zero for never.
func (v *Views) Turns() time.Duration {
	age := v.Now.Sub(v.Told)
	switch {
	case !v.Asked || v.Told.IsZero() || age > MaxSilence:
		return 0
	case age < -MaxSilence: // The clock of the consumer is ahead.
		return -age - MaxSilence
	default:
		return MaxSilence - age + time.Nanosecond
	}
}

// knows reports whether the consumer has installed the view of a provider, as it is now.
func (v *Views) knows(provider cluster.ID) bool {
	view, is := v.Granted[provider]
	return is && view.Prefix.IsValid() && v.Acknowledged[view.Key] == view.Prefix
}

// missing returns why a node of a provider, or of all of them if that is empty, gets nothing more; empty if it does. On the node of all,
// pods go only to providers that Knows tells, for which others see to.
func (v *Views) missing(provider cluster.ID) (reason Reason, message string) {
	switch {
	case !v.Asked:
		return "", ""
	case v.Told.IsZero():
		return AgentMissing, "The cluster has not told that it can reach the providers: its agent is not installed, or was not heard yet"
	case !v.IsFresh():
		return AgentMissing, fmt.Sprintf("The agent of the cluster was not heard for more than %s, or its clock is wrong", MaxSilence)
	case provider != "" && v.knows(provider):
		return "", ""
	case provider != "":
		return ViewUnknown, "The cluster cannot reach the provider of this node yet: its agent has not acknowledged the view of it"
	}
	for id := range v.Granted {
		if v.knows(id) {
			return "", ""
		}
	}
	return ViewUnknown, "The cluster cannot reach any provider yet: its agent has acknowledged no view of one"
}

// ofProvider returns the views that belong to the node of a provider, or to that of all of them if that is empty.
func (v *Views) ofProvider(provider cluster.ID) map[string]netip.Prefix {
	if len(v.Granted) == 0 {
		return nil
	}
	all := map[string]netip.Prefix{}
	for id, view := range v.Granted {
		if (provider == "" || provider == id) && view.Prefix.IsValid() {
			all[view.Key] = view.Prefix
		}
	}
	return all
}
