// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package percentile

import (
	"fmt"
	"strings"
	"time"
)

// Stages are how long it has taken, each time, to get to each of some stages that are passed one after the other.
type Stages struct {
	// Names are those of the stages.
	Names []string
	took  [][]time.Duration // By stage, from the beginning.
}

// Add notes one time: from its beginning to each of the stages.
func (s *Stages) Add(took []time.Duration) {
	if s.took == nil {
		s.took = make([][]time.Duration, len(s.Names))
	}
	for i := range s.Names {
		s.took[i] = append(s.took[i], took[i])
	}
}

// Whole returns within which time so many of a hundred were at the last stage; zero if nothing was noted.
func (s *Stages) Whole(percent int) time.Duration {
	if len(s.took) == 0 {
		return 0
	}
	return Of(s.took[len(s.took)-1], percent)
}

// String returns a table in Markdown: when each stage is passed, and how long that is after the one before.
func (s *Stages) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "| from the change until | p50 | p99 | since the line above, p50 | p99 |\n|---|---|---|---|---|\n")
	for i, took := range s.took {
		alone := make([]time.Duration, len(took))
		for j := range took {
			if alone[j] = took[j]; i > 0 {
				alone[j] -= s.took[i-1][j]
			}
		}
		fmt.Fprintf(&out, "| %s |", s.Names[i])
		for _, of := range [][]time.Duration{took, alone} {
			fmt.Fprintf(&out, " %.2f s | %.2f s |", Of(of, 50).Seconds(), Of(of, 99).Seconds())
		}
		fmt.Fprintln(&out)
	}
	return out.String()
}
