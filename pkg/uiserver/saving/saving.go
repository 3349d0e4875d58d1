// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package saving keeps what a page shows at one moment, with or without the names in it, and writes the page that shows it into a file.
//
// It asks for the data as the page does, and does not know who answers, nor what the page makes of it.
package saving

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/serving/eventstream"
)

// Bounds of what is kept, in bytes: all of it, and one thing.
const (
	MaxBytes = 64 << 20
	maxThing = 8 << 20
)

// Patience is how long it usually takes at most until everything has been told.
const Patience = time.Minute

// again is how long it takes until those who answer are asked again, when they are busy with beginning.
const again = time.Second

// ErrTooLarge means that there is more than a page of a file can show.
var ErrTooLarge = fmt.Errorf("there is more than the %d MiB that a saved page may have", MaxBytes>>20)

// Moment is what a page shows at one moment, as JSON that the page understands.
type Moment struct {
	// At is when it was so.
	At time.Time `json:"at"`
	// Hidden is whether pseudonyms stand for names.
	Hidden bool `json:"hidden,omitempty"`
	// Me is who has seen it, and Events are all things that there are.
	Me     json.RawMessage   `json:"me"`
	Events []json.RawMessage `json:"events"`
}

// Read asks for who sees what, and for everything that they may watch, as a page does that begins. Of the former it leaves out the way to
// the cluster. The error is [ErrTooLarge], or says what was answered; when ctx has ended, it is the cause of that, and says what has not
// come.
func Read(ctx context.Context, data http.Handler, now func() time.Time) (*Moment, error) {
	m, err := read(ctx, data, now)
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return m, err
}

func read(ctx context.Context, data http.Handler, now func() time.Time) (*Moment, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	text, err := readMe(ctx, data)
	if err != nil {
		return nil, err
	}
	var me map[string]json.RawMessage
	var watched struct {
		Kinds []struct {
			Kind    string   `json:"kind"`
			Missing []string `json:"missing"`
		} `json:"kinds"`
	}
	if err := errors.Join(json.Unmarshal(text, &me), json.Unmarshal(text, &watched)); err != nil {
		return nil, fmt.Errorf("read who sees the page: %w", err)
	}

	// How the cluster is reached is nobody's business.
	delete(me, "context")
	delete(me, "expires")
	m := &Moment{Events: []json.RawMessage{}}
	if m.Me, err = json.Marshal(me); err != nil {
		return nil, fmt.Errorf("keep who sees the page: %w", err)
	}

	// All that they may watch.
	var kinds []string
	for _, of := range watched.Kinds {
		if len(of.Missing) == 0 {
			kinds = append(kinds, of.Kind)
		}
	}
	if len(kinds) > 0 {
		if err := m.readEvents(ctx, data, kinds); err != nil {
			return nil, err
		}
	}
	m.At = now().UTC()
	return m, nil
}

// readMe asks who sees the page, again while that cannot be said yet.
func readMe(ctx context.Context, data http.Handler) ([]byte, error) {
	for {
		text, err := askMe(ctx, data)
		if refused := (*refusal)(nil); !errors.As(err, &refused) || refused.status != http.StatusServiceUnavailable {
			return text, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(again):
		}
	}
}

func askMe(ctx context.Context, data http.Handler) ([]byte, error) {
	a := askFor(ctx, data, "me")
	defer a.close()
	if err := a.refused(); err != nil {
		return nil, fmt.Errorf("ask who sees the page: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(a.body, maxThing))
	if err = cmp.Or(err, ctx.Err()); err != nil { // Who is not waited for any more may have said nothing.
		return nil, fmt.Errorf("ask who sees the page: %w", err)
	}
	return text, nil
}

// readEvents reads a stream until it has told everything.
func (m *Moment) readEvents(ctx context.Context, data http.Handler, kinds []string) error {
	a := askFor(ctx, data, "events?kinds="+url.QueryEscape(strings.Join(kinds, ",")))
	defer a.close()
	if err := a.refused(); err != nil {
		return fmt.Errorf("ask for what there is: %w", err)
	}
	left, last := MaxBytes, "" // The kind of the thing that came last.
	for events := eventstream.NewReader(a.body, maxThing); ; {
		e, err := events.Next()
		switch {
		case errors.Is(err, eventstream.ErrTooLarge):
			return ErrTooLarge
		case err != nil && last == "":
			return fmt.Errorf("read what there is: nothing has come of %s: %w", strings.Join(kinds, ", "), err)
		case err != nil:
			return fmt.Errorf("read what there is: no more has come than %d things, the last of %s: %w", len(m.Events), last, err)
		case e.Name == "synced":
			return nil
		case e.Name != "set":
			continue
		}
		var of struct {
			Kind string `json:"kind"`
		}
		if err := json.Unmarshal(e.Data, &of); err != nil {
			return fmt.Errorf("read what there is: an event is no JSON that is known: %w", err)
		}
		last = of.Kind
		if left -= len(e.Data); left < 0 {
			return ErrTooLarge
		}
		m.Events = append(m.Events, bytes.Clone(e.Data))
	}
}

// answer is what a handler answers, read while it is written.
type answer struct {
	header http.Header
	status int
	body   *io.PipeReader
	to     *io.PipeWriter
	begun  chan struct{} // Closed with the status.
	ended  chan struct{}
	cancel context.CancelFunc
}

// askFor asks a handler for what is at a path below version 1 of the API.
func askFor(ctx context.Context, data http.Handler, path string) *answer {
	ctx, cancel := context.WithCancel(ctx)
	a := &answer{header: http.Header{}, begun: make(chan struct{}), ended: make(chan struct{}), cancel: cancel}
	a.body, a.to = io.Pipe()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/"+path, http.NoBody)
	go func() {
		defer close(a.ended)
		if err == nil {
			data.ServeHTTP(a, r)
		}
		a.WriteHeader(http.StatusOK)
		a.to.CloseWithError(err)
	}()
	<-a.begun
	return a
}

// close lets the handler end, and waits for that.
func (a *answer) close() {
	a.cancel()
	a.body.Close()
	<-a.ended
}

// Header implements [http.ResponseWriter].
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
		close(a.begun)
	}
}

// Write implements [http.ResponseWriter].
func (a *answer) Write(text []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.to.Write(text)
}

// Flush implements [http.Flusher]: what is written has been read.
func (a *answer) Flush() {}

// refusal is an answer that is none.
type refusal struct {
	status int
	detail string
}

// Error implements error.
func (r *refusal) Error() string { return r.detail }

// refused returns what an answer says that refuses; nil if it does not.
func (a *answer) refused() error {
	if a.status == http.StatusOK {
		return nil
	}
	var problem struct {
		Detail string `json:"detail"`
	}
	text, err := io.ReadAll(io.LimitReader(a.body, maxThing))
	if err != nil || json.Unmarshal(text, &problem) != nil || problem.Detail == "" {
		problem.Detail = http.StatusText(a.status)
	}
	return &refusal{a.status, problem.Detail}
}
