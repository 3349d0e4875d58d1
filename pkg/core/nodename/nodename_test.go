// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package nodename

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

func TestName(t *testing.T) {
	cases := map[string]struct {
		reason, called, word string
	}{
		"Plain":   {reason: "People recognise the provider.", called: "provider-a", word: "provider-a"},
		"Capital": {reason: "Names are small.", called: "Turin DC", word: "turin-dc"},
		"Hostile": {reason: "What no name may have is left out.", called: "../a\x00b\n{}--c.", word: "a-b-c"},
		"Empty":   {reason: "A cluster without a name has a node.", called: "", word: "provider"},
		"Foreign": {reason: "So has one whose name has no letter of ours.", called: "Ωμέγα", word: "provider"},
		"Long":    {reason: "A long name is cut.", called: strings.Repeat("x", 300), word: strings.Repeat("x", 41)},
		"LongCut": {reason: "It does not end in a dash.", called: strings.Repeat("x", 40) + "-y", word: strings.Repeat("x", 40)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Name("broker", cluster.Identity{ID: "p", Name: tc.called})
			mark := Mark("broker", "p")
			if got != "liqo-"+tc.word+"-"+mark {
				t.Errorf("%s\ngot %s", tc.reason, got)
			}
			if errs := append(validation.IsDNS1123Label(got), validation.IsValidLabelValue(got)...); len(errs) > 0 {
				t.Errorf("%s\n%s: %v", tc.reason, got, errs)
			}
			if found, ok := MarkOf(got); !ok || found != mark {
				t.Errorf("%s\nthe mark of %s is %q, %t", tc.reason, got, found, ok)
			}
		})
	}
}

// TestOfSlice holds that names which have room in a certificate are known again, and no others are taken for them.
func TestOfSlice(t *testing.T) {
	long := cluster.Identity{ID: "p", Name: strings.Repeat("x", 63)}
	name := OfSlice("broker", long)
	if want := "liqo-" + strings.Repeat("x", 28) + "-" + Mark("broker", "p"); name != want {
		t.Errorf("OfSlice() = %s, want %s", name, want)
	}
	if short := (cluster.Identity{ID: "p", Name: "milan"}); OfSlice("broker", short) != Name("broker", short) {
		t.Errorf("a short name is cut: %s", OfSlice("broker", short))
	}
	for reason, tc := range map[string]struct {
		name             string
		broker, provider cluster.ID
		refused          bool
	}{
		"It is the name.":                   {name, "broker", "p", false},
		"People call the provider so.":      {"liqo-y-" + Mark("broker", "p"), "broker", "p", false},
		"It is the node of another one.":    {name, "broker", "q", true},
		"It is the node of another broker.": {name, "other", "p", true},
		"It has no room.":                   {Name("broker", long), "broker", "p", true},
		"It is a node of this cluster.":     {"worker-1", "broker", "p", true},
		"It is no name.":                    {"liqo-../x-" + Mark("broker", "p"), "broker", "p", true},
		"It is none.":                       {"", "broker", "p", true},
	} {
		if err := CheckOfSlice(tc.name, tc.broker, tc.provider); (err != nil) != tc.refused {
			t.Errorf("%s\nCheckOfSlice(%q) = %v", reason, tc.name, err)
		}
	}
}

// FuzzName gives clusters any names and IDs.
func FuzzName(f *testing.F) {
	f.Add("b", "p", "provider")
	f.Add("bp", "", "-")
	f.Fuzz(func(t *testing.T, broker, provider, called string) {
		name := Name(cluster.ID(broker), cluster.Identity{ID: cluster.ID(provider), Name: called})
		if errs := append(validation.IsDNS1123Label(name), validation.IsValidLabelValue(name)...); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
		}
		if mark, ok := MarkOf(name); !ok || mark != Mark(cluster.ID(broker), cluster.ID(provider)) {
			t.Errorf("the mark of %s is %q, %t", name, mark, ok)
		}
	})
}

func TestMark(t *testing.T) {
	marks := map[string]string{}
	for what, mark := range map[string]string{
		"a provider": Mark("b", "p"), "another provider": Mark("b", "q"), "another broker": Mark("c", "p"), "shifted": Mark("bp", ""),
	} {
		if other, taken := marks[mark]; taken {
			t.Errorf("%s and %s have the same mark", what, other)
		}
		marks[mark] = what
	}
	for _, name := range []string{
		"liqo-broker", "", "liqo-abcdefghijklmnop", "node-a-" + Mark("b", "p"), "liqo-" + strings.Repeat("x", 64) + "-" + Mark("b", "p"),
	} {
		if mark, ok := MarkOf(name); ok {
			t.Errorf("%q has the mark %s", name, mark)
		}
	}
}
