// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package excerpt_test

import (
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/excerpt"
)

func TestOf(t *testing.T) {
	for _, tc := range []struct{ reason, text, want string }{
		{reason: "A short text stays.", text: "12345678", want: "12345678"},
		{reason: "Of a long one it is seen that it is cut.", text: "123456789", want: "12345..."},
		{reason: "No character is cut in two.", text: "1234é6789", want: "1234..."},
	} {
		if got := excerpt.Of(tc.text, 8); got != tc.want {
			t.Errorf("%s\nOf(%q) = %q, want %q", tc.reason, tc.text, got, tc.want)
		}
	}
}

func TestNames(t *testing.T) {
	for _, tc := range []struct {
		reason string
		all    []string
		want   string
	}{
		{"Of none there is nothing to say.", nil, ""},
		{"A single one is there.", []string{"a"}, "a"},
		{"As many as there is room for are.", []string{"a", "b"}, "a, b"},
		{"Others are counted.", []string{"a", "b", "c", "d", "e"}, "a, b and 3 more"},
	} {
		if got := excerpt.Names(tc.all, 2); got != tc.want {
			t.Errorf("%s\nNames(%q) = %q, want %q", tc.reason, tc.all, got, tc.want)
		}
	}
}
