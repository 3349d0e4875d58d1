// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	// mostAgain is how many journeys at most are run once more.
	mostAgain = 5
	// redAfter is how many runs in a row may find a journey flaky, of which the last one is red.
	redAfter = 3
	// mostLines is how many lines of a log, each of mostBytes at most, are named with a flaky or red journey.
	mostLines, mostBytes = 8, 300
)

// said is how a test says something, with its file and line. What follows in further lines is evidence.
var said = regexp.MustCompile(`(?m)^\s+\w+\.go:\d+: .*$`)

// A runner runs journeys.
type runner struct {
	// lab runs a command of the lab: status, which fails unless all of a lab is up, or down.
	lab func(ctx context.Context, command string) error
	// kept is the folder for the first logs of what is flaky, and memory the file that remembers it, empty if there is none.
	kept, memory string
	// line is the line of Liqo that the journeys are told, empty if none: each has a memory and logs of its own.
	line string
	out  io.Writer
}

// run runs the journeys that the arguments of go test say. It returns nil if all passed, at first or by themselves.
func (r *runner) run(ctx context.Context, args []string) error {
	wasUp := r.lab(ctx, "status") == nil
	first, err := goTest(ctx, r.out, args...)
	if err != nil {
		return err
	}
	if r.line != "" {
		first.group += "-" + r.line
	}
	flaky, red := r.again(ctx, args, first)
	runs, err := remember(r.memory, first.group, first.with(pass), flaky)
	if err != nil {
		fmt.Fprintf(r.out, "--- what was flaky is not remembered: %v\n", err)
	}
	for _, test := range first.with(fail) {
		n := runs[test]
		if n == 0 {
			if err := r.name(first, test, "red", "failed"); err != nil {
				return err
			}
			continue
		}
		if n >= redAfter {
			red = errors.Join(red, fmt.Errorf("%s was flaky in %d runs in a row", test, n))
		}
		verdict := fmt.Sprintf("failed, and passed by itself; runs in a row: %d, red from %d on", n, redAfter)
		if err := r.name(first, test, "flaky", verdict); err != nil {
			return err
		}
	}
	if red == nil && len(flaky) > 0 && !wasUp {
		if err := r.lab(ctx, "down"); err != nil {
			return fmt.Errorf("remove the lab: %w", err)
		}
	}
	return red
}

// again runs each journey that failed by itself, and returns those that passed then, and why the run is red nevertheless.
func (r *runner) again(ctx context.Context, args []string, first *result) (flaky []string, red error) {
	failed, cut := first.with(fail), first.cut()
	switch {
	case first.err == nil:
		return nil, nil
	case !first.whole || len(failed) == 0 || len(cut) > 0:
		return nil, fmt.Errorf("there is no second run, since the first one did not come to its end: failed %v, cut off %v: %w", failed,
			cut, first.err)
	case len(failed) > mostAgain:
		return nil, fmt.Errorf("there is no second run, since more than %d journeys failed: %s", mostAgain, strings.Join(failed, ", "))
	}
	for _, test := range failed {
		if err := ctx.Err(); err != nil {
			return flaky, errors.Join(red, fmt.Errorf("%s failed, and is not run again: %w", test, err))
		}
		if err := r.lab(ctx, "status"); err != nil {
			return flaky, errors.Join(red, fmt.Errorf("%s failed, and is not run again, since the lab is not whole: %w", test, err))
		}
		fmt.Fprintf(r.out, "\n--- %s failed, and is run again by itself\n", test)
		second, err := goTest(ctx, r.out, append(args[:len(args):len(args)], "-run=^"+test+"$")...)
		if err != nil {
			return flaky, errors.Join(red, err)
		}
		if second.err == nil && second.state[test] == pass {
			flaky = append(flaky, test)
		} else {
			red = errors.Join(red, fmt.Errorf("%s failed, and does not pass by itself", test))
		}
	}
	return flaky, red
}

// name keeps the first log of a journey that failed, and prints what is said of it, and as much of the log as fits into some lines.
func (r *runner) name(first *result, test, word, verdict string) error {
	log := filepath.Join(r.kept, first.group+"-"+test+".log")
	if err := os.MkdirAll(r.kept, 0o755); err != nil {
		return fmt.Errorf("keep the log of %s: %w", test, err)
	}
	if err := os.WriteFile(log, first.logs[test].Bytes(), 0o644); err != nil {
		return fmt.Errorf("keep the log of %s: %w", test, err)
	}
	fmt.Fprintf(r.out, "--- %s: %s of %s %s; its first log: %s\n", word, test, first.group, verdict, log)
	lines := said.FindAllString(first.logs[test].String(), -1)
	for _, line := range lines[max(0, len(lines)-mostLines):] {
		fmt.Fprintf(r.out, "--- %s:     %.*s\n", word, mostBytes, strings.TrimSpace(line))
	}
	return nil
}
