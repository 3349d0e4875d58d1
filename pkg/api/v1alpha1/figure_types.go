// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Price is what a provider costs. Amounts that are missing are those that the
// provider offers, in this currency and for this period.
type Price struct {
	// Currency is the three letters of the currency (ISO 4217).
	// +kubebuilder:validation:Pattern=`^[A-Z]{3}$`
	Currency string `json:"currency"`
	// Period is the time that the amounts are for.
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="the period must be longer than nothing"
	// +optional
	Period *metav1.Duration `json:"period,omitempty"`
	// CPU is the price of one core.
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// Memory is the price of one GiB.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// Carbon is what the electricity of a provider emits.
type Carbon struct {
	// Intensity is how much, in the unit. More than 10,000 is not believed.
	// +kubebuilder:validation:XValidation:rule="!string(self).startsWith('-')",message="nothing emits less than nothing"
	Intensity resource.Quantity `json:"intensity"`
	// Unit is grams of carbon dioxide, or what warms as much, for a kilowatt-hour.
	// +kubebuilder:validation:Enum="gCO2e/kWh"
	Unit string `json:"unit"`
	// Measured is when it was measured; without it, it is true at any time.
	// +optional
	Measured *metav1.Time `json:"measured,omitempty"`
	// Expires is when it no longer counts; without it, it does not expire.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
}

// Figure is one measured value of a provider.
type Figure struct {
	// Name is what policies call it.
	Name string `json:"name"`
	// Value is a decimal number.
	Value string `json:"value"`
	// Unit tells which values can be compared with each other.
	Unit string `json:"unit"`
	// Measured is when it was measured.
	Measured metav1.Time `json:"measured"`
	// Expires is when it no longer counts.
	Expires metav1.Time `json:"expires"`
}

// Figures are what the broker measures of a provider.
type Figures struct {
	// KPIs are the measured values, by name.
	// +listType=map
	// +listMapKey=name
	// +optional
	KPIs []Figure `json:"kpis,omitempty"`
	// History is what the broker has seen of the provider's availability, as it
	// remembers it. It is not meant for people.
	// +optional
	History string `json:"history,omitempty"`
}

// RoundTrip is how far a provider is from a consumer, as the consumer told.
type RoundTrip struct {
	// Provider is the cluster ID of the provider.
	Provider string `json:"provider"`
	// Value is a decimal number.
	Value string `json:"value"`
	// Unit is that of the value.
	Unit string `json:"unit"`
	// Measured is when the consumer told it, by the broker's clock.
	Measured metav1.Time `json:"measured"`
	// Expires is when it no longer counts.
	Expires metav1.Time `json:"expires"`
}
