// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/base64"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/shown/showntest"
	"github.com/capacitorset/liqo-broker/pkg/ui"
)

func hostedPage(t *testing.T) http.Handler {
	t.Helper()
	page, err := ui.New()
	if err != nil {
		t.Fatalf("New(): %v", err)
	}
	hosted, err := page.Hosted()
	if err != nil {
		t.Fatalf("Hosted(): %v", err)
	}
	return hosted
}

// TestPage asks for the page as strangers do.
func TestPage(t *testing.T) {
	page, names := hostedPage(t), []string{"broker.example", "::1", "*.wild.example"}
	cases := map[string]struct {
		reason, method, target string
		off                    bool
		names                  []string // Nil for any.
		want                   int
		has                    string // In the body.
	}{
		"Off":       {reason: "It is off unless somebody wants it.", off: true, target: "/ui/", want: http.StatusNotFound},
		"OffFile":   {reason: "So are its files.", off: true, target: "/ui/app.js", want: http.StatusNotFound},
		"Document":  {reason: "It learns how it is served.", target: "/ui/", want: http.StatusOK, has: "<html data-hosted "},
		"Script":    {reason: "It has its script.", target: "/ui/app.js", want: http.StatusOK},
		"Style":     {reason: "It has its style.", target: "/ui/app.css", want: http.StatusOK},
		"Slash":     {reason: "People forget the slash.", target: "/ui", want: http.StatusTemporaryRedirect},
		"None":      {reason: "There is nothing else.", target: "/ui/none", want: http.StatusNotFound},
		"Outside":   {reason: "It is no way to other files.", target: "/ui/%2e%2e/%2e%2e/etc/passwd", want: http.StatusNotFound},
		"Backslash": {reason: "By no spelling.", target: `/ui/..%5c..%5cetc%5cpasswd`, want: http.StatusNotFound},
		"Encoded":   {reason: "Nor with an encoded slash.", target: "/ui/..%2f..%2fetc%2fpasswd", want: http.StatusNotFound},
		"Head":      {reason: "It can be asked for its head.", method: http.MethodHead, target: "/ui/", want: http.StatusOK},
		"Post":      {reason: "It can only be read.", method: http.MethodPost, target: "/ui/", want: http.StatusMethodNotAllowed},
		"NoSession": {
			reason: "Codes are the plugin's.",
			method: http.MethodPost, target: "/ui/session", want: http.StatusNotFound,
		},
		"Clear": {
			reason: "Nobody gives a token to what came in clear.",
			target: "http://broker.example/ui/", want: http.StatusForbidden,
		},
		"Name":     {reason: "It has its name.", target: "https://Broker.Example:30800/ui/", names: names, want: http.StatusOK},
		"Address":  {reason: "Addresses are names too.", target: "https://[::1]:8000/ui/", names: names, want: http.StatusOK},
		"Wildcard": {reason: "It may have many names.", target: "https://a.wild.example/ui/", names: names, want: http.StatusOK},
		"Deeper": {
			reason: "Certificates go no deeper.",
			target: "https://a.b.wild.example/ui/", names: names, want: http.StatusMisdirectedRequest,
		},
		"OtherName": {
			reason: "It has no other.",
			target: "https://evil.example/ui/", names: names, want: http.StatusMisdirectedRequest,
		},
		"OtherFiles": {
			reason: "Nor have its files.",
			target: "https://evil.example/ui/app.js", names: names, want: http.StatusMisdirectedRequest,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Client: newClient(t, reviews()), Orchestrator: true, Origins: []string{"https://a.example"}, Page: page, Hosts: tc.names}
			if tc.off {
				cfg.Page = nil
			}
			if tc.method == "" {
				tc.method = http.MethodGet
			}
			got := call(t, newHandler(t, cfg), tc.method, tc.target, "Origin", "https://a.example")
			if got.Code != tc.want || !strings.Contains(got.Body.String(), tc.has) {
				t.Errorf("%s\n%s %s: %d %.200s; want %d and %q", tc.reason, tc.method, tc.target, got.Code, got.Body, tc.want, tc.has)
			}
			header := got.Header()
			if header.Get("Set-Cookie") != "" || header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("It has cookies, or is there for other origins: %v", header)
			}
			if got.Code != http.StatusOK {
				return
			}
			if policy := header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; script-src 'self';") {
				t.Errorf("The policy is %q", policy)
			}
			if header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("Headers are %v", header)
			}
		})
	}
}

// TestPageHasNoData checks that who has the page has nothing of the broker yet, and that strangers get it only so often.
func TestPageHasNoData(t *testing.T) {
	s := serve(t, func(c *Config) { c.Page = hostedPage(t) }, showntest.World()...)
	if a := ok(s.as(t, "", nil).GetMeWithResponse(t.Context())); a.StatusCode() != http.StatusUnauthorized {
		t.Errorf("Without a token: %d %s; want %d", a.StatusCode(), a.Body, http.StatusUnauthorized)
	}
	h := newHandler(t, Config{Client: newClient(t, reviews()), Orchestrator: true, Page: hostedPage(t)})
	var refused int
	for range 2 * atOnceFiles {
		if call(t, h, http.MethodGet, "/ui/").Code == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused == 0 || refused > atOnceFiles {
		t.Errorf("Of %d requests at once %d were refused, want at least one and at most %d", 2*atOnceFiles, refused, atOnceFiles)
	}
}

// TestScreens has many screens behind one address open the page at once: each gets all files, and there is as much left as before of what
// else can be asked for.
func TestScreens(t *testing.T) {
	const screens = 50
	entries, err := os.ReadDir("../ui/dist")
	if err != nil {
		t.Fatal(err)
	}
	targets := []string{"/ui/"}
	for _, entry := range entries {
		if name := strings.TrimSuffix(entry.Name(), ".gz"); !slices.Contains([]string{"index.html", "licences.txt", "saved.js"}, name) {
			targets = append(targets, "/ui/"+name)
		}
	}
	h := newHandler(t, Config{Client: newClient(t, reviews()), Orchestrator: true, AnonymousCatalog: true, Page: hostedPage(t)})
	for range screens {
		for _, target := range targets {
			if got := call(t, h, http.MethodGet, target); got.Code != http.StatusOK {
				t.Fatalf("GET %s: %d %.200s", target, got.Code, got.Body)
			}
		}
	}
	for range atOnceEach {
		if got := call(t, h, http.MethodGet, "/api/clusters"); got.Code != http.StatusOK {
			t.Fatalf("GET /api/clusters: %d %s", got.Code, got.Body)
		}
	}
}

func TestExpiryOf(t *testing.T) {
	of := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".x"
	}
	for name, tc := range map[string]struct {
		token string
		want  time.Time
	}{
		"Says so":      {token: of(`{"exp":1800000000,"sub":"a"}`), want: time.Unix(1800000000, 0).UTC()},
		"Fraction":     {token: of(`{"exp":1800000000.9}`), want: time.Unix(1800000000, 0).UTC()},
		"Says nothing": {token: of(`{"sub":"a"}`)},
		"Text":         {token: of(`{"exp":"soon"}`)},
		"Never":        {token: of(`{"exp":1e300}`)},
		"Before":       {token: of(`{"exp":-1}`)},
		"No JSON":      {token: of(`exp`)},
		"No base64":    {token: "a.*.c"},
		"Opaque":       {token: "operator"},
		"Empty":        {},
	} {
		t.Run(name, func(t *testing.T) {
			if got := expiryOf(tc.token); !got.Equal(tc.want) {
				t.Errorf("expiryOf(%q): %s, want %s", tc.token, got, tc.want)
			}
		})
	}
}
