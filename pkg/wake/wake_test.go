// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package wake_test

import (
	"context"
	"errors"
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

// TestBroadcast wakes all that wait, and who waits after that only the next time.
func TestBroadcast(t *testing.T) {
	var b wake.Broadcast
	b.Send() // Nobody waits.
	for round := range 2 {
		first, second := b.Next(), b.Next()
		for _, next := range []<-chan struct{}{first, second} {
			select {
			case <-next:
				t.Fatalf("round %d: one is woken too early", round)
			default:
			}
		}
		b.Send()
		<-first
		<-second
	}
}

// TestLater waits for a value before it is made, and gets it as often as it is asked for after that.
func TestLater(t *testing.T) {
	later := wake.NewLater[int]()
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := later.Get(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("before it is made: %v", err)
	}
	var waiting sync.WaitGroup
	for range 3 {
		waiting.Go(func() {
			if got, err := later.Get(t.Context()); got != 7 || err != nil {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
	later.Set(7)
	waiting.Wait()
	if got, err := later.Get(t.Context()); got != 7 || err != nil {
		t.Errorf("after it is made: %d, %v", got, err)
	}
}
