// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// An event is what go test -json says of a test, or, without a Test, of a package or of its build (go doc cmd/test2json, go help
// buildjson).
type event struct{ Action, Package, Test, Output string }

// Actions by which tests end well or not.
const pass, fail = "pass", "fail"

// A result is how a run of go test ended.
type result struct {
	// err is nil if all is green.
	err error
	// whole says that the tests, and what is around them, came to their end.
	whole bool
	// state is the last action of each test that is below no other: run, pause, cont, pass, fail or skip.
	state map[string]string
	// logs are what tests printed, with all that is below them. Tests that passed have none.
	logs map[string]*bytes.Buffer
	// group is the last word of the package's path.
	group string
}

// with returns the tests that ended in a way, in the order of their names.
func (r *result) with(action string) []string {
	var tests []string
	for test, state := range r.state {
		if state == action {
			tests = append(tests, test)
		}
	}
	slices.Sort(tests)
	return tests
}

// cut returns the tests that began and did not end.
func (r *result) cut() []string {
	return slices.Sorted(slices.Values(slices.Concat(r.with("run"), r.with("pause"), r.with("cont"))))
}

// goTest runs go test with arguments, and prints what it says as it comes. Who interrupts this program reaches go test as well, so that it
// ends as it does by itself.
func goTest(ctx context.Context, out io.Writer, args ...string) (*result, error) {
	r := &result{state: map[string]string{}, logs: map[string]*bytes.Buffer{}}
	command := exec.CommandContext(context.WithoutCancel(ctx), "go", append([]string{"test", "-json"}, args...)...) //nolint:gosec // Whoever runs it says what it runs.
	command.Stderr = os.Stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("run go test: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("run go test: %w", err)
	}
	err = r.read(stdout, out)
	r.err = command.Wait()
	if err != nil {
		return nil, fmt.Errorf("read what go test says: %w", err)
	}
	return r, nil
}

// read takes what go test -json says.
func (r *result) read(from io.Reader, out io.Writer) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		switch {
		case len(line) == 0:
		case json.Unmarshal(line, &e) == nil: //nolint:musttag // The names are those of test2json, whatever the case.
			r.take(e)
			fmt.Fprint(out, e.Output)
		default:
			fmt.Fprintf(out, "%s", line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *result) take(e event) {
	if e.Package != "" {
		r.group = path.Base(e.Package)
	}
	if e.Test == "" {
		// When all tests have ended, their program says FAIL alone on a line, and then what else went wrong. The command's own line has the
		// package.
		if e.Action == "output" && !strings.HasPrefix(e.Output, "FAIL\t") {
			r.whole = e.Output == "FAIL\n"
		}
		return
	}
	test, _, below := strings.Cut(e.Test, "/")
	if e.Action == "output" {
		if r.logs[test] == nil {
			r.logs[test] = &bytes.Buffer{}
		}
		r.logs[test].WriteString(e.Output)
		return
	}
	if !below {
		r.state[test] = e.Action
		if e.Action == pass {
			delete(r.logs, test)
		}
	}
}
