// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lenient lets clients of an API server read objects that do not fit their Go types.
//
// A client decodes a list as a whole, and ends a watch at the first event that it cannot decode: one object with a bad
// duration hides all others. The API server lets such objects through where the schema of a custom resource says less than
// the Go type does, and they stay when the schema becomes stricter. So this package reads the answers of the API server
// before the clients do, takes out of each object the fields that do not fit, and marks the object; see [Unreadable].
//
// It knows types and no meaning: what an object is worth that lacks a field is for its reader to decide.
package lenient

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// Wrap makes all clients of a config read the types of a scheme in this way, also those that have a cache. What comes as
// protobuf, as the kinds of Kubernetes itself do, and metadata alone is not looked at: nothing but the API server decides what
// is in there.
func Wrap(config *rest.Config, scheme *runtime.Scheme, log logr.Logger) {
	repairer := newRepairer(scheme, log)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{next: next, repairer: repairer} })
}

// transport repairs what the API server answers.
type transport struct {
	next     http.RoundTripper
	repairer *repairer
}

var _ utilnet.RoundTripperWrapper = (*transport)(nil)

// WrappedRoundTripper implements [utilnet.RoundTripperWrapper].
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil || response.StatusCode >= http.StatusMultipleChoices || !t.concerns(request, response) {
		return response, err
	}
	if watches, _ := strconv.ParseBool(request.URL.Query().Get("watch")); watches { // Anything else is no watch.
		response.Body = &events{body: response.Body, frames: json.NewDecoder(response.Body), repairer: t.repairer}
		return response, nil
	}
	body, err := io.ReadAll(response.Body)
	if closeErr := response.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fmt.Errorf("read the answer to %s: %w", request.URL.Path, err)
	}
	body = t.repairer.answer(body)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return response, nil
}

// concerns reports whether an answer has objects of the scheme, as JSON that can be read.
func (t *transport) concerns(request *http.Request, response *http.Response) bool {
	// Clients may reach the API server below a path of their own.
	_, path, found := strings.Cut(request.URL.Path, "/apis/")
	parts := strings.SplitN(path, "/", 3)
	metadataOnly := strings.Contains(request.Header.Get("Accept"), "as=")
	if !found || len(parts) < 3 || metadataOnly ||
		!t.repairer.scheme.IsVersionRegistered(schema.GroupVersion{Group: parts[0], Version: parts[1]}) {
		return false
	}
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return err == nil && kind == runtime.ContentTypeJSON && response.Header.Get("Content-Encoding") == ""
}

// events is the body of a watch. It is read by one goroutine.
type events struct {
	body     io.ReadCloser
	frames   *json.Decoder
	repairer *repairer
	rest     []byte // Of the event that is being read.
}

// Read implements [io.Reader]. It blocks until there is an event.
func (e *events) Read(p []byte) (int, error) {
	for len(e.rest) == 0 {
		var frame json.RawMessage
		if err := e.frames.Decode(&frame); err != nil {
			return 0, err //nolint:wrapcheck // Clients compare it with io.EOF.
		}
		e.rest = e.repairer.event(frame)
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// Close implements [io.Closer].
func (e *events) Close() error { return e.body.Close() } //nolint:wrapcheck // It only passes on.
