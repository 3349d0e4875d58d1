// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package promquery asks a Prometheus server, or one that speaks its HTTP API, for
// the values that a query has at this moment. What it takes to answer is bounded, in
// time and in size.
//
// It does not know what is asked, nor what the values are used for.
package promquery

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// DefaultTimeout is how long an answer may take, unless a Config says otherwise.
const DefaultTimeout = 5 * time.Second

const (
	// maxBytes bounds an answer: a value with a few labels has about 200 bytes.
	maxBytes = 4 << 20
	// maxSamples bounds how many values an answer has.
	maxSamples = 10_000
)

// What goes wrong, for errors.Is.
var (
	// ErrNone: there is no server to ask.
	ErrNone = errors.New("no Prometheus is configured: set the broker's flag --prometheus")
	// ErrUnavailable: the server cannot be reached, or is not able to answer now.
	ErrUnavailable = errors.New("no answer from Prometheus")
	// ErrRefused: the server does not accept the query, or not from us.
	ErrRefused = errors.New("refused by Prometheus")
	// ErrAnswer: the answer is not one that can be used.
	ErrAnswer = errors.New("the answer cannot be used")
)

// Sample is one value of an answer.
type Sample struct {
	Labels map[string]string
	// Value may be no number.
	Value float64
	// At is when Prometheus evaluated the query, by its own clock.
	At time.Time
}

// Asker answers queries, in its own time: Client and None do.
type Asker interface {
	// Query returns the values that a query has at this moment. Its error says why there are none.
	Query(ctx context.Context, query string) ([]Sample, error)
}

// None is the Prometheus of those who have none.
type None struct{}

// Query returns ErrNone.
func (None) Query(context.Context, string) ([]Sample, error) { return nil, ErrNone }

// Config says where the server is, and how to prove who asks.
type Config struct {
	// URL is that of the server, without credentials.
	URL string
	// CAFile has the certificates that the server's is checked against; those of the
	// system if it is empty.
	CAFile string
	// TokenFile has the bearer token; empty for none. It is read for each query, as
	// tokens are renewed.
	TokenFile string
	// Timeout is how long an answer may take; DefaultTimeout if it is zero.
	Timeout time.Duration
}

// Client asks one server. It may be used concurrently.
type Client struct {
	api     v1.API
	timeout time.Duration
}

// NewAsker returns the client of a server, or None if no URL is given.
func NewAsker(cfg Config) (Asker, error) {
	if cfg.URL == "" {
		return None{}, nil
	}
	c, err := New(cfg)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// New returns a Client, or an error that tells what is wrong with the configuration.
// It does not ask the server.
func New(cfg Config) (*Client, error) {
	address, err := url.Parse(cfg.URL)
	switch {
	case err != nil:
		return nil, errors.New("the URL cannot be parsed") // The error may show a password.
	case address.User != nil:
		return nil, errors.New("the URL must not have credentials, which belong in a file")
	case address.Scheme != "http" && address.Scheme != "https" || address.Host == "":
		return nil, fmt.Errorf("%q is not http[s]://HOST[:PORT][/PATH]", cfg.URL)
	case address.Scheme == "http" && cfg.TokenFile != "":
		return nil, errors.New("a token must not be sent over http, in plain text")
	}
	timeout := cmp.Or(cfg.Timeout, DefaultTimeout)
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: timeout,
		MaxIdleConns:        2,
		IdleConnTimeout:     time.Minute,
	}
	if cfg.CAFile != "" {
		certificates, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the certificates: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(certificates) {
			return nil, fmt.Errorf("%s has no certificate", cfg.CAFile)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	if cfg.TokenFile != "" {
		if _, err := token(cfg.TokenFile); err != nil {
			return nil, err
		}
	}
	client, err := api.NewClient(api.Config{Address: cfg.URL, Client: &http.Client{
		Transport: bounded{next: transport, tokenFile: cfg.TokenFile},
		// A token is for one server, and a query as well.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
	if err != nil {
		return nil, fmt.Errorf("make the client of %s: %w", cfg.URL, err)
	}
	return &Client{api: v1.NewAPI(client), timeout: timeout}, nil
}

// Query returns the values of a query at this moment, as the server's clock has it: one
// without labels if the query is a number, none if nothing matches. Its errors are
// those of this package.
func (c *Client) Query(ctx context.Context, query string) ([]Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	value, warnings, err := c.api.Query(ctx, query, time.Time{}, v1.WithTimeout(c.timeout))
	switch {
	case err != nil:
		return nil, fmt.Errorf("query %q: %w", query, translate(err))
	case len(warnings) > 0:
		return nil, fmt.Errorf("query %q: %w: it may be incomplete: %s", query, ErrAnswer, warnings[0])
	}
	switch v := value.(type) {
	case *model.Scalar:
		return []Sample{{Value: float64(v.Value), At: v.Timestamp.Time()}}, nil
	case model.Vector:
		if len(v) > maxSamples {
			return nil, fmt.Errorf("query %q: %w: it has %d values, more than %d", query, ErrAnswer, len(v), maxSamples)
		}
		samples := make([]Sample, len(v))
		for i, s := range v {
			if s.Histogram != nil {
				return nil, fmt.Errorf("query %q: %w: it has histograms, not numbers", query, ErrAnswer)
			}
			samples[i] = Sample{Labels: make(map[string]string, len(s.Metric)), Value: float64(s.Value), At: s.Timestamp.Time()}
			for name, value := range s.Metric {
				samples[i].Labels[string(name)] = string(value)
			}
		}
		return samples, nil
	default:
		return nil, fmt.Errorf("query %q: %w: it is a %s, not an instant vector", query, ErrAnswer, kind(value))
	}
}

func kind(value model.Value) string {
	if value == nil {
		return "nothing"
	}
	return value.Type().String()
}

// translate returns an error of this package for one of the client's.
func translate(err error) error {
	var failed *v1.Error
	var address *url.Error
	var network net.Error
	switch {
	case errors.Is(err, ErrAnswer):
		return err
	case errors.As(err, &failed):
		return fmt.Errorf("%w: %w", kindOf(failed.Type), err)
	case errors.As(err, &address): // Without the URL, which the operator knows.
		return fmt.Errorf("%w: %w", ErrUnavailable, address.Err)
	case errors.As(err, &network), errors.Is(err, context.Canceled), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	default: // It is no JSON, or not what was expected in it.
		return fmt.Errorf("%w: %w", ErrAnswer, err)
	}
}

// kindOf returns which error of this package one of the API is.
func kindOf(t v1.ErrorType) error {
	if t == v1.ErrBadData || t == v1.ErrExec || t == v1.ErrClient {
		return ErrRefused
	}
	if t == v1.ErrBadResponse {
		return ErrAnswer
	}
	return ErrUnavailable
}
