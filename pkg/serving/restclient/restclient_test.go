// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package restclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/serving/restclient"
)

var errStale = errors.New("stale")

// call calls a server that answers with a status, a media type, headers as pairs and a body.
func call(t *testing.T, status int, mediaType, body string, into any, headers ...string) (answered int, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		if string(sent) != `{"a":1}` || r.Header.Get("Content-Type") != restclient.JSON || r.Header.Get("Accept") != restclient.JSON ||
			r.URL.Path != "/v1/items" {
			t.Errorf("asked with %s %v %s", r.URL, r.Header, sent)
		}
		w.Header().Set("Content-Type", mediaType)
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	c := restclient.New(restclient.Config{
		Base: server.URL + "/v1", Server: "the test", Transport: &http.Transport{}, MaxAnswer: 64,
		Errors: map[string]error{"urn:stale": errStale}, Answered: func(a *http.Response) { answered = a.StatusCode },
	})
	defer c.Close()
	err = c.Call(t.Context(), http.MethodPut, "/items", map[string]int{"a": 1}, into)
	return answered, err
}

// TestAnswers reads answers: what is no success is a refusal with its reason, whatever there is in it.
func TestAnswers(t *testing.T) {
	const problem = "application/problem+json"
	for name, tc := range map[string]struct {
		reason               string
		status               int
		mediaType, body      string
		headers              []string
		is                   error
		says                 string
		refused, temporarily bool
		after                time.Duration
	}{
		"OK":      {reason: "What is asked for is read.", status: 200, mediaType: restclient.JSON, body: `{"b":2}`},
		"Created": {reason: "So is any success.", status: 201, mediaType: restclient.JSON, body: `{"b":2}`},
		"Large": {
			reason: "Answers are bounded.", status: 200, mediaType: restclient.JSON, body: `{"b":2,"c":"` + strings.Repeat("x", 64) + `"}`,
			is: restclient.ErrTooLarge,
		},
		"NoJSON": {
			reason: "What cannot be read is said.", status: 200, mediaType: restclient.JSON, body: `{`, says: "/v1/items: read the answer: ",
		},
		"Typed": {
			reason: "The type of a problem is found.", status: 409, mediaType: problem, body: `{"type":"urn:stale","detail":"old"}`, is: errStale,
			says: "the test refuses it with 409 Conflict: old", refused: true,
		},
		"Untyped": {
			reason: "Others have none.", status: 409, mediaType: problem + "; charset=utf-8", body: `{"type":"urn:other","detail":"old"}`,
			says: ": old", refused: true,
		},
		"NoReason": {
			reason: "What is no problem document says nothing.", status: 400, mediaType: "text/html", body: "<h1>", says: "it does not say why",
			refused: true,
		},
		"Broken": {
			reason: "Nor does a broken one.", status: 400, mediaType: problem, body: `{"detail":"x`, says: "it does not say why", refused: true,
		},
		"Terminal": {
			reason: "Orders to a terminal are none.", status: 400, mediaType: problem, body: "{\"detail\":\"a\\u001b[31mb\"}", says: "a [31mb",
			refused: true,
		},
		"Redirect": {
			reason: "A redirect is not followed.", status: 307, mediaType: "text/html", headers: []string{"Location", "http://127.0.0.1:1"},
			says: "307", refused: true,
		},
		"Later": {
			reason: "It may be asked again.", status: 429, mediaType: problem, headers: []string{"Retry-After", "7"}, refused: true,
			temporarily: true, after: 7 * time.Second,
		},
		"Never": {
			reason: "But not never.", status: 503, mediaType: problem, headers: []string{"Retry-After", "99999999999"}, refused: true,
			temporarily: true, after: time.Hour,
		},
		"Failed": {reason: "It may be mended.", status: 504, mediaType: problem, refused: true, temporarily: true},
		"Gone":   {reason: "It stops.", status: 499, mediaType: problem, refused: true, temporarily: true},
	} {
		t.Run(name, func(t *testing.T) {
			var got struct{ B int }
			answered, err := call(t, tc.status, tc.mediaType, tc.body, &got, tc.headers...)
			var r *restclient.RefusalError
			if answered != tc.status || errors.As(err, &r) != tc.refused || (err == nil) != (got.B == 2) || errors.Is(err, restclient.ErrNoAnswer) {
				t.Fatalf("%s\nanswered %d: %+v, %v", tc.reason, answered, got, err)
			}
			if tc.is != nil && !errors.Is(err, tc.is) || tc.is == nil && errors.Is(err, errStale) || !strings.Contains(fmt.Sprint(err), tc.says) {
				t.Errorf("%s\n%v, want %v that says %q", tc.reason, err, tc.is, tc.says)
			}
			if tc.refused && (r.Status != tc.status || r.Temporary() != tc.temporarily || r.RetryAfter != tc.after ||
				(restclient.Refused(err) == nil) != tc.temporarily) {
				t.Errorf("%s\n%+v", tc.reason, r)
			}
		})
	}
}

// TestBounds has a server say more than anybody reads.
func TestBounds(t *testing.T) {
	_, err := call(t, 400, "application/problem+json", `{"detail":"`+strings.Repeat("é", 5000)+`"}`, nil)
	r := restclient.Refused(err)
	if r == nil || len(r.Detail) > 1<<10 || !strings.HasPrefix(r.Detail, "éé") || strings.ToValidUTF8(r.Detail, "") != r.Detail {
		t.Errorf("%v", err)
	}
	if _, err := call(t, 400, "application/problem+json",
		`{"detail":"`+strings.Repeat("x", 1<<20)+`"}`, nil); restclient.Refused(err) == nil || len(err.Error()) > 2<<10 {
		t.Errorf("%.100v", err)
	}
}

// TestNoAnswer calls nobody, and with a context that has ended.
func TestNoAnswer(t *testing.T) {
	c := restclient.New(restclient.Config{Base: "http://127.0.0.1:1", Server: "nobody", Transport: &http.Transport{}, MaxAnswer: 1})
	if err := c.Call(t.Context(), http.MethodGet, "/a", nil, nil); !errors.Is(err, restclient.ErrNoAnswer) ||
		strings.Count(err.Error(), "127.0.0.1:1/a") != 1 {
		t.Errorf("%v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Call(ended, http.MethodGet, "/a", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
