// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation_test

import (
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationtest"
)

// TestMemory holds the store of tests to what stores promise.
func TestMemory(t *testing.T) {
	negotiationtest.TestStore(t, func(_ *testing.T, reading func()) [2]negotiation.Store {
		memory := &negotiationtest.Memory{BeforeRead: reading}
		return [2]negotiation.Store{memory, memory}
	})
}
