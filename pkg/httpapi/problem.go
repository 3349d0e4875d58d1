// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"net/http"
)

// problem is an error as RFC 9457 has it. The type is about:blank, so that the
// title is the status' own.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

func writeProblem(w http.ResponseWriter, code int, detail string) {
	write(w, code, "application/problem+json", problem{Title: http.StatusText(code), Status: code, Detail: detail})
}

func writeJSON(w http.ResponseWriter, v any) { write(w, http.StatusOK, "application/json", v) }

func write(w http.ResponseWriter, code int, contentType string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n')) // A caller that has gone away is nobody's concern.
}
