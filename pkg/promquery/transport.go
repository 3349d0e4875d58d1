// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package promquery

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// bounded is a transport that adds the token to requests, and ends answers that are
// too long.
type bounded struct {
	next      http.RoundTripper
	tokenFile string
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	if b.tokenFile != "" {
		secret, err := token(b.tokenFile)
		if err != nil {
			return nil, err
		}
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	resp, err := b.next.RoundTrip(req)
	if err == nil {
		resp.Body = &body{ReadCloser: resp.Body, left: maxBytes}
	}
	return resp, err
}

// token reads the bearer token.
func token(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" || strings.ContainsAny(secret, "\r\n") {
		return "", fmt.Errorf("%s has no token in one line", file)
	}
	return secret, nil
}

// body fails when more is read from it than allowed.
type body struct {
	io.ReadCloser

	left int
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("%w: it has more than %d bytes", ErrAnswer, maxBytes)
	}
	return n, err
}
