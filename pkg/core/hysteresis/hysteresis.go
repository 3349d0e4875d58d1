// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hysteresis keeps a measured value between two thresholds, by taking one step
// more when it stays above the upper one, and one step less when it stays below the
// lower one. What is between them, and what is unknown, changes nothing.
//
// It decides from values, with the time and its memory as arguments. It does not
// know what is measured, nor what a step is: the more steps, the lower the value.
package hysteresis

import (
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
)

// Band is where a value is to stay, and the steps that are allowed for it.
type Band struct {
	Lower, Upper float64
	// Window is for how long the value must be measured to be outside before a step.
	Window time.Duration
	// Min and Max bound the steps; a Max of zero is none.
	Min, Max int
}

// Direction is where a value wants to go, in steps.
type Direction int

// The directions.
const (
	Stay Direction = 0
	More Direction = 1
	Less Direction = -1
)

// Memory is what one observation has to know of those before. The zero Memory is
// that of the first.
type Memory struct {
	// Steps are those that are taken; zero if nothing was decided yet.
	Steps int
	// Wants is where the value asks to go since the measurement at Since. Seen is the
	// last measurement of it.
	Wants       Direction
	Since, Seen time.Time
}

// Supply is what there is to step on.
type Supply struct {
	// Used are the steps that are taken where nobody remembers how many were decided.
	Used int
	// Available are the steps that could have an effect. There may be fewer than were
	// taken.
	Available int
}

// State says what became of an observation.
type State int

// The states.
const (
	// Unknown: there is no value that counts.
	Unknown State = iota
	// Inside: the value is between the thresholds.
	Inside
	// Waiting: the value is outside, and not yet for the whole window.
	Waiting
	// AtBound: the value is outside, and no further step is allowed or available.
	AtBound
	// Stepped: a step was taken.
	Stepped
)

// Begin returns a memory whose steps are within the bounds. Without steps it begins
// with those that are used.
func (b Band) Begin(m Memory, s Supply) Memory {
	if m.Steps == 0 {
		m.Steps = s.Used
	}
	m.Steps = max(m.Steps, b.Min, 1)
	if b.Max > 0 {
		m.Steps = min(m.Steps, b.Max)
	}
	return m
}

// Observe returns the memory after a measurement, which may be one that it has seen.
//
// The window is made of measurements: it begins again where more than half of it
// passes between two of them, so that neither what nobody watched nor a clock that
// leaps can fill it. An unknown value ends no window and fills none.
func (b Band) Observe(now time.Time, value kpi.KPI, m Memory, s Supply) (Memory, State) {
	m = b.Begin(m, s)
	if !value.Known(now) {
		return m, Unknown
	}
	steps := m.Steps
	if s.Available > 0 {
		steps = min(steps, s.Available)
	}
	wants := b.wants(value.Value)
	switch {
	case wants == Stay:
		return Memory{Steps: m.Steps}, Inside
	case wants == More && (steps >= s.Available || b.Max > 0 && steps >= b.Max), wants == Less && steps <= max(b.Min, 1):
		return Memory{Steps: m.Steps}, AtBound
	case wants != m.Wants || value.Measured.Before(m.Seen) || value.Measured.Sub(m.Seen) > b.Window/2:
		m.Since = value.Measured
	}
	m.Wants, m.Seen = wants, value.Measured
	if m.Seen.Sub(m.Since) < b.Window {
		return m, Waiting
	}
	return Memory{Steps: steps + int(wants)}, Stepped
}

func (b Band) wants(value float64) Direction {
	switch {
	case value > b.Upper:
		return More
	case value < b.Lower:
		return Less
	default:
		return Stay
	}
}
