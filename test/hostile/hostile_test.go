// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestDocumentation looks for all attempts in the page that says what became of them.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	peer, relay, program := &Peer{Twin: "twin"}, &Relay{Map: "map"}, &Program{}
	atRegistry, atSeller := Thief{}.Thefts()
	guest, newcomer, insider := &Guest{ID: "c", Victim: "p"}, &Newcomer{ID: "n"}, &Insider{}
	for what, table := range map[string]string{
		"a consumer with Liqo 1.x tries":      ReportRows(guest.Rows()),
		"a newcomer with Liqo 1.x tries":      ReportRows(append(newcomer.Rows(), newcomer.Drained()...)),
		"is tried by Liqo 1.x":                ReportRows(insider.Rows()),
		"a peer tries":                        Report(peer.Attempts()),
		"a peer tries by Liqo":                Report(relay.Attempts()),
		"the connector tries":                 Report(program.Connector()),
		"the guard tries":                     Report(program.Guard()),
		"who has a key tries at the registry": ReportThefts(atRegistry),
		"who has a key tries at a seller":     ReportThefts(atSeller),
	} {
		if !strings.Contains(string(page), "\n\n"+table+"\n") {
			t.Errorf("docs/security.md does not have the table of what %s\n%s", what, table)
		}
	}
}

// TestTryAll has attempts succeed and be refused, for the reason that they should be and for another one.
func TestTryAll(t *testing.T) {
	answers := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	absent := errors.New("no such kind")
	attempts := []Attempt{
		{"win", "all", refused, answers(nil)},
		{"be refused", "all", refused, answers(errors.New("it is denied"))},
		{"ask for what is not there", "all", refused, answers(absent)},
		{"be refused for another reason", "all", refused, answers(errors.New("it cannot be"))},
	}
	could, err := TryAll(t.Context(), attempts, func(got error) bool { return errors.Is(got, absent) })
	if !slices.Equal(could, []string{"win"}) {
		t.Errorf("what could be done: %q", could)
	}
	if err == nil || !strings.Contains(err.Error(), "be refused for another reason") || strings.Contains(err.Error(), absent.Error()) {
		t.Errorf("the answers that are wrong: %v", err)
	}
	if _, err := TryAll(t.Context(), attempts[:3], nil); !errors.Is(err, absent) {
		t.Errorf("the answers that are wrong: %v", err)
	}
}
