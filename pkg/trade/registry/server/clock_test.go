// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store/postgrestest"
)

// TestWrongClock has the clock of a registry's machine be hours behind that of its database, as that of one of several replicas can be: who
// is silent, and what is dropped for that, is decided by the clock of the database.
func TestWrongClock(t *testing.T) {
	const ahead = 6 * time.Hour
	databases := postgrestest.Start(t)
	leasing(t, databases.DatabaseAhead(t, ahead))

	r := run(t, databases.DatabaseAhead(t, ahead), nil)
	p, c := r.member(t, "p")
	announced, err := r.store.Party(t.Context(), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := c.Renew(t.Context(), p.ID)
	if least := time.Now().Add(ahead); err != nil || lease.Until.Before(least) || announced.LeaseUntil.Before(least) {
		t.Errorf("leases last until %s and %s, and it is %s for the database: %v", announced.LeaseUntil, lease.Until, least, err)
	}
}
