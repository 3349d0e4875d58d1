// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package virtualkubelet

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
)

// maxAnswer is how much the API server of the foreign cluster may answer to one
// request, a list of all objects of a namespace for example. It is far more than the
// etcd of a cluster gives at once, and less than the memory of a virtual kubelet.
const maxAnswer = 256 << 20

// maxUsage is how much it may answer about what pods use, by the metrics API or by Liqo's metric agent: what a pod uses takes some KiB, and
// an empty container of three bytes becomes hundreds in memory.
const maxUsage = 16 << 20

// bound bounds what is read of the answers of an API server. What has no end, watches, logs and streams, has no bound. A list that is asked
// for as the beginning of a watch, as client-go does since 1.35, would have none either, and is kept: it is refused here, so that client-go
// lists as before.
func bound(config *rest.Config, limit int64) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &boundedTransport{next, limit} })
}

type boundedTransport struct {
	next  http.RoundTripper
	limit int64
}

// RoundTrip implements http.RoundTripper.
func (b *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Has("sendInitialEvents") {
		return nil, errWatchList
	}
	response, err := b.next.RoundTrip(request)
	if err != nil || endless(request) || response.StatusCode == http.StatusSwitchingProtocols {
		return response, err
	}
	limit := b.limit
	if tellsUsage(request.URL.Path) {
		limit = min(limit, maxUsage)
	}
	response.Body = &boundedBody{ReadCloser: response.Body, left: limit, request: request}
	return response, nil
}

// errWatchList is about a list that would begin a watch. client-go asks for a list then.
var errWatchList = errors.New("lists of foreign clusters have a bound, and begin no watch")

// endless reports whether the answer to a request goes on for as long as somebody reads it.
func endless(request *http.Request) bool {
	watch := request.URL.Query().Get("watch")
	return watch == "true" || watch == "1" || strings.HasSuffix(request.URL.Path, "/log")
}

// tellsUsage reports whether an answer is about what pods use. An API server may be below a path.
func tellsUsage(path string) bool {
	return strings.Contains(path, "/apis/metrics.k8s.io/") || strings.Contains(path, "/apis/metrics.liqo.io/")
}

type boundedBody struct {
	io.ReadCloser
	left    int64
	request *http.Request
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the answer to %s %s is too long", b.request.Method, b.request.URL.Path)
	}
	return n, err
}

// WrappedRoundTripper returns what is wrapped, where client-go looks for it.
func (b *boundedTransport) WrappedRoundTripper() http.RoundTripper { return b.next }
