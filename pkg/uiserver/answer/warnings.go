// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"context"
	"net/http"
	"strconv"
	"sync"

	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// maxWarnings bounds what is told of one request.
const maxWarnings = 16

// warnings hands the warnings of the API server to the request that they are about. It implements [rest.WarningHandlerWithContext].
type warnings struct{}

type warningsKey struct{}

// heard are the warnings of one request.
type heard struct {
	mu   sync.Mutex
	said []string
}

// withWarnings returns a context whose warnings are heard.
func withWarnings(ctx context.Context) (context.Context, *heard) {
	h := &heard{}
	return context.WithValue(ctx, warningsKey{}, h), h
}

// HandleWarningHeaderWithContext implements [rest.WarningHandlerWithContext].
func (warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	h, ok := ctx.Value(warningsKey{}).(*heard)
	if !ok || code != 299 || text == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.said) < maxWarnings {
		h.said = append(h.said, "299 - "+strconv.Quote(sheet.Plain(text)))
	}
}

// all returns what was heard, as values of the header Warning.
func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.said
}

// tell writes the warnings into the header of an answer.
func (h *heard) tell(w http.ResponseWriter) {
	for _, warning := range h.all() {
		w.Header().Add("Warning", warning)
	}
}
