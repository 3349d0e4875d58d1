// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "strings"

// Bounds of the texts in statuses. What clusters call themselves, and what a message says of what they wrote, is as long as
// they like: with a text that is too long the API server would take nothing of a status.
const (
	// MaxName is the most that a field for a name takes.
	MaxName = 253
	// MaxMessage is the most that is said of one thing.
	MaxMessage = 1024
)

// Cut returns the beginning of a text, of at most so many bytes, and that it was cut.
func Cut(text string, most int) string {
	const ellipsis = "..."
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}
