// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/capacitorset/liqo-broker/pkg/serving/eventstream"
	"github.com/capacitorset/liqo-broker/pkg/serving/restclient"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

// errKnown is an error that the server explains.
var errKnown = errors.New("known")

type (
	listInput struct {
		Paging

		Even  bool     `query:"even"`
		Kinds []string `query:"kind,explode"`
	}
	listed struct {
		ETag string `header:"ETag"`
		Body struct {
			Items    []int  `json:"items"`
			Continue string `json:"continue"`
		}
	}
	written struct {
		Body struct {
			Name string `json:"name"`
		}
	}
)

// api returns an API of tests, which fails as fail says, and what it logs.
func api(t *testing.T, fail func(context.Context) error) (http.Handler, *strings.Builder) {
	t.Helper()
	log, mux := &strings.Builder{}, http.NewServeMux()
	a := New(Config{
		Title: "test", Base: "/v1", Timeout: 50 * time.Millisecond, MaxBody: 64, Failed: "the log says why",
		Explain: func(err error) *huma.ErrorModel {
			if errors.Is(err, errKnown) {
				return &huma.ErrorModel{Type: "known", Title: "Conflict", Status: http.StatusConflict, Detail: err.Error()}
			}
			return nil
		},
		Caller: func(context.Context) string { return "somebody" },
		Log:    funcr.New(func(_, args string) { fmt.Fprintln(log, args) }, funcr.Options{Verbosity: 1}),
	}, mux)
	door := func(ctx huma.Context, next func(huma.Context)) {
		if ctx.Header("Authorization") != "" {
			a.RefuseIn(ctx, Refusal(http.StatusUnauthorized, "no", "WWW-Authenticate", "Bearer"))
			return
		}
		next(ctx)
	}
	Register(a, a.Operation("list", http.MethodGet, "/items", "List", door), func(ctx context.Context, in *listInput) (*listed, error) {
		if err := fail(ctx); err != nil {
			return nil, err
		}
		page, after, err := NewPage[int](in.Paging, fmt.Sprint(in.Even))
		if err != nil {
			return nil, err
		}
		for i := range 10 {
			switch key := fmt.Sprint(i); {
			case key <= after:
				continue
			case in.Even && i%2 == 1:
				page.Pass(key)
				continue
			case page.Full():
				page.End()
			default:
				page.Add(key, "1", i)
				continue
			}
			break
		}
		out := &listed{}
		out.Body.Items, out.Body.Continue = page.Items, page.Continue
		out.ETag, err = page.ETag()
		return out, err
	})
	Register(a, a.Operation("put", http.MethodPut, "/items/{id}", "Write", door),
		func(context.Context, *written) (*written, error) { return nil, errKnown })
	Stream(a, a.Operation("watch", http.MethodGet, "/watch", "Watch", nil), func(
		ctx context.Context, _ *struct{},
	) (func(huma.Context), error) {
		return func(ctx huma.Context) { _, _ = ctx.BodyWriter().Write([]byte("event: x\n\n")) }, fail(ctx)
	})
	if err := a.Seal("/", func(r *http.Request) error {
		if r.Header.Get("Authorization") != "" {
			return TooMany()
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return mux, log
}

func none(context.Context) error { return nil }

// ask makes a request, with headers as pairs.
func ask(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", restclient.JSON)
	}
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestAnswers asks for what there is and for what there is not: what is refused is a problem.
func TestAnswers(t *testing.T) {
	h, log := api(t, none)
	for name, tc := range map[string]struct {
		reason             string
		method, path, body string
		headers            []string
		code               int
		header, value      string
		detail             string
	}{
		"List":   {reason: "Answers are kept by nobody else.", path: "/v1/items", code: 200, header: "Cache-Control", value: "private, no-cache"},
		"Head":   {reason: "A HEAD is a GET without the body.", method: http.MethodHead, path: "/v1/items", code: 200},
		"Stream": {reason: "Streams have their own type.", path: "/v1/watch", headers: []string{"Accept", "text/event-stream"}, code: 200},
		"NoStream": {
			reason: "Who wants JSON gets no events.", path: "/v1/watch", headers: []string{"Accept", restclient.JSON}, code: 406,
			detail: eventstream.MediaType,
		},
		"NoJSON": {
			reason: "A weight of 0 excludes.", path: "/v1/items", headers: []string{"Accept", "text/html, application/json;q=0"}, code: 406,
			detail: restclient.JSON,
		},
		"HeadWatch": {reason: "A stream has no HEAD.", method: http.MethodHead, path: "/v1/watch", code: 405, header: "Allow", value: "GET"},
		"Method": {
			reason: "Other methods are named.", method: http.MethodDelete, path: "/v1/items", code: 405, header: "Allow", value: "GET, HEAD",
			detail: "DELETE",
		},
		"Method2": {reason: "Each path has its own.", path: "/v1/items/a", code: 405, header: "Allow", value: "PUT"},
		"Path":    {reason: "Other paths are told where the paths are.", path: "/v1/other", code: 404, detail: "/v1/openapi.yaml"},
		"Twice":   {reason: "Which one is meant?", path: "/v1/items?limit=1&limit=2", code: 422, detail: "query.limit"},
		"Several": {reason: "Some may be given often.", path: "/v1/items?kind=a&kind=b", code: 200},
		"Unknown": {reason: "A parameter that nobody knows is a mistake.", path: "/v1/items?lmit=1", code: 422},
		"Door": {
			reason: "Who it is comes before what is wrong.", path: "/v1/items?limit=1&limit=2", headers: []string{"Authorization", "x"}, code: 401,
			header: "WWW-Authenticate", value: "Bearer",
		},
		"Explained": {
			reason: "What the server knows is told with its type.", method: http.MethodPut, path: "/v1/items/a", body: `{"name":"a"}`, code: 409,
			detail: "known",
		},
		"Body": {
			reason: "What is not in the schema is refused.", method: http.MethodPut, path: "/v1/items/a", body: `{"more":"a"}`, code: 422,
		},
		"Large": {
			reason: "Bodies are bounded.", method: http.MethodPut, path: "/v1/items/a", body: `{"name":"` + strings.Repeat("a", 99) + `"}`,
			code: 413,
		},
		"Document": {
			reason: "The document is served.", path: "/v1/openapi.yaml", code: 200, header: "Content-Type", value: "application/openapi+yaml",
		},
		"Paced": {
			reason: "To who may have it.", path: "/v1/openapi.json", headers: []string{"Authorization", "x"}, code: 429,
			header: "Retry-After", value: "1",
		},
		"Post": {
			reason: "And is not written.", method: http.MethodPost, path: "/v1/openapi.json", code: 405, header: "Allow", value: "GET, HEAD",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := ask(h, tc.method, tc.path, tc.body, tc.headers...)
			if w.Code != tc.code || w.Header().Get("X-Content-Type-Options") != "nosniff" || tc.header != "" &&
				w.Header().Get(tc.header) != tc.value {
				t.Fatalf("%s\n%d %v %s", tc.reason, w.Code, w.Header(), w.Body)
			}
			if tc.code < 400 || tc.method == http.MethodHead {
				return
			}
			var problem struct {
				Title  string `json:"title"`
				Detail string `json:"detail"`
				Status int    `json:"status"`
			}
			if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil || problem.Status != tc.code || problem.Title == "" ||
				!strings.Contains(problem.Detail, tc.detail) ||
				w.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s\n%v %s (%v)", tc.reason, w.Header(), w.Body, err)
			}
		})
	}
	if log.Len() > 0 {
		t.Errorf("what callers do wrong is logged: %s", log)
	}
}

// TestFailures has operations fail: callers do not learn why, and the log tells who went away from what took too long and from what is
// broken.
func TestFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		fail   func(context.Context) error
		goes   bool // The caller goes away.
		code   int
		logged string
	}{
		"Broken": {
			fail: func(context.Context) error { return errors.New("s3cret") }, code: 500,
			logged: `"Cannot answer a request" "error"="s3cret" "operation"=`,
		},
		"Slow": {
			fail: func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("s3cret: %w", ctx.Err()) }, code: 504,
			logged: `"level"=0 "msg"="A request took too long"`,
		},
		"Gone": {
			fail: func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("s3cret: %w", ctx.Err()) }, goes: true,
			code: restclient.StatusGone, logged: `"level"=1 "msg"="A caller has gone away`,
		},
		"Known": {fail: func(context.Context) error { return fmt.Errorf("more: %w", errKnown) }, code: 409},
		"Refused": {
			fail: func(context.Context) error {
				return fmt.Errorf("list: %w", Later(http.StatusServiceUnavailable, "later", "7"))
			}, code: 503,
		},
	} {
		for _, path := range []string{"/v1/items", "/v1/watch"} {
			t.Run(name+path, func(t *testing.T) {
				h, log := api(t, tc.fail)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tc.goes {
					cancel()
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody))
				if w.Code != tc.code || strings.Contains(w.Body.String(), "s3cret") || w.Header().Get("Content-Type") != "application/problem+json" {
					t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
				}
				if retry := map[int]string{503: "7", 504: "1"}[tc.code]; w.Header().Get("Retry-After") != retry {
					t.Errorf("Retry-After: %q, want %q", w.Header().Get("Retry-After"), retry)
				}
				if !strings.Contains(log.String(), tc.logged) || (log.Len() > 0) != (tc.logged != "") || tc.logged != "" &&
					!strings.Contains(log.String(), "somebody") {
					t.Errorf("logged: %s, want %s", log, tc.logged)
				}
			})
		}
	}
}

// TestPages reads a list page after page: nothing is missing or there twice.
func TestPages(t *testing.T) {
	h, _ := api(t, none)
	read := func(query string) (page listed, w *httptest.ResponseRecorder) {
		w = ask(h, http.MethodGet, "/v1/items?"+query, "")
		_ = json.Unmarshal(w.Body.Bytes(), &page.Body)
		return page, w
	}
	var all []int
	for token := ""; ; {
		page, w := read("even=true&limit=2&continue=" + token)
		if w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		all = append(all, page.Body.Items...)
		if token = page.Body.Continue; token == "" {
			break
		}
	}
	if diff := cmp.Diff([]int{0, 2, 4, 6, 8}, all); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	first, w := read("limit=2")
	for reason, query := range map[string]string{
		"of a list with other filters": "even=true&continue=" + first.Body.Continue, "of nothing": "continue=AAAA",
		"that is no text": "continue=%00",
	} {
		if _, w := read(query); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "query.continue") {
			t.Errorf("a page %s: %d %s", reason, w.Code, w.Body)
		}
	}
	etag := w.Header().Get("ETag")
	if _, other := read("limit=3"); etag == "" || other.Header().Get("ETag") == etag {
		t.Errorf("two pages have the ETag %q", etag)
	}
	for match, code := range map[string]int{etag: 304, `"x", W/` + etag: 304, "*": 304, `"x"`: 200, "": 200} {
		if w := ask(h, http.MethodGet, "/v1/items?limit=2", "", "If-None-Match", match); w.Code != code || w.Header().Get("ETag") != etag ||
			code == 304 && w.Body.Len() > 0 {
			t.Errorf("%s: %d %v %s", match, w.Code, w.Header(), w.Body)
		}
	}
}

// TestAcceptable reads headers Accept.
// TestPageItems adds items to a page: none takes memory beside the list of them, and what differs in keys or versions has another ETag.
func TestPageItems(t *testing.T) {
	newPage := func() *Page[int] {
		page, _, err := NewPage[int](Paging{Limit: 500}, "list")
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	page := newPage()
	page.Items = make([]int, 0, 500)
	key, version := strings.Repeat("k", 8), strings.Repeat("v", 8) // Constants would take none in any case.
	if allocated := testing.AllocsPerRun(100, func() { page.Add(key, version, 1) }); allocated != 0 {
		t.Errorf("an item takes %v allocations", allocated)
	}
	seen := map[string][]string{}
	for _, pairs := range [][]string{{"a", "bc"}, {"ab", "c"}, {"a", "b", "c", "d"}, {"a", `b""c""d`}, {"a", "b", "c", "e"}} {
		page := newPage()
		for pair := range slices.Chunk(pairs, 2) {
			page.Add(pair[0], pair[1], 1)
		}
		etag, err := page.ETag()
		if err != nil || seen[etag] != nil {
			t.Errorf("ETag of %q: %s, %v, which is that of %q", pairs, etag, err, seen[etag])
		}
		seen[etag] = pairs
	}
}

func TestAcceptable(t *testing.T) {
	got := map[string]bool{}
	want := map[string]bool{
		"": true, "*/*": true, "application/*": true, "application/json": true, "text/html, Application/JSON;q=0.1": true,
		"application/json; q=1.0": true, "application/json; charset=utf-8": true, "application/json;q=0, application/json": true,
		"*/*;q=0, application/json": true, "text/html": false, "application/json;q=0": false, "application/json; q=0.000": false,
		"application/jsonx": false, ";;,": false, "*": false, "application/json;q=0, */*": false, "*/*, application/*;q=0": false,
		"application/json;q=x": false,
	}
	for accept := range want {
		got[accept] = acceptable(accept, restclient.JSON)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestCallers keeps something of two callers at most.
func TestCallers(t *testing.T) {
	begun := 0
	c := NewCallers(2, time.Hour, func(source.Source) int { begun++; return begun })
	var got []int
	for _, name := range []string{"a", "b", "a", "c", "a", "b"} {
		got = append(got, c.Of(source.Caller(name)))
	}
	if diff := cmp.Diff([]int{1, 2, 1, 3, 1, 4}, got); diff != "" {
		t.Errorf("who was not seen longest is forgotten: -want +got\n%s", diff)
	}
	short := NewCallers(2, time.Nanosecond, func(source.Source) int { begun++; return begun })
	first := short.Of(source.Caller("a"))
	time.Sleep(time.Millisecond)
	if short.Of(source.Caller("a")) == first {
		t.Error("who has not called for long is not forgotten")
	}
}

// TestServers holds that a document says where its API is, and where the host is not its own, that it is one's to name.
func TestServers(t *testing.T) {
	for name, tc := range map[string]struct {
		host, port string
		want       string
	}{
		"Said":   {"broker.example", "8000", "https://broker.example:8000"},
		"Unsaid": {},
	} {
		t.Run(name, func(t *testing.T) {
			said := ""
			for _, server := range New(Config{Title: "test", Host: tc.host, Port: tc.port}, http.NewServeMux()).OpenAPI().Servers {
				said = server.URL
				for variable, is := range server.Variables {
					said = strings.ReplaceAll(said, "{"+variable+"}", is.Default)
				}
			}
			if said != tc.want {
				t.Errorf("the document says that the API is at %q, want %q", said, tc.want)
			}
		})
	}
}
