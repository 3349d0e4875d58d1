// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/capacitorset/liqo-broker/pkg/serving/restclient"
)

// Refusal returns why a caller does not get what it asks for, with headers as pairs of names and values. It is told as a problem document
// (RFC 9457).
func Refusal(status int, detail string, headers ...string) error {
	all := http.Header{}
	for pair := range slices.Chunk(headers, 2) {
		all.Set(pair[0], pair[1])
	}
	return huma.ErrorWithHeaders(huma.NewError(status, detail), all)
}

// Later refuses something that may be tried again after some seconds.
func Later(status int, detail, seconds string) error {
	return Refusal(status, detail, "Retry-After", seconds)
}

// TooMany refuses somebody who asks too often.
func TooMany() error {
	return Later(http.StatusTooManyRequests, "too many requests: try again in a second", "1")
}

// Wrong refuses what a part of a request has, such as body.name or query.limit.
func Wrong(status int, location string, err error) error {
	return huma.NewError(status, location+": "+err.Error(), &huma.ErrorDetail{Location: location, Message: err.Error()})
}

// StatusOf returns the status with which an error is told; 0 if it says none.
func StatusOf(err error) int {
	var refusal huma.StatusError
	if errors.As(err, &refusal) {
		return refusal.GetStatus()
	}
	return 0
}

// told returns how an error is told. What is neither a refusal nor explained by the server is logged, and told no more than that it has
// happened.
func (a *API) told(ctx context.Context, operation string, err error) error {
	if StatusOf(err) != 0 {
		return err
	}
	if a.cfg.Explain != nil {
		if problem := a.cfg.Explain(err); problem != nil {
			return problem
		}
	}
	log := a.cfg.Log.WithValues("operation", operation)
	if a.cfg.Caller != nil {
		log = log.WithValues("caller", a.cfg.Caller(ctx))
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		log.V(1).Info("A caller has gone away before it was answered", "reason", err.Error())
		return Refusal(restclient.StatusGone, "the caller has gone away")
	case ctx.Err() != nil:
		log.Info("A request took too long", "reason", err.Error())
		return Later(http.StatusGatewayTimeout, "the request took too long", "1")
	default:
		log.Error(err, "Cannot answer a request")
		return Refusal(http.StatusInternalServerError, a.cfg.Failed)
	}
}

// Refuse answers a request outside of operations with an error.
func (a *API) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	Write(w, a.told(r.Context(), r.Pattern, err))
}

// RefuseIn is Refuse in a middleware, or in a stream that has not begun.
func (a *API) RefuseIn(ctx huma.Context, err error) {
	_, w := humago.Unwrap(ctx)
	Write(w, a.told(ctx.Context(), ctx.Operation().OperationID, err))
}

// NotAllowed returns a handler that refuses a method, and names those that are allowed.
func NotAllowed(allowed string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		Write(w, Refusal(http.StatusMethodNotAllowed, r.Method+" is not allowed here, only "+allowed, "Allow", allowed))
	}
}

// Write answers with a refusal.
func Write(w http.ResponseWriter, refusal error) {
	header := w.Header()
	var headers huma.HeadersError
	if errors.As(refusal, &headers) {
		maps.Copy(header, headers.GetHeaders())
	}
	problem := &huma.ErrorModel{Title: http.StatusText(http.StatusInternalServerError), Status: http.StatusInternalServerError}
	_ = errors.As(refusal, &problem) // Nothing is told of what is none.
	header.Set("Content-Type", restclient.Problem)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(problem.Status)
	_ = json.NewEncoder(w).Encode(problem) //nolint:errchkjson // A caller that has gone away is nobody's concern.
}
