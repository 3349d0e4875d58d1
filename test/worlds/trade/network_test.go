// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trade

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"
)

// longestLate is how late a message can be: no connection lasts longer. mostLate bounds those that are.
const (
	longestLate = 3 * time.Minute
	mostLate    = 30
)

// message is a request that can come again.
type message struct {
	request *http.Request
	body    []byte
	sent    time.Time
}

func newMessage(r *http.Request, now time.Time) message {
	body, _ := io.ReadAll(r.Body)
	return message{r.Clone(context.Background()), body, now}
}

func (m message) String() string { return m.request.Method + " " + m.request.URL.RequestURI() }

// deliver has a handler answer.
func (m message) deliver(to http.Handler) *httptest.ResponseRecorder {
	r, answer := m.request.Clone(context.Background()), httptest.NewRecorder()
	r.Body = io.NopCloser(bytes.NewReader(m.body))
	to.ServeHTTP(answer, r)
	return answer
}

// ServeHTTP is the network before a seller.
func (s *seller) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w := s.w
	m := newMessage(r, w.now)
	if w.once(w.late) && len(s.underway) < mostLate {
		s.underway = append(s.underway, m)
	}
	if w.once(w.lost) {
		w.notef("%s to %s is lost", m, s.name)
		panic(http.ErrAbortHandler)
	}
	if s.knowsNothing(out, r) {
		return
	}
	s.leading().behind()
	answer := m.deliver(s.leader.server())
	if w.once(w.doubled) && !s.leader.dead {
		w.notef("%s to %s comes twice", m, s.name)
		answer = m.deliver(s.leader.server())
	}
	if s.leader.dead { // It answers nothing.
		panic(http.ErrAbortHandler)
	}
	if w.once(w.lost) {
		w.notef("the answer of %s to %s is lost", s.name, m)
		panic(http.ErrAbortHandler)
	}
	maps.Copy(out.Header(), answer.Header())
	out.Header().Set("Date", s.clock().UTC().Format(http.TimeFormat))
	out.WriteHeader(answer.Code)
	_, _ = out.Write(answer.Body.Bytes())
}

// late picks a message that comes late, if there is one. It may come once more.
func (s *seller) late() (message, bool) {
	s.underway = slices.DeleteFunc(s.underway, func(m message) bool { return s.w.now.Sub(m.sent) > longestLate })
	if len(s.underway) == 0 {
		return message{}, false
	}
	at := s.w.r.IntN(len(s.underway))
	m := s.underway[at]
	if s.w.r.IntN(2) == 0 {
		s.underway = slices.Delete(s.underway, at, at+1)
	}
	return m, true
}

// comeLate has a message come late, to whoever leads now.
func (s *seller) comeLate() {
	if m, is := s.late(); is {
		s.w.notef("%s comes late to %s", m, s.name)
		m.deliver(s.leading().server())
	}
}
