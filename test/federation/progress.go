// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// Progress tells a person what is being done and how long it took.
type Progress struct {
	out   io.Writer
	start time.Time
}

// NewProgress returns a Progress that counts from this moment.
func NewProgress(out io.Writer) *Progress {
	return &Progress{out: out, start: time.Now()}
}

// Step does one thing and says so, with the time since the start and the time that it took.
func (p *Progress) Step(ctx context.Context, name string, do func(context.Context) error) error {
	begin := time.Now()
	fmt.Fprintf(p.out, "%7.1fs  %s\n", begin.Sub(p.start).Seconds(), name)
	if err := do(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		fmt.Fprintf(p.out, "%7.1fs    … done in %.1f s\n", time.Since(p.start).Seconds(), took.Seconds())
	}
	return nil
}

// Write implements io.Writer: what is written explains the step that is being taken.
func (p *Progress) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		fmt.Fprintf(p.out, "            %s", line)
	}
	return len(text), nil
}

// Elapsed returns the time since the start.
func (p *Progress) Elapsed() time.Duration {
	return time.Since(p.start)
}

// Until calls check again and again until it returns nil. When the time is up, it returns what check said last. It pauses for as long as a
// call took, and half a second at least: what it looks at may need the processor more than it does.
func Until(ctx context.Context, timeout time.Duration, check func(context.Context) error) error {
	// The last call gets some more time, so that what it returns says something of what it looked at.
	const grace, longestPause = 15 * time.Second, 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout+grace)
	defer cancel()

	end := time.After(timeout)
	for {
		began := time.Now()
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-end:
			return fmt.Errorf("after %s: %w", timeout, err)
		case <-time.After(min(max(500*time.Millisecond, time.Since(began)), longestPause)):
		}
	}
}
