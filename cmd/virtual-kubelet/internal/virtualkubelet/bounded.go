// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package virtualkubelet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
)

// maxAnswer is how much the API server of the foreign cluster may answer to one
// request, a list of all objects of a namespace for example. It is far more than the
// etcd of a cluster gives at once, and less than the memory of a virtual kubelet.
const maxAnswer = 256 << 20

// bound bounds what is read of the answers of an API server. What has no end, watches, logs and streams, has no bound. A list that is asked for as the
// beginning of a watch, as client-go does since 1.35, would have none either, and is kept: it is answered here as by an API server that does not know of
// it, so that client-go lists as before.
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
		return noWatchList(request)
	}
	response, err := b.next.RoundTrip(request)
	if err != nil || endless(request) || response.StatusCode == http.StatusSwitchingProtocols {
		return response, err
	}
	response.Body = &boundedBody{ReadCloser: response.Body, left: b.limit, request: request}
	return response, nil
}

// noWatchList answers a request for a list that begins a watch.
func noWatchList(request *http.Request) (*http.Response, error) {
	status := apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", field.ErrorList{
		field.Forbidden(field.NewPath("sendInitialEvents"), "lists of foreign clusters have a bound"),
	}).ErrStatus
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	text, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("answer %s %s: %w", request.Method, request.URL.Path, err)
	}
	if request.Body != nil {
		_ = request.Body.Close() // As each transport does.
	}
	return &http.Response{
		Status: "422 Unprocessable Entity", StatusCode: http.StatusUnprocessableEntity, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Body: io.NopCloser(bytes.NewReader(text)),
		ContentLength: int64(len(text)), Request: request,
	}, nil
}

// endless reports whether the answer to a request goes on for as long as somebody reads it.
func endless(request *http.Request) bool {
	watch := request.URL.Query().Get("watch")
	return watch == "true" || watch == "1" || strings.HasSuffix(request.URL.Path, "/log")
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
