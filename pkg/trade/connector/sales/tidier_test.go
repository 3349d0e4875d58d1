// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package sales

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/capacitorset/liqo-broker/pkg/trade/connector/clocktest"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
)

// TestTidier tidies at the start and again and again, and only what fails at the start is an error.
func TestTidier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tidied := 0
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- tidier{log: logr.Discard(), tidy: func(context.Context) error {
				if tidied++; tidied == 2 {
					return errors.New("no API server")
				}
				return nil
			}}.Start(ctx)
		}()
		time.Sleep(2*tidyAgain + time.Second) // In the bubble's time.
		synctest.Wait()
		if tidied != 3 {
			t.Errorf("tidied %d times, want at the start, in vain, and again", tidied)
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
	failed := errors.New("no API server")
	if err := (tidier{log: logr.Discard(), tidy: func(context.Context) error { return failed }}).Start(t.Context()); !errors.Is(err, failed) {
		t.Errorf("failed at the start: %v", err)
	}
}

// TestTidiesReservations has nothing stay reserved for longer than a buyer may take to sign, however long people may take to decide.
func TestTidiesReservations(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cfg := Config{Applier: negotiation.Applier{
		Seller: contract.Seller{ReserveFor: time.Minute, DecideFor: time.Hour}, Clock: clocktest.Func(func() time.Time { return now }),
	}}
	cfg.Tidy = func(_ context.Context, at time.Time, longest time.Duration) error {
		if !at.Equal(now) || longest != time.Minute {
			t.Errorf("tidied at %s, with reservations of up to %s", at, longest)
		}
		return nil
	}
	if err := cfg.tidy(t.Context()); err != nil {
		t.Error(err)
	}
}
