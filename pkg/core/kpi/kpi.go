// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kpi holds KPIs about providers: a value with its unit, when it was
// measured, and until when it may be trusted. It also keeps the availability of a
// provider, and what became of the pods there, from what a watcher saw.
//
// It measures nothing, reads no clock, and does not know who uses the KPIs.
package kpi

import (
	"math"
	"time"
)

// Names of KPIs.
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
	// FailureRate is the share of the pods that the provider let fail.
	FailureRate = "failureRate"
	// StartupMedian and StartupP90 are how long pods take from being bound to the
	// provider until they are ready.
	StartupMedian = "startupMedian"
	StartupP90    = "startupP90"
	// Carbon is what the provider's electricity emits.
	Carbon = "carbon"
	// ConsumerRoundTripTime is between the consumer that is chosen for, and the provider.
	ConsumerRoundTripTime = "consumerRoundTripTime"
)

// Units of KPIs, besides prices.
const (
	Ratio        = "ratio"
	Milliseconds = "ms"
	Cores        = "cores"
	GiB          = "GiB"
	Seconds      = "s"
	GramsPerKWh  = "gCO2e/kWh"
)

// What a consumer may tell of how far a provider is.
const (
	// MaxRoundTrip is the longest round-trip time that is believed.
	MaxRoundTrip = time.Minute
	// MaxRoundTripAge is by how much the measurement may be older than what is told of it, or later by another clock: Liqo measures
	// at least every 30 s.
	MaxRoundTripAge = 2 * time.Minute
)

// skew is how far ahead of ours a clock that measures may be.
const skew = time.Minute

// KPI is one measured value. The zero KPI is unknown.
type KPI struct {
	Value float64
	// Unit tells which values can be compared with each other.
	Unit string
	// Measured is when the value was true, and Expires when it no longer counts.
	Measured, Expires time.Time
}

// Known reports whether the KPI counts at a time: it is a number, it has not
// expired, and it is not from the future, as after a clock was set back.
func (k KPI) Known(now time.Time) bool {
	return !math.IsNaN(k.Value) && !math.IsInf(k.Value, 0) &&
		now.Before(k.Expires) && !k.Measured.After(now.Add(skew))
}
