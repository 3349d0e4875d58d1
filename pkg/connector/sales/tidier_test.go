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
