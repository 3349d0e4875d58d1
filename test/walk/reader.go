// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/test/federation"
)

// A Reader is somebody who does what a page says. The test fails where the page does.
type Reader struct {
	*federation.Reader

	t *testing.T
}

// Follow has a reader go on until the test ends.
func Follow(t *testing.T, r *federation.Reader) *Reader {
	t.Helper()
	AtEnd(t, func(context.Context) error { return r.Close() })
	return &Reader{r, t}
}

// Next runs the next block, which has a command that begins like this, and returns what it prints.
func (r *Reader) Next(command string) string {
	r.t.Helper()
	blocks, began := r.Blocks, time.Now()
	out := r.said(r.Reader.Next(r.t.Context(), command))
	r.t.Logf("%s took %.1f s", blocks[0], time.Since(began).Seconds())
	return out
}

// Begin runs the next block while the test goes on. The returned function waits until it has ended. Nothing else of the page runs
// meanwhile.
func (r *Reader) Begin(command string) (end func()) {
	done := make(chan error, 1)
	go func() {
		_, err := r.Reader.Next(r.t.Context(), command)
		done <- err
	}()
	return func() {
		r.t.Helper()
		r.must(<-done)
	}
}

// InsteadOf runs the next block in the place of that of another page, which has the same commands, and returns what it prints.
func (r *Reader) InsteadOf(of *Reader, command string) string {
	r.t.Helper()
	return r.said(r.Instead(r.t.Context(), of.Reader.Reader, command))
}

// Said runs the command in the running text that begins like this, and returns what it prints.
func (r *Reader) Said(on, command string) string {
	r.t.Helper()
	return r.said(r.Reader.Said(r.t.Context(), on, command))
}

// Edit changes an example as the page says.
func (r *Reader) Edit(file string, changes ...string) {
	r.t.Helper()
	r.must(r.Reader.Edit(file, changes...))
}

// Skip passes over blocks that begin with these commands, in this order.
func (r *Reader) Skip(commands ...string) {
	r.t.Helper()
	r.must(r.Reader.Skip(commands...))
}

// End says that no block is left.
func (r *Reader) End() {
	r.t.Helper()
	if err := r.Reader.End(); err != nil {
		r.t.Error(err)
	}
}

// said returns what was printed, unless there was an error.
func (r *Reader) said(out string, err error) string {
	r.t.Helper()
	r.must(err)
	return out
}

// must ends the test if there is an error.
func (r *Reader) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}
