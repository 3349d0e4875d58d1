// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kpi

import (
	"encoding/json"
	"fmt"
	"time"
)

// MaxGap is the longest time between two observations that counts as watched.
const MaxGap = 5 * time.Minute

// enough is the share of a window that must have been watched before its
// availability is known: one in so many.
const enough = 10

// windows are the times over which availability is kept, each as a ring of slots.
var windows = [...]struct {
	name string
	slot int64 // In seconds.
	size int
}{
	{Availability1h, 5 * 60, 12},
	{Availability24h, 60 * 60, 24},
	{Availability30d, 24 * 60 * 60, 30},
}

// History is what a watcher saw of a provider. The zero History has seen nothing.
//
// Its windows are made of watched time: what passes while nobody watches, and
// what a clock leaps over, is in no window. So a wrong clock can neither invent
// availability nor wipe it out.
type History struct {
	// At is the last observation, in seconds since 1970, and Up what was seen.
	At int64 `json:"at"`
	Up bool  `json:"up"`
	// Rings are parallel to the windows.
	Rings [len(windows)]ring `json:"rings"`
	// Pods are what became of the pods on the provider.
	Pods Pods `json:"pods,omitempty"`
}

// ring holds, for slots of equal length, the seconds in which the provider was
// up. All slots but the last are full.
type ring struct {
	Up     []int64 `json:"up,omitempty"`
	Filled int64   `json:"filled,omitempty"` // Seconds of the last slot.
}

// Parse reads what String has written. An empty text is an empty History.
func Parse(text string) (History, error) {
	var h History
	if text == "" {
		return h, nil
	}
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return History{}, fmt.Errorf("parse the history %q: %w", text, err)
	}
	if !h.Pods.valid() {
		return History{}, fmt.Errorf("parse the history %q: the pods are not valid", text)
	}
	for i := range h.Rings {
		if !h.Rings[i].valid(windows[i].slot, windows[i].size) {
			return History{}, fmt.Errorf("parse the history %q: window %s is not valid", text, windows[i].name)
		}
	}
	return h, nil
}

// String writes the History as one line.
func (h History) String() string {
	text, err := json.Marshal(h)
	if err != nil {
		return "" // Numbers and booleans can be marshalled.
	}
	return string(text)
}

// Observe returns the History after one more observation. Since the last one the
// provider counts as what it was then, unless that is more than MaxGap ago.
func (h History) Observe(now time.Time, up bool) History {
	passed := now.Unix() - h.At
	if h.At != 0 && passed > 0 && passed <= int64(MaxGap/time.Second) {
		for i, w := range windows {
			h.Rings[i] = h.Rings[i].add(passed, h.Up, w.slot, w.size)
		}
	}
	h.At, h.Up = now.Unix(), up
	return h
}

// Resume returns the History for a watcher that has watched only since some time, and
// what it saw then: before that, nobody watched.
func (h History) Resume(since time.Time, up bool) History {
	if h.At != 0 && h.At < since.Unix() {
		h.At, h.Up = since.Unix(), up
	}
	return h
}

// Availability returns, by the names of the windows, the share of the watched
// time in which the provider was up. A window of which too little was watched is
// missing.
func (h History) Availability() map[string]float64 {
	shares := map[string]float64{}
	for i, w := range windows {
		r := h.Rings[i]
		if len(r.Up) == 0 {
			continue
		}
		watched := int64(len(r.Up)-1)*w.slot + r.Filled
		if watched < w.slot*int64(w.size)/enough {
			continue
		}
		up := int64(0)
		for _, seconds := range r.Up {
			up += seconds
		}
		shares[w.name] = float64(up) / float64(watched)
	}
	return shares
}

// Window is what was seen in one window of watched time, in slots of equal length.
type Window struct {
	// Name is that of the KPI that Availability makes of it.
	Name string
	// Slot is how long a slot is, and Slots how many there are when the window is full.
	Slot  time.Duration
	Slots int
	// Up is for how long the provider was up in each slot, the oldest first, in seconds. It is not to be changed.
	Up []int64
	// Last is how long the last slot is yet. All others are full.
	Last time.Duration
}

// Windows returns what was seen, the shortest window first. Those in which nothing was seen are missing.
func (h History) Windows() []Window {
	var seen []Window
	for i, w := range windows {
		if r := h.Rings[i]; len(r.Up) > 0 {
			seen = append(seen, Window{
				Name: w.name, Slot: time.Duration(w.slot) * time.Second, Slots: w.size, Up: r.Up, Last: time.Duration(r.Filled) * time.Second,
			})
		}
	}
	return seen
}

// add returns a ring with more seconds. It leaves the slots of r as they are.
func (r ring) add(seconds int64, up bool, slot int64, size int) ring {
	next := ring{Up: append(make([]int64, 0, len(r.Up)+1), r.Up...), Filled: r.Filled}
	for seconds > 0 {
		if len(next.Up) == 0 || next.Filled == slot {
			next.Up, next.Filled = append(next.Up, 0), 0
			next.Up = next.Up[max(0, len(next.Up)-size):]
		}
		part := min(seconds, slot-next.Filled)
		if up {
			next.Up[len(next.Up)-1] += part
		}
		next.Filled += part
		seconds -= part
	}
	return next
}

// valid reports whether a ring is one that add can have made.
func (r ring) valid(slot int64, size int) bool {
	if len(r.Up) > size || r.Filled < 0 || r.Filled > slot || (len(r.Up) == 0) != (r.Filled == 0) {
		return false
	}
	for i, up := range r.Up {
		if up < 0 || up > slot || i == len(r.Up)-1 && up > r.Filled {
			return false
		}
	}
	return true
}
