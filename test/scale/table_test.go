// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capacitorset/liqo-broker/test/percentile"
)

// took is how long many runs of the same have taken.
type took []time.Duration

// percentile returns what so many of a hundred took at most; zero if there are none.
func (t took) percentile(of int) time.Duration { return percentile.Of(t, of) }

// table is what was measured, as it is printed.
type table struct{ lines []string }

// times adds a line with how long something took, and of a processor of the measured program for each; zero if that is not known.
func (t *table) times(what string, of took, processor time.Duration) {
	cells := []string{what, fmt.Sprint(len(of))}
	for _, p := range []int{50, 90, 99, 100} {
		cells = append(cells, milliseconds(of.percentile(p)))
	}
	cost := ""
	if processor > 0 {
		cost = milliseconds(processor)
	}
	t.add(append(cells, cost))
}

// value adds a line with one value.
func (t *table) value(what, value string) { t.add([]string{what, "", "", "", "", value, ""}) }

func (t *table) add(cells []string) {
	t.lines = append(t.lines, "| "+strings.Join(cells, " | ")+" |")
}

// String returns the table in Markdown.
func (t *table) String() string {
	return "| what | count | p50 | p90 | p99 | most | processor |\n|---|---|---|---|---|---|---|\n" + strings.Join(t.lines, "\n")
}

// milliseconds prints a duration with two or three digits.
func milliseconds(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
}

func TestTable(t *testing.T) {
	var shown table
	shown.times("a change", took{1500 * time.Microsecond, 20 * time.Millisecond}, 3*time.Millisecond)
	shown.times("a restart", took{time.Second}, 0)
	shown.value("memory", "7 MiB")
	want := "| what | count | p50 | p90 | p99 | most | processor |\n|---|---|---|---|---|---|---|\n" +
		"| a change | 2 | 1.5 ms | 20 ms | 20 ms | 20 ms | 3.0 ms |\n| a restart | 1 | 1000 ms | 1000 ms | 1000 ms | 1000 ms |  |\n| memory |  " +
		"|  |  |  | 7 MiB |  |"
	if diff := cmp.Diff(want, shown.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
