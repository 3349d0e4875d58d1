// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Bounds of the texts in statuses. What clusters call themselves, and what a message says of what they wrote, is as long as
// they like: with a text that is too long the API server would take nothing of a status.
const (
	// MaxName is the most that a field for a name takes.
	MaxName = 253
	// MaxMessage is the most that is said of one thing.
	MaxMessage = 1024
)
