// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restclient calls REST APIs as package rest serves them: answers are bounded, and refusals are errors with the reason that was
// given.
//
// It trusts whoever answers with nothing, and does not know what is asked for, nor how the connection is made.
package restclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// JSON is the media type of requests and of all answers but problems and streams of events, and Problem that of problem documents (RFC
// 9457).
const (
	JSON    = "application/json"
	Problem = "application/problem+json"
)

// StatusGone is the status of what is answered to a caller that has gone away. It gets none: only who measures answers sees it, and who
// still listens while the server stops.
const StatusGone = 499

const (
	// maxProblem bounds a problem document, in bytes, and maxDetail what of its reason is told further.
	maxProblem, maxDetail = 16 << 10, 1 << 10
	// maxRetryAfter bounds for how long a server can ask its callers to wait.
	maxRetryAfter = time.Hour
)

// ErrNoAnswer means that there was no answer: who is there is not known, or nobody.
var ErrNoAnswer = errors.New("no answer")

// ErrTooLarge means that an answer has more bytes than the client takes.
var ErrTooLarge = errors.New("the answer is too large")

// Config is what a client needs. All but Errors, Decode and Answered must be there.
type Config struct {
	// Base is the URL before the paths, and Server what errors call who is there, such as the registry.
	Base, Server string
	Transport    http.RoundTripper
	// MaxAnswer bounds answers, in bytes.
	MaxAnswer int64
	// Errors are what errors.Is finds in a refusal, by the type of its problem.
	Errors map[string]error
	// Decode reads an answer; nil for any JSON.
	Decode func(text []byte, into any) error
	// Answered is shown each answer before it is read, also a refusal; nil to show none.
	Answered func(*http.Response)
}

// Client calls an API. It is safe for concurrent use.
type Client struct {
	cfg  Config
	http *http.Client
}

// New returns a client, which follows no redirects.
func New(cfg Config) *Client {
	if cfg.Decode == nil {
		cfg.Decode = json.Unmarshal
	}
	if cfg.Answered == nil {
		cfg.Answered = func(*http.Response) {}
	}
	return &Client{cfg: cfg, http: &http.Client{
		Transport: cfg.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes the connections that are not in use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Field is a part of a request with which something is wrong.
type Field struct {
	// Location is where, such as body.offer.plans[2].price.amount.
	Location string `json:"location,omitempty"`
	Message  string `json:"message"`
}

// RefusalError is a server's reason not to do something (RFC 9457).
type RefusalError struct {
	Type   string  `json:"type,omitempty"`
	Title  string  `json:"title"`
	Status int     `json:"status"`
	Detail string  `json:"detail,omitempty"`
	Errors []Field `json:"errors,omitempty"`

	// RetryAfter is when the server wants to be asked again; zero if it does not say.
	RetryAfter time.Duration `json:"-"`

	server string
	means  error
}

// Error is the reason.
func (r *RefusalError) Error() string {
	return fmt.Sprintf("%s refuses it with %d %s: %s", r.server, r.Status, http.StatusText(r.Status), r.Detail)
}

// Unwrap returns what the type of the problem means; nil if nothing.
func (r *RefusalError) Unwrap() error { return r.means }

// Temporary reports whether the same request may be answered otherwise later, though nobody does anything.
func (r *RefusalError) Temporary() bool {
	return r.Status >= StatusGone || r.Status == http.StatusTooManyRequests || r.Status == http.StatusRequestTimeout
}

// Refused returns why a server has refused what led to an error; nil if it was not a refusal that lasts.
func Refused(err error) *RefusalError {
	var r *RefusalError
	if errors.As(err, &r) && !r.Temporary() {
		return r
	}
	return nil
}

// noAnswerError is ErrNoAnswer with its reason.
type noAnswerError struct{ error }

func (e noAnswerError) Is(target error) bool { return target == ErrNoAnswer }
func (e noAnswerError) Unwrap() error        { return e.error }

// Call makes a request with a body as JSON, unless that is nil, and reads the answer into a value, unless that is nil. The error is a
// *RefusalError, ErrNoAnswer, ErrTooLarge or that of Decode.
func (c *Client) Call(ctx context.Context, method, path string, body, into any) error {
	answer, err := c.Send(ctx, method, path, body, JSON)
	if err == nil {
		defer answer.Body.Close()
		err = c.readAnswer(answer, into)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, c.cfg.Base+path, err)
	}
	return nil
}

func (c *Client) readAnswer(answer *http.Response, into any) error {
	if into == nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, c.cfg.MaxAnswer+1))
	if err == nil && int64(len(text)) > c.cfg.MaxAnswer {
		return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, c.cfg.MaxAnswer)
	}
	if err == nil {
		err = c.cfg.Decode(text, into)
	}
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// Send makes a request as Call does, and returns the answer to be read and closed, which is not bounded. An answer without success is a
// *RefusalError.
func (c *Client) Send(ctx context.Context, method, path string, body any, accept string) (*http.Response, error) {
	var content io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("write the request: %w", err)
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.cfg.Base+path, content)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	request.Header.Set("Accept", accept)
	if body != nil {
		request.Header.Set("Content-Type", JSON)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // The URL is told by who knows it.
		}
		return nil, noAnswerError{err}
	}
	c.cfg.Answered(answer)
	if answer.StatusCode >= http.StatusOK && answer.StatusCode < http.StatusMultipleChoices {
		return answer, nil
	}
	defer answer.Body.Close()
	return nil, c.refusal(answer)
}

// refusal reads why something is refused. The reason is cut where it is long, and has nothing that a terminal takes for an order.
func (c *Client) refusal(answer *http.Response) *RefusalError {
	r := &RefusalError{}
	if kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type")); err == nil && kind == Problem {
		if json.NewDecoder(io.LimitReader(answer.Body, maxProblem)).Decode(r) != nil {
			r = &RefusalError{}
		}
	}
	r.Status, r.server, r.means = answer.StatusCode, c.cfg.Server, c.cfg.Errors[r.Type]
	if r.Detail == "" {
		r.Detail = "it does not say why"
	}
	r.Detail = strings.Map(func(char rune) rune {
		if !unicode.IsPrint(char) {
			return ' '
		}
		return char
	}, strings.ToValidUTF8(r.Detail[:min(maxDetail, len(r.Detail))], ""))
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > 0 {
		r.RetryAfter = min(time.Duration(min(seconds, 1<<20))*time.Second, maxRetryAfter)
	}
	return r
}
