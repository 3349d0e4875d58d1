// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package httpserver runs HTTP servers on ports that strangers reach: with bounds of
// the connections, of the requests and of the time that they take.
//
// It does not know what is served, nor who may ask for it.
package httpserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// Bounds of a connection, so that slow or large requests hold nothing up.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = 60 * time.Second
	maxHeader     = 16 << 10 // bytes: a bearer token fits well.
	stopTimeout   = 5 * time.Second
)

// silent is the log of a server.
var silent = log.New(io.Discard, "", 0)

// Server is an HTTP server.
type Server struct {
	// Name is what the errors call it.
	Name    string
	Handler http.Handler
	// TLS has the certificate; nil serves without TLS.
	TLS *tls.Config
	// Timeout is how long a request may take.
	Timeout time.Duration
	// Idle is how long a connection may wait for its next request; zero for a minute.
	Idle time.Duration
	// Endless reports whether a request is answered for as long as both sides wish, and ends with the server: its handler
	// bounds what it reads and writes itself. It is nil if there are no such requests.
	Endless func(*http.Request) bool
	// Direct writes answers as they are made: none is kept whole for a reader that is slow, and such a reader is cut off some seconds after
	// Timeout. The handler must end when the context of the request does, with an answer of its own. Otherwise a request that takes too long
	// is answered with 503.
	Direct bool
	// Once ends a connection after one request, so that none of the bounded places is held.
	Once bool
	// ConnContext gives the context of a connection to its requests, as that of http.Server; nil leaves it as it is.
	ConnContext func(context.Context, net.Conn) context.Context
}

// Run serves on a listener until ctx ends, and returns when all requests have ended.
func (s Server) Run(ctx context.Context, listener net.Listener) error {
	if s.TLS != nil {
		config := s.TLS.Clone()
		config.NextProtos = []string{"http/1.1"} // One request at a time on each connection: they are what is bounded.
		listener = tls.NewListener(listener, config)
	}
	server := &http.Server{
		Handler:           s.handler(ctx),
		ReadHeaderTimeout: min(headerTimeout, s.Timeout),
		ReadTimeout:       s.Timeout,
		WriteTimeout:      s.Timeout + headerTimeout,
		IdleTimeout:       cmp.Or(s.Idle, idleTimeout),
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          silent, // What strangers do wrong would fill the log.
		ConnContext:       s.ConnContext,
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	server.SetKeepAlivesEnabled(!s.Once)
	served := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ctx.Done():
		case <-served:
		}
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if server.Shutdown(end) != nil {
			_ = server.Close() // Some request did not end in time.
		}
	}()
	err := server.Serve(listener)
	close(served)
	<-stopped
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s on %s: %w", s.Name, listener.Addr(), err)
	}
	return nil
}

// handler returns the handler with its bounds of time.
func (s Server) handler(ctx context.Context) http.Handler {
	bounded := http.TimeoutHandler(s.Handler, s.Timeout, "the request took too long")
	if s.Direct {
		bounded = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			timed, cancel := context.WithTimeout(r.Context(), s.Timeout)
			defer cancel()
			s.Handler.ServeHTTP(w, r.WithContext(timed))
		})
	}
	if s.Endless == nil {
		return bounded
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.Endless(r) {
			bounded.ServeHTTP(w, r)
			return
		}
		streaming, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		s.Handler.ServeHTTP(w, r.WithContext(streaming)) //nolint:contextcheck // It ends with the request and with the server.
	})
}
