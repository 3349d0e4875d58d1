// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kpi holds figures about providers: a value with its unit, when it was
// measured, and until when it may be trusted. It also keeps the availability of a
// provider, from what a watcher saw of it.
//
// It measures nothing, reads no clock, and does not know who uses the figures.
package kpi

import (
	"math"
	"time"
)

// Names of figures.
const (
	// Availability1h, Availability24h and Availability30d are the shares of the
	// watched time in which the provider could be used.
	Availability1h  = "availability1h"
	Availability24h = "availability24h"
	Availability30d = "availability30d"
	// FreeCPU and FreeMemory are what consumers do not use of what the broker offers.
	FreeCPU    = "freeCPU"
	FreeMemory = "freeMemory"
	// RoundTripTime is between the broker and the provider.
	RoundTripTime = "roundTripTime"
	// PriceCPU is the price of one core for an hour.
	PriceCPU = "priceCPU"
	// PriceMemory is the price of one GiB for an hour.
	PriceMemory = "priceMemory"
)

// Units of figures, besides prices.
const (
	Ratio        = "ratio"
	Milliseconds = "ms"
	Cores        = "cores"
	GiB          = "GiB"
)

// skew is how far ahead of ours a clock that measures may be.
const skew = time.Minute

// Figure is one measured value. The zero Figure is unknown.
type Figure struct {
	Value float64
	// Unit tells which values can be compared with each other.
	Unit string
	// Measured is when the value was true, and Expires when it no longer counts.
	Measured, Expires time.Time
}

// Known tells whether the figure counts at a time: it is a number, it has not
// expired, and it is not from the future, as after a clock was set back.
func (f Figure) Known(now time.Time) bool {
	return !math.IsNaN(f.Value) && !math.IsInf(f.Value, 0) &&
		now.Before(f.Expires) && !f.Measured.After(now.Add(skew))
}
