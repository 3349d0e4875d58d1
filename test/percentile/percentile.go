// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package percentile says how long the slowest runs of a benchmark take. The mean,
// which package testing reports, hides them. It does not know what is measured.
package percentile

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// most is how many runs are remembered.
const most = 1 << 16

// Of returns what so many of a hundred durations are at most, one to all of them, in whatever order they come; zero if there are none. Of
// fewer than a hundred the 99th is the longest.
func Of(durations []time.Duration, percent int) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	return sorted[(len(sorted)*percent+99)/100-1]
}

// Report runs a function for as long as the benchmark goes on, and reports what all
// but one in a hundred of the runs take at most: of the time as p99-ms, and of a
// processor as p99-cpu-ms. On a machine that has nothing else to do they are close.
func Report(b *testing.B, run func()) {
	b.Helper()
	b.ReportAllocs()
	runtime.LockOSThread() // The processor's time is that of a thread.
	defer runtime.UnlockOSThread()
	took, used := make([]time.Duration, 0, most), make([]time.Duration, 0, most)
	for b.Loop() {
		began, processor := time.Now(), processorTime(b)
		run()
		if passed, spent := time.Since(began), processorTime(b)-processor; len(took) < most {
			took, used = append(took, passed), append(used, spent)
		}
	}
	for unit, durations := range map[string][]time.Duration{"p99-ms": took, "p99-cpu-ms": used} {
		b.ReportMetric(Of(durations, 99).Seconds()*1e3, unit)
	}
}

// processorTime returns how much of a processor the thread has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var spec unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &spec); err != nil {
		b.Fatalf("read the processor time of the thread: %v", err)
	}
	return time.Duration(spec.Nano())
}
