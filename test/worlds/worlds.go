// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package worlds runs tests in random worlds for as long as there is time. It does not know
// what a world is.
package worlds

import (
	"os"
	"strconv"
	"testing"
	"time"
)

const (
	// Budget is the variable that says for how long each test looks at worlds, such as 3m.
	// They are other ones each time then.
	Budget = "LIQO_BROKER_RANDOM_WORLDS"
	// Seed is the variable that says which world to look at, and no other one.
	Seed = "LIQO_BROKER_TEST_SEED"

	usual = 2 * time.Second
)

// Run looks at one world after the other, each of which follows from its seed, until one
// fails or the time is over. Without a variable the worlds are the same ones each time.
func Run(t *testing.T, world func(t *testing.T, seed uint64)) {
	t.Helper()
	budget, first := usual, uint64(0)
	if text := os.Getenv(Budget); text != "" {
		var err error
		if budget, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", Budget, err)
		}
		first = uint64(time.Now().UnixNano()) // Any will do.
	}
	if text := os.Getenv(Seed); text != "" {
		var err error
		if first, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", Seed, err)
		}
		budget = 0
	}
	seed, began := first, time.Now()
	defer func() {
		if t.Failed() {
			t.Logf("%s=%d repeats this", Seed, seed)
		}
	}()
	for {
		world(t, seed)
		if t.Failed() || time.Since(began) >= budget {
			break
		}
		seed++
	}
	t.Logf("%d worlds", seed-first+1)
}
