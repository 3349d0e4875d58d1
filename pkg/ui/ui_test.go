// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/ui"
)

func page(t *testing.T) *ui.Page {
	t.Helper()
	p, err := ui.New()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ask returns the answer to a request; headers are names and values in turn.
func ask(t *testing.T, method, path string, headers ...string) (answer *httptest.ResponseRecorder, body string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Add(pair[0], pair[1])
	}
	answer = httptest.NewRecorder()
	page(t).ServeHTTP(answer, r)
	body = answer.Body.String()
	if answer.Header().Get("Content-Encoding") == "gzip" && method == http.MethodGet && answer.Code == http.StatusOK {
		reader, err := gzip.NewReader(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		body = string(unpacked)
	}
	return answer, body
}

func TestAnswers(t *testing.T) {
	cases := map[string]struct {
		method, path string
		headers      []string
		want         int
		kind         string
	}{
		"Root":     {path: "/", want: http.StatusOK, kind: "text/html; charset=utf-8"},
		"Index":    {path: "/index.html", want: http.StatusOK, kind: "text/html; charset=utf-8"},
		"Script":   {path: "/app.js", want: http.StatusOK, kind: "text/javascript; charset=utf-8"},
		"Style":    {path: "/app.css", want: http.StatusOK, kind: "text/css; charset=utf-8"},
		"Licences": {path: "/licences.txt", want: http.StatusOK, kind: "text/plain; charset=utf-8"},
		"Head":     {method: http.MethodHead, path: "/app.js", want: http.StatusOK, kind: "text/javascript; charset=utf-8"},
		"Part": {
			path: "/app.js", headers: []string{"Range", "bytes=0-3"}, want: http.StatusOK, kind: "text/javascript; charset=utf-8",
		},
		"Post":              {method: http.MethodPost, path: "/", want: http.StatusMethodNotAllowed},
		"NoFile":            {path: "/app.map", want: http.StatusNotFound},
		"AsStored":          {path: "/app.js.gz", want: http.StatusNotFound},
		"Folder":            {path: "/dist/app.js", want: http.StatusNotFound},
		"Traversal":         {path: "/../ui.go", want: http.StatusNotFound},
		"EncodedTraversal":  {path: "/%2e%2e/ui.go", want: http.StatusNotFound},
		"TwoSlashes":        {path: "//app.js", want: http.StatusNotFound},
		"PostToWhatIsNot":   {method: http.MethodPost, path: "/session", want: http.StatusNotFound},
		"API":               {path: "/api/v1/me", want: http.StatusNotFound},
		"UpperCase":         {path: "/APP.JS", want: http.StatusNotFound},
		"WithSlash":         {path: "/app.js/", want: http.StatusNotFound},
		"WithWhatIsIgnored": {path: "/app.js?v=1", want: http.StatusOK, kind: "text/javascript; charset=utf-8"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			method := tc.method
			if method == "" {
				method = http.MethodGet
			}
			answer, body := ask(t, method, tc.path, tc.headers...)
			if answer.Code != tc.want {
				t.Fatalf("it answers %d, and not %d", answer.Code, tc.want)
			}
			for header, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
				"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			} {
				if got := answer.Header().Get(header); got != want {
					t.Errorf("%s is %q, and not %q", header, got, want)
				}
			}
			rules := strings.Split(answer.Header().Get("Content-Security-Policy"), "; ")
			for _, rule := range []string{
				"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
			} {
				if !slices.Contains(rules, rule) {
					t.Errorf("the policy lacks %s: %q", rule, rules)
				}
			}
			if tc.want != http.StatusOK {
				return
			}
			if got := answer.Header().Get("Content-Type"); got != tc.kind {
				t.Errorf("its type is %q, and not %q", got, tc.kind)
			}
			if got := answer.Header().Get("Cache-Control"); got != "no-cache" {
				t.Errorf("Cache-Control is %q", got)
			}
			if (body == "") != (method == http.MethodHead) {
				t.Errorf("its body has %d bytes", len(body))
			}
		})
	}
}

// TestKept holds that a browser asks once for a file whose name changes with what is in it, and again for all others.
func TestKept(t *testing.T) {
	entries, err := os.ReadDir("dist")
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), ".gz")
		answer, _ := ask(t, http.MethodGet, "/"+name)
		if answer.Code != http.StatusOK {
			continue // It is for pages that are files.
		}
		said, named := answer.Header().Get("Cache-Control"), strings.HasPrefix(name, "chunk-") || strings.HasPrefix(name, "loaded-")
		if strings.Contains(said, "immutable") != named {
			t.Errorf("Cache-Control of %s is %q", name, said)
		}
		if named {
			kept++
		}
	}
	if kept == 0 {
		t.Error("no file is called after what is in it")
	}
}

func TestEncodings(t *testing.T) {
	cases := map[string]struct {
		accepts string
		packed  bool
	}{
		"Nothing":   {"", false},
		"Browser":   {"gzip, deflate, br", true},
		"Weighted":  {"br;q=1.0, GZIP;q=0.5", true},
		"Refused":   {"gzip;q=0, identity", false},
		"RefusedSo": {"gzip; q=0.000", false},
		"Other":     {"br", false},
		"Similar":   {"xgzip", false},
	}
	_, want := ask(t, http.MethodGet, "/app.js")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			answer, body := ask(t, http.MethodGet, "/app.js", "Accept-Encoding", tc.accepts)
			if packed := answer.Header().Get("Content-Encoding") == "gzip"; packed != tc.packed {
				t.Errorf("whether it is packed is %t", packed)
			}
			if answer.Header().Get("Vary") != "Accept-Encoding" {
				t.Error("a cache would give it to others")
			}
			if body != want {
				t.Error("it is not the same")
			}
		})
	}
}

func TestUnchanged(t *testing.T) {
	plain, _ := ask(t, http.MethodGet, "/app.css")
	packed, _ := ask(t, http.MethodGet, "/app.css", "Accept-Encoding", "gzip")
	tag := packed.Header().Get("ETag")
	if tag == "" || tag == plain.Header().Get("ETag") {
		t.Fatalf("the tags of what is packed and of what is not are %q and %q", tag, plain.Header().Get("ETag"))
	}
	again, body := ask(t, http.MethodGet, "/app.css", "Accept-Encoding", "gzip", "If-None-Match", tag)
	if again.Code != http.StatusNotModified || body != "" {
		t.Errorf("it answers %d with %d bytes", again.Code, len(body))
	}
	if other, _ := ask(t, http.MethodGet, "/app.js", "Accept-Encoding", "gzip", "If-None-Match", tag); other.Code != http.StatusOK {
		t.Errorf("the tag of another file has it answer %d", other.Code)
	}
}

// TestIndex checks that what the page names is there, and that nothing in it would be refused by the policy.
func TestIndex(t *testing.T) {
	_, index := ask(t, http.MethodGet, "/")
	named := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(index, -1)
	if len(named) < 2 {
		t.Fatalf("the page names %d files", len(named))
	}
	for _, name := range named {
		if strings.HasPrefix(name[1], "data:") {
			continue
		}
		if answer, _ := ask(t, http.MethodGet, "/"+name[1]); answer.Code != http.StatusOK {
			t.Errorf("the page names %s, which is not there", name[1])
		}
	}
	if inline := regexp.MustCompile(`(?i)<style|<script[^>]*>[^<]|\s(on\w+|style)=`).FindString(index); inline != "" {
		t.Errorf("the page has %q in it, which its policy refuses", inline)
	}
}

// TestSources refuses what the policy of the page would refuse at run time, and any other host.
func TestSources(t *testing.T) {
	_, script := ask(t, http.MethodGet, "/app.js")
	for _, word := range []string{"eval(", "new Function", "document.write", "EventSource", "localStorage.setItem(\"liqo-broker-key"} {
		if strings.Contains(script, word) {
			t.Errorf("the script has %q", word)
		}
	}
	for _, address := range regexp.MustCompile(`https?://[^"'\x60\s]+`).FindAllString(script, -1) {
		if !strings.HasPrefix(address, "http://www.w3.org/") { // Names of XML.
			t.Errorf("the script names %s", address)
		}
	}
}

func TestLicences(t *testing.T) {
	_, text := ask(t, http.MethodGet, "/licences.txt")
	for _, name := range []string{"preact ", "@preact/signals ", "@preact/signals-core ", "Permission is hereby granted"} {
		if !strings.Contains(text, name) {
			t.Errorf("the licences do not have %q", name)
		}
	}
}

// TestPacked checks that what is stored has neither a name nor a time in it, with which the same sources would not give the same bytes.
func TestPacked(t *testing.T) {
	for _, name := range []string{"/", "/app.js", "/app.css", "/licences.txt"} {
		answer, _ := ask(t, http.MethodHead, name, "Accept-Encoding", "gzip")
		full := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, name, http.NoBody)
		r.Header.Set("Accept-Encoding", "gzip")
		page(t).ServeHTTP(full, r)
		reader, err := gzip.NewReader(bytes.NewReader(full.Body.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if reader.Name != "" || !reader.ModTime.IsZero() {
			t.Errorf("%s has the name %q and the time %s", name, reader.Name, reader.ModTime)
		}
		if answer.Header().Get("ETag") != full.Header().Get("ETag") {
			t.Errorf("%s has one tag for HEAD and another for GET", name)
		}
	}
}
