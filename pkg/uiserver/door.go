// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package uiserver

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
)

// What strangers are told.
const (
	messageHost   = "the page is called otherwise: open the address that the terminal shows"
	messageOrigin = "pages of other origins may not ask here"
	messageKey    = "this needs the key of an opened page: open the link that the terminal shows"
	messageAsked  = "the terminal has shown a link just now"
	messageCode   = "the link has been used, or is older than a minute: the terminal gives another one"
)

// maxCode bounds what somebody sends for a key, in bytes.
const maxCode = 1 << 10

// handler answers requests.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", s.cfg.Page)
	mux.HandleFunc("POST "+sessionPath, s.beginSession)
	mux.HandleFunc("POST "+linkPath, s.askForLink)
	mux.Handle(dataPath, s.locked(s.cfg.Data))
	// A name that resolves to this address is no name of ours, and a page of another origin must not ask in this one's name.
	hosts := s.hosts()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !slices.Contains(hosts, strings.ToLower(r.Host)):
			Refuse(w, http.StatusMisdirectedRequest, messageHost)
		case r.URL.Path != "/" && !own(r):
			Refuse(w, http.StatusForbidden, messageOrigin)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

// own reports whether a request comes from the page itself, or from no page, as far as browsers say. Others may lead to the page, and to
// nothing else.
func own(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return false
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin" || site == "none"
}

// beginSession gives a key for a code.
func (s *Server) beginSession(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Code string `json:"code"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCode)).Decode(&asked); err != nil {
		Refuse(w, http.StatusBadRequest, "this is no JSON with a code")
		return
	}
	key, ok := s.lock.exchange(asked.Code)
	if !ok {
		Refuse(w, http.StatusUnauthorized, messageCode)
		return
	}
	Answer(w, struct {
		Key string `json:"key"`
	}{key})
}

// askForLink shows the person another link. Who asks does not get it.
func (s *Server) askForLink(w http.ResponseWriter, _ *http.Request) {
	if s.cfg.Asked == nil || !s.asking.Allow() {
		Refuse(w, http.StatusTooManyRequests, messageAsked)
		return
	}
	s.cfg.Asked(s.Link(""))
	w.WriteHeader(http.StatusNoContent)
}

// locked lets in who has a key.
func (s *Server) locked(data http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.lock.opens(delegatedauth.Bearer(r)) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			Refuse(w, http.StatusUnauthorized, messageKey)
			return
		}
		leave := s.idle.enter()
		defer leave()
		data.ServeHTTP(w, r)
	})
}

// Answer answers with a value as JSON, which nobody keeps.
func Answer(w http.ResponseWriter, value any) {
	write(w, http.StatusOK, "application/json", value)
}

// Fault is one of several that a problem has.
type Fault struct {
	Message string `json:"message"`
}

// Refuse answers with a problem (RFC 9457), and with each of several faults if there are any.
func Refuse(w http.ResponseWriter, status int, detail string, faults ...Fault) {
	write(w, status, "application/problem+json", struct {
		Title  string  `json:"title"`
		Status int     `json:"status"`
		Detail string  `json:"detail"`
		Errors []Fault `json:"errors,omitempty"`
	}{http.StatusText(status), status, detail, faults})
}

func write(w http.ResponseWriter, status int, media string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"title":"Internal Server Error","status":500,"detail":"it cannot be written"}`)
		media = "application/problem+json"
	}
	header := w.Header()
	header.Set("Content-Type", media)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // Who has gone does not read it.
}
