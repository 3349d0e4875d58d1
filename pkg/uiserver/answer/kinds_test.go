// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/uiserver/trading"
)

// TestKinds holds that a cluster which is a broker and trades has each kind once, and of what both have the broker's.
func TestKinds(t *testing.T) {
	both, trades := Config{Broker: true, Trades: true}, Config{Trades: true}
	all := both.kinds()
	if len(all) != len(shown.Kinds())+len(trading.Kinds())-1 {
		t.Errorf("a broker that trades has %v", all)
	}
	if slices.Contains(both.ofTrade(), trading.Activity) || !slices.Contains(both.ofCluster(), shown.Activity) {
		t.Error("the activity of a broker that trades does not know its providers")
	}
	if !slices.Contains(trades.kinds(), trading.Activity) || slices.Contains(trades.kinds(), shown.Providers) {
		t.Errorf("a cluster that trades has %v", trades.kinds())
	}
}

// TestRightsSaid holds that docs/ui.md names the rights without which a kind is not shown.
func TestRightsSaid(t *testing.T) {
	text, err := os.ReadFile("../../../docs/ui.md")
	if err != nil {
		t.Fatal(err)
	}
	ofBroker, _ := shown.Needs(v09.Line{}.Kinds(), shown.Activity)
	var ofTrade []client.Object
	for _, kind := range trading.Kinds() {
		if kind != trading.Activity {
			ofTrade = append(ofTrade, trading.Needs(kind)...)
		}
	}
	for name, tc := range map[string]struct {
		section string
		needed  []client.Object
	}{
		"Activity of a broker":          {"## Who did it\n", ofBroker},
		"Activity of who trades":        {"## Who did it\n", trading.Needs(trading.Activity)},
		"What else who trades is shown": {"## What is bought and sold\n", ofTrade},
	} {
		t.Run(name, func(t *testing.T) {
			_, section, found := strings.Cut(string(text), tc.section)
			section, _, _ = strings.Cut(section, "\n## ")
			_, rights, said := strings.Cut(section, "right to list and watch ")
			if !found || !said {
				t.Fatalf("there is no section %q that speaks of rights", tc.section)
			}
			for _, object := range tc.needed {
				kind := strings.ToLower(reflect.TypeOf(object).Elem().Name())
				resources := kind + "s"
				if stem, is := strings.CutSuffix(kind, "y"); is {
					resources = stem + "ies"
				}
				if !strings.Contains(rights, resources) {
					t.Errorf("it does not name the right to list and watch %s", resources)
				}
			}
		})
	}
}
