// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/registry/store/postgrestest"
)

// TestWrongClock has the clock of a registry's machine be hours behind that of its database, as that of one of several replicas can be: who
// is silent, and what is dropped for that, is decided by the clock of the database.
func TestWrongClock(t *testing.T) {
	leasing(t, postgrestest.Start(t).DatabaseAhead(t, 6*time.Hour))
}
