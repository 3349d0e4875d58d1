// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package sales

import (
	"testing"
	"time"
)

// TestRetries has the grant of a contract fail for hours, as while Liqo is away: it is tried again within half a minute all the time.
func TestRetries(t *testing.T) {
	again := retries()
	first, last, failed := again.When("s"), time.Duration(0), time.Duration(0)
	for failed < 5*time.Hour {
		last = again.When("s")
		failed += last
		if last > 30*time.Second {
			t.Fatalf("after %s it is tried again in %s", failed-last, last)
		}
	}
	if first > time.Second || last < 10*time.Second {
		t.Errorf("it is tried again after %s, and then after %s", first, last)
	}
}
