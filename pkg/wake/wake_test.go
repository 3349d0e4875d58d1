// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package wake_test

import (
	"sync"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/wake"
)

// TestSignal sets a signal from many goroutines while nobody takes it.
func TestSignal(t *testing.T) {
	s := wake.New()
	select {
	case <-s.Taken():
		t.Fatal("a new signal is set")
	default:
	}
	for round := range 2 {
		var callers sync.WaitGroup
		for range 10 {
			callers.Go(s.Set)
		}
		callers.Wait()
		select {
		case <-s.Taken():
		default:
			t.Fatalf("round %d: the signal is not set", round)
		}
		select {
		case <-s.Taken():
			t.Fatalf("round %d: it is taken twice", round)
		default:
		}
	}
	wake.Signal{}.Set() // It does not block.
}
