// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"os"
	"strings"
	"testing"
)

// TestDocumentation looks for all attempts in the page that says what became of them.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	peer, program := &Peer{Twin: "twin"}, &Program{}
	for who, attempts := range map[string][]Attempt{"a peer": peer.Attempts(), "the connector": program.Connector(), "the guard": program.Guard()} {
		if table := Report(attempts); !strings.Contains(string(page), "\n\n"+table+"\n") {
			t.Errorf("docs/security.md does not have the table of what %s tries\n%s", who, table)
		}
	}
}
