// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"testing"
)

// asked remembers what an API server is asked.
type asked struct{ query string }

func (a *asked) RoundTrip(request *http.Request) (*http.Response, error) {
	a.query = request.URL.RawQuery
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// TestPaged asks for a page where a cache asks for all at once, and for nothing else than before otherwise.
func TestPaged(t *testing.T) {
	for query, want := range map[string]string{
		"limit=500&resourceVersion=0":  "limit=500",
		"resourceVersion=0":            "resourceVersion=0",
		"limit=500&resourceVersion=7":  "limit=500&resourceVersion=7",
		"continue=x&limit=500":         "continue=x&limit=500",
		"resourceVersion=0&watch=true": "resourceVersion=0&watch=true",
		"":                             "",
	} {
		var server asked
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api/apis/brokering.liqo.io/v1alpha1/sales?"+query,
			http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := paged(&server).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if server.query != want || request.URL.RawQuery != query {
			t.Errorf("%s is asked as %s, want %s", query, server.query, want)
		}
	}
}
