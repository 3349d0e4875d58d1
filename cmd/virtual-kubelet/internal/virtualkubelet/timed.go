// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package virtualkubelet

import (
	"context"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// timeRequests bounds the time of each request as the configuration does, but not that of watches, logs and streams, which go on for as
// long as they are read. Liqo's flag --client-timeout, of ten seconds, is for all of a client's requests alike
// (liqo/pkg/utils/restcfg@v0.9.4): every watch of every namespace would begin again each ten seconds. client-go ends a watch itself after
// some minutes, and one whose connection is dead within a minute.
func timeRequests(config *rest.Config) {
	timeout := config.Timeout
	if config.Timeout = 0; timeout > 0 {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &timedTransport{next, timeout} })
	}
}

type timedTransport struct {
	next    http.RoundTripper
	timeout time.Duration
}

// RoundTrip implements http.RoundTripper.
func (t *timedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if endless(request) || request.Header.Get("Upgrade") != "" {
		return t.next.RoundTrip(request)
	}
	ctx, cancel := context.WithTimeout(request.Context(), t.timeout)
	response, err := t.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = &timedBody{response.Body, cancel}
	return response, nil
}

// WrappedRoundTripper returns what is wrapped, where client-go looks for it.
func (t *timedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

type timedBody struct {
	io.ReadCloser

	cancel context.CancelFunc
}

// Close implements io.Closer.
func (t *timedBody) Close() error {
	t.cancel()
	return t.ReadCloser.Close()
}
