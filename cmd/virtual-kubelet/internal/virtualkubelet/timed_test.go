// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package virtualkubelet

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestRequestsAreTimed has an API server that answers at once, and goes on for three times as long as a request may take.
func TestRequestsAreTimed(t *testing.T) {
	const limit = 300 * time.Millisecond
	for name, tc := range map[string]struct {
		path  string
		limit time.Duration
		ok    bool
	}{
		"List":    {"/api/v1/namespaces/shop/secrets", limit, false},
		"Watch":   {"/api/v1/namespaces/shop/secrets?watch=true", limit, true},
		"Log":     {"/api/v1/namespaces/shop/pods/web/log?follow=true", limit, true},
		"NoLimit": {"/api/v1/namespaces/shop/secrets", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(3 * limit):
					_, _ = io.WriteString(w, "whole")
				case <-request.Context().Done():
				}
			}))
			defer server.Close()
			config := &rest.Config{Host: server.URL, Timeout: tc.limit}
			timeRequests(config)
			client, err := rest.HTTPClientFor(config)
			if err != nil {
				t.Fatal(err)
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+tc.path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			if read, err := io.ReadAll(response.Body); (string(read) == "whole" && err == nil) != tc.ok {
				t.Errorf("read %q, %v; want all of it %t", read, err, tc.ok)
			}
		})
	}
}
