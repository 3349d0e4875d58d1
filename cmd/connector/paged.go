// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// paged has an API server answer lists in the pages that are asked for. A cache asks first for what the API server remembers, which it
// answers as a whole whatever the page: all Sales of a large seller take several times the memory in which they are kept.
func paged(next http.RoundTripper) http.RoundTripper { return pages{next} }

type pages struct{ next http.RoundTripper }

var _ utilnet.RoundTripperWrapper = pages{}

// WrappedRoundTripper implements [utilnet.RoundTripperWrapper].
func (p pages) WrappedRoundTripper() http.RoundTripper { return p.next }

// RoundTrip implements [http.RoundTripper].
func (p pages) RoundTrip(request *http.Request) (*http.Response, error) {
	if query := request.URL.Query(); query.Get("limit") != "" && query.Get("resourceVersion") == "0" {
		query.Del("resourceVersion")
		query.Del("resourceVersionMatch")
		request = request.Clone(request.Context())
		request.URL.RawQuery = query.Encode()
	}
	return p.next.RoundTrip(request) //nolint:wrapcheck // It only passes on.
}
