// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"net/netip"
	"slices"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// Agent is how the agent of a consumer is.
type Agent int

// How an agent can be, in the order in which one thing hides the next.
const (
	// AgentNotAsked has nothing to acknowledge.
	AgentNotAsked Agent = iota
	// AgentUnreadable tells what cannot be read.
	AgentUnreadable
	// AgentNeverHeard has told nothing.
	AgentNeverHeard
	// AgentSilent has told nothing for longer than MaxSilence, or its clock is wrong by more.
	AgentSilent
	// AgentBehind has not acknowledged all views that the consumer was told.
	AgentBehind
	// AgentReporting has.
	AgentReporting
)

// Heard is what was heard of a consumer's agent.
type Heard struct {
	Views

	// Unreadable says what of it cannot be read; empty if all can.
	Unreadable string
	// ToldViews are the views that the consumer was told, by their keys.
	ToldViews map[string]netip.Prefix
}

// Agent returns how the agent is, and after how long it may be otherwise though nothing is told; zero for never.
func (h *Heard) Agent() (agent Agent, turns time.Duration) {
	turns = h.Turns()
	switch {
	case !h.Asked:
		return AgentNotAsked, 0
	case h.Told.IsZero() && h.Unreadable != "":
		return AgentUnreadable, 0
	case h.Told.IsZero():
		return AgentNeverHeard, 0
	case !h.IsFresh():
		return AgentSilent, turns
	case h.Unreadable != "":
		return AgentUnreadable, turns
	case h.Behind() > 0:
		return AgentBehind, turns
	default:
		return AgentReporting, turns
	}
}

// Lacking returns the providers of which the agent has not acknowledged the view that the consumer was told, in order.
func (h *Heard) Lacking() []cluster.ID {
	var lacking []cluster.ID
	for id, view := range h.Granted {
		if prefix, told := h.ToldViews[view.Key]; told && h.Acknowledged[view.Key] != prefix {
			lacking = append(lacking, id)
		}
	}
	slices.Sort(lacking)
	return lacking
}

// Behind returns how many of the views that the consumer was told its agent has not acknowledged as they are.
func (h *Heard) Behind() int {
	n := 0
	for key, prefix := range h.ToldViews {
		if h.Acknowledged[key] != prefix {
			n++
		}
	}
	return n
}
