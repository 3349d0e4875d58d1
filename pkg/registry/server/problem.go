// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/capacitorset/liqo-broker/pkg/registry/registryv1"
)

// The headers of an answer that say when to try again, and how to say who one is.
const (
	retryAfter = "Retry-After"
	soon       = "1"
)

// refusal is why a caller does not get what it asks for. It is written as a problem document (RFC 9457).
func refusal(status int, detail string, fields ...registryv1.Field) error {
	details := make([]error, 0, len(fields))
	for _, f := range fields {
		details = append(details, &huma.ErrorDetail{Location: f.Location, Message: f.Message})
	}
	return huma.NewError(status, detail, details...)
}

// wrong refuses what a field of a request has.
func wrong(status int, location string, err error) error {
	return refusal(status, location+": "+err.Error(), registryv1.Field{Location: location, Message: err.Error()})
}

// later refuses something that may be tried again after some seconds.
func later(status int, detail, seconds string) error {
	return huma.ErrorWithHeaders(refusal(status, detail), http.Header{retryAfter: {seconds}})
}

// statusOf returns the status with which an error is answered; 0 if it says none.
func statusOf(err error) int {
	var told huma.StatusError
	if errors.As(err, &told) {
		return told.GetStatus()
	}
	return 0
}

// refuse writes why something is refused, outside of huma's own way.
func (s *Server) refuse(w http.ResponseWriter, err error) {
	var headers huma.HeadersError
	if errors.As(err, &headers) {
		maps.Copy(w.Header(), headers.GetHeaders())
	}
	var told *huma.ErrorModel
	var status huma.StatusError
	switch {
	case errors.As(err, &told):
	case errors.As(err, &status):
		told = &huma.ErrorModel{Title: http.StatusText(status.GetStatus()), Status: status.GetStatus(), Detail: status.Error()}
	default:
		s.cfg.Log.Error(err, "Cannot answer a request")
		told = internal()
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(told.Status)
	_ = json.NewEncoder(w).Encode(told) //nolint:errchkjson // A caller that has gone away is nobody's concern.
}

// refuseContext is refuse in a middleware.
func (s *Server) refuseContext(ctx huma.Context, err error) {
	_, w := humago.Unwrap(ctx)
	s.refuse(w, err)
}

func internal() *huma.ErrorModel {
	return &huma.ErrorModel{
		Title: http.StatusText(http.StatusInternalServerError), Status: http.StatusInternalServerError,
		Detail: "the request cannot be answered: the log of the registry says why",
	}
}

func notAllowed(s *Server, allowed string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allowed)
		s.refuse(w, refusal(http.StatusMethodNotAllowed, r.Method+" is not allowed here, only "+allowed))
	}
}
