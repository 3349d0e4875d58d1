// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// TestMachine holds the picture of a contract's states in the page against the table of the contract: all states are drawn, no arrow leads
// where a contract cannot go, and what is not drawn leads to the end, which all states have in common.
func TestMachine(t *testing.T) {
	const file = "ui/src/trade/machine.ts"
	source, err := os.ReadFile(filepath.Join("..", "..", file))
	if err != nil {
		t.Fatal(err)
	}
	drawn := map[[2]contract.State]bool{}
	for _, arrow := range regexp.MustCompile(`\["(\w+)", "(\w+)"\]`).FindAllSubmatch(source, -1) {
		drawn[[2]contract.State{contract.State(arrow[1]), contract.State(arrow[2])}] = true
	}
	if len(drawn) == 0 {
		t.Fatalf("%s has no arrows", file)
	}
	possible := map[[2]contract.State]bool{}
	for _, from := range contract.States() {
		if from == contract.None {
			continue
		}
		if !regexp.MustCompile(`\b` + string(from) + `: \[\d, \d\]`).Match(source) {
			t.Errorf("%s has no place for %s", file, from)
		}
		for _, event := range contract.Events() {
			for _, to := range contract.Lookup(from, event).To {
				possible[[2]contract.State{from, to}] = from != to
			}
		}
	}
	ends := []contract.State{contract.Terminating, contract.Ended}
	for way, is := range possible {
		if is && !drawn[way] && !slices.Contains(ends, way[1]) {
			t.Errorf("%s does not draw that %s can become %s", file, way[0], way[1])
		}
	}
	for way := range drawn {
		if !possible[way] {
			t.Errorf("%s draws that %s becomes %s, which no contract does", file, way[0], way[1])
		}
	}
}
