// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
)

const (
	// refusalsEvery is how often the same refusal of one consumer is logged.
	refusalsEvery = time.Minute
	// maxRefusals bounds what is remembered of that.
	maxRefusals = 1024
	// maxText bounds what a caller wrote in a line of the log, and what a provider calls itself in a route.
	maxText = 64
)

// Texts of refusals. They tell a caller nothing of others, nor of what the broker runs on.
const (
	notAnAddress = "it is not an IP address"
	failed       = "the broker cannot map it at the moment"
)

// refusal returns what a caller is told about an error.
func (s *Server) refusal(err error) string {
	for _, told := range s.config.Told {
		if errors.Is(err, told) {
			return told.Error()
		}
	}
	return failed
}

// told remembers what was logged.
type told struct {
	mu   sync.Mutex
	last map[refusal]*since
}

type refusal struct {
	consumer cluster.ID
	reason   string
}

// since is when a refusal was logged last, and how many there were since then.
type since struct {
	at      time.Time
	skipped int
}

// due reports whether a refusal is to be logged, and how many were not.
func (t *told) due(now time.Time, r refusal) (skipped int, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil || len(t.last) >= maxRefusals {
		t.last = map[refusal]*since{}
	}
	last := t.last[r]
	if last != nil && now.Sub(last.at) < refusalsEvery {
		last.skipped++
		return 0, false
	}
	if last != nil {
		skipped = last.skipped
	}
	t.last[r] = &since{at: now}
	return skipped, true
}

// refused logs a refusal, at most once in a while for each consumer and reason.
func (s *Server) refused(consumer cluster.ID, reason, message string, details ...any) {
	if skipped, due := s.told.due(time.Now(), refusal{consumer, reason}); due {
		s.config.Log.Info(message, append([]any{"consumer", excerpt.Of(string(consumer), maxText), "sameBefore", skipped}, details...)...)
	}
}

// failedCall logs a failure in the same way.
func (s *Server) failedCall(ctx context.Context, consumer cluster.ID, err error, message string) {
	if ctx.Err() != nil {
		return // The caller has given up.
	}
	if _, due := s.told.due(time.Now(), refusal{consumer, message}); due {
		s.config.Log.Error(err, message, "consumer", consumer)
	}
}
