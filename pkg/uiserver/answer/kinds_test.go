// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"slices"
	"testing"

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
