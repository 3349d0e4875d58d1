// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"os"
	"strings"
	"testing"
)

// TestDocumentation looks for each attempt in the page that says what became of it.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	peer := &Peer{Twin: "twin"}
	for row := range strings.Lines(Report(peer.Attempts())) {
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/security.md does not have the row\n%s", row)
		}
	}
}
