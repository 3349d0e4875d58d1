// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package worlds runs tests in random worlds for as long as there is time. It does not know
// what a world is.
package worlds

import (
	"errors"
	"fmt"
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
	// Record is the variable that names a file to which each test adds what it has looked at.
	Record = "LIQO_BROKER_WORLDS_RECORD"

	usual = 2 * time.Second
)

// Run looks at one world after the other, each of which follows from its seed, until one
// fails or the time is over. Without a variable the worlds are the same ones each time.
func Run(t *testing.T, world func(t *testing.T, seed uint64)) {
	t.Helper()
	first, budget := uint64(0), usual
	if given, is := budgetOf(t); is {
		first, budget = anySeed(), given
	}
	began := time.Now()
	run(t, first, world, func(uint64) bool { return time.Since(began) < budget })
}

// Some looks at a number of worlds, the same ones each time, until one fails. With Budget it looks at other ones each time for as long as
// that. It is for worlds whose time says little: of each the computer does much.
func Some(t *testing.T, count uint64, world func(t *testing.T, seed uint64)) {
	t.Helper()
	first, goOn := uint64(0), func(done uint64) bool { return done < count }
	if budget, is := budgetOf(t); is {
		began := time.Now()
		first, goOn = anySeed(), func(uint64) bool { return time.Since(began) < budget }
	}
	run(t, first, world, goOn)
}

// anySeed returns another seed each time.
func anySeed() uint64 { return uint64(time.Now().UnixNano()) }

// budgetOf returns for how long to look, if somebody has said so.
func budgetOf(t *testing.T) (budget time.Duration, given bool) {
	t.Helper()
	text := os.Getenv(Budget)
	if text == "" {
		return 0, false
	}
	budget, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", Budget, err)
	}
	return budget, true
}

// run looks at worlds from a seed on, while goOn says so after as many as are done, or only at that of Seed.
func run(t *testing.T, first uint64, world func(t *testing.T, seed uint64), goOn func(done uint64) bool) {
	t.Helper()
	if text := os.Getenv(Seed); text != "" {
		var err error
		if first, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", Seed, err)
		}
		goOn = func(uint64) bool { return false }
	}
	seed := first
	defer func() {
		if t.Failed() {
			t.Logf("%s=%d go test -count=1 -run '^%s$' repeats this in the folder of the test", Seed, seed, t.Name())
		}
	}()
	for {
		world(t, seed)
		if t.Failed() || !goOn(seed-first+1) {
			break
		}
		seed++
	}
	Sayf(t, "%d worlds, from seed %d on", seed-first+1, first)
}

// Sayf tells in the log of a test what it has looked at, and in the file of Record.
func Sayf(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Logf(format, args...)
	path := os.Getenv(Record)
	if path == "" {
		return
	}
	record, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatalf("%s: %v", Record, err)
	}
	_, err = fmt.Fprintf(record, t.Name()+": "+format+"\n", args...)
	if err = errors.Join(err, record.Close()); err != nil {
		t.Fatalf("%s: %v", Record, err)
	}
}
