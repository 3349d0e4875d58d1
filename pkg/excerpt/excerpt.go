// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package excerpt shortens what others wrote, which is as long as they like, for where
// there is room for so much only: a field of a status, an annotation, a line of the log.
// So it does with lists of names.
//
// It does not know how much that is.
package excerpt

import (
	"fmt"
	"strings"
)

const ellipsis = "..."

// Of returns the beginning of a text, of at most so many bytes, and that it was cut. They
// must be enough to say that.
func Of(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}

// Names joins the first of some names, and says how many there are besides: "a, b and 3 more". Of none it returns "".
func Names(all []string, most int) string {
	text := strings.Join(all[:min(most, len(all))], ", ")
	if more := len(all) - most; more > 0 {
		text = fmt.Sprintf("%s and %d more", text, more)
	}
	return text
}
