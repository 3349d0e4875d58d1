// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package uiserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running returns a server that runs while the test does, and serves a page and data that say what they are.
func running(t *testing.T, cfg Config) *Server {
	t.Helper()
	says := func(what string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, what) })
	}
	cfg.Page, cfg.Data = says("page"), says("data")
	s, err := Listen(t.Context(), 0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error)
	go func() { ran <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return s
}

// caller asks as some browser does.
type caller struct {
	method, path, body, host, key string
	headers                       map[string]string
}

// ask returns the status and what was answered.
func (s *Server) as(t *testing.T, c caller) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), c.method, s.Address()+strings.TrimPrefix(c.path, "/"), strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	if c.host != "" {
		r.Host = c.host
	}
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	for name, value := range c.headers {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// codeOf returns the code of a link.
func codeOf(t *testing.T, link string) string {
	t.Helper()
	_, code, ok := strings.Cut(link, "#code=")
	code, _, _ = strings.Cut(code, "&")
	if !ok || len(code) < 26 {
		t.Fatalf("no code in %q", link)
	}
	return code
}

// exchange returns the key for a code; empty if it was refused.
func (s *Server) exchange(t *testing.T, code string) string {
	t.Helper()
	status, body := s.as(t, caller{method: http.MethodPost, path: sessionPath, body: `{"code":"` + code + `"}`})
	var got struct {
		Key string `json:"key"`
	}
	if status == http.StatusOK {
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
	}
	return got.Key
}

// TestDoor asks as the page, as nobody, and as those who want what is not theirs.
func TestDoor(t *testing.T) {
	s := running(t, Config{})
	key := s.exchange(t, codeOf(t, s.Link("")))
	get, post := http.MethodGet, http.MethodPost
	localhost := "localhost" + strings.TrimPrefix(s.hosts()[0], "127.0.0.1")
	for name, tc := range map[string]struct {
		reason string
		caller caller
		status int
		says   string
	}{
		"Page":      {"The page is anybody's.", caller{method: get, path: "/"}, 200, "page"},
		"Data":      {"Its data is for who has the key ...", caller{method: get, path: "/api/v1/me", key: key}, 200, "data"},
		"NoKey":     {"... and for nobody without ...", caller{method: get, path: "/api/v1/me"}, 401, messageKey},
		"OtherKey":  {"... or with another one.", caller{method: get, path: "/api/v1/me", key: key + "x"}, 401, messageKey},
		"Localhost": {"Browsers may call it localhost.", caller{method: get, path: "/api/v1/me", key: key, host: localhost}, 200, "data"},
		"Rebound":   {"A name that resolves here is none of ours.", caller{method: get, path: "/", host: "evil.example"}, 421, messageHost},
		"OtherPort": {"Nor is the same name with another port.", caller{method: get, path: "/", host: "127.0.0.1:1"}, 421, messageHost},
		"Uppercase": {"Names have no case.", caller{method: get, path: "/", host: strings.ToUpper(localhost)}, 200, "page"},
		"BadBody":   {"What is no JSON is refused.", caller{method: post, path: sessionPath, body: "code"}, 400, "no JSON"},
		"LongBody": {
			"So is what is too long.",
			caller{method: post, path: sessionPath, body: `{"code":"` + strings.Repeat("a", maxCode)}, 400, "no JSON",
		},
		"Origin": {
			"A page of another origin may not ask, even with the key.",
			caller{method: get, path: "/api/v1/me", key: key, headers: map[string]string{"Origin": "http://127.0.0.1:1"}}, 403, messageOrigin,
		},
		"NullOrigin": {
			"Nor may one that hides its origin.",
			caller{method: get, path: "/api/v1/me", key: key, headers: map[string]string{"Origin": "null"}}, 403, messageOrigin,
		},
		"OwnOrigin": {
			"Its own may.",
			caller{method: get, path: "/api/v1/me", key: key, headers: map[string]string{"Origin": "http://" + s.hosts()[0]}}, 200, "data",
		},
		"CrossSite": {
			"A page of another site may not load its parts ...",
			caller{method: get, path: "/app.js", headers: map[string]string{"Sec-Fetch-Site": "cross-site"}}, 403, messageOrigin,
		},
		"Lead": {
			"... but lead to it.", caller{method: get, path: "/", headers: map[string]string{"Sec-Fetch-Site": "cross-site"}}, 200, "page",
		},
		"OtherPortsPage": {
			"Another port of the machine is the same site, and another origin.",
			caller{method: post, path: sessionPath, headers: map[string]string{"Sec-Fetch-Site": "same-site"}}, 403, messageOrigin,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if status, body := s.as(t, tc.caller); status != tc.status || !strings.Contains(body, tc.says) {
				t.Errorf("%s\nit answers %d: %s", tc.reason, status, body)
			}
		})
	}
}

// TestCodes exchanges codes that count, and others.
func TestCodes(t *testing.T) {
	s := running(t, Config{})
	now := time.Now()
	s.lock.now = func() time.Time { return now }
	if s.exchange(t, "") != "" {
		t.Error("nothing is exchanged for a key, before there is a code")
	}
	// One counts once.
	code := codeOf(t, s.Link("/providers"))
	if s.exchange(t, code+"x") != "" || s.exchange(t, "") != "" {
		t.Error("another code is exchanged for a key")
	}
	key := s.exchange(t, code)
	if key == "" {
		t.Error("the code is not exchanged for a key")
	}
	if s.exchange(t, code) != "" {
		t.Error("it is exchanged twice")
	}
	// One that is replaced, or old, does not.
	code, next := codeOf(t, s.Link("")), codeOf(t, s.Link(""))
	if s.exchange(t, code) != "" {
		t.Error("two codes count at the same time")
	}
	now = now.Add(CodeLife)
	if s.exchange(t, next) != "" {
		t.Error("a code counts after its time")
	}
	// Of many tabs the first one ends.
	for range maxKeys - 1 {
		s.exchange(t, codeOf(t, s.Link("")))
	}
	if !s.lock.opens(key) {
		t.Errorf("less than %d tabs are open", maxKeys)
	}
	s.exchange(t, codeOf(t, s.Link("")))
	if s.lock.opens(key) || len(s.lock.keys) != maxKeys {
		t.Errorf("%d keys count", len(s.lock.keys))
	}
}

// TestAsked has a page ask for a link: the person sees it, and not who asks.
func TestAsked(t *testing.T) {
	links := make(chan string, 2)
	s := running(t, Config{Asked: func(link string) { links <- link }})
	status, body := s.as(t, caller{method: http.MethodPost, path: linkPath})
	if status != http.StatusNoContent || body != "" {
		t.Errorf("it answers %d: %s", status, body)
	}
	if s.exchange(t, codeOf(t, <-links)) == "" {
		t.Error("the link does not count")
	}
	if status, _ := s.as(t, caller{method: http.MethodPost, path: linkPath}); status != http.StatusTooManyRequests || len(links) != 0 {
		t.Errorf("a second one is answered with %d", status)
	}
}

// TestLink leads to a route.
func TestLink(t *testing.T) {
	s := running(t, Config{})
	for route, want := range map[string]string{"": "", "/providers": "&to=/providers", "map": "&to=/map"} {
		link := s.Link(route)
		if want = s.Address() + "#code=" + codeOf(t, link) + want; link != want {
			t.Errorf("%q: %s, not %s", route, link, want)
		}
	}
}

// TestLoopback reaches the server on both addresses, and on no other one; a port that somebody has on one of them is not taken.
func TestLoopback(t *testing.T) {
	s := running(t, Config{})
	port := strings.TrimPrefix(s.hosts()[0], "127.0.0.1:")
	six, err := hasIPv6()
	if err != nil {
		t.Fatal(err)
	}
	dials := func(host string) bool {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}
	if !dials("127.0.0.1") || dials("::1") != six || dials("127.0.0.2") {
		t.Errorf("127.0.0.1: %t, ::1: %t of %t, 127.0.0.2: %t", dials("127.0.0.1"), dials("::1"), six, dials("127.0.0.2"))
	}
	if other, err := Listen(t.Context(), s.port, Config{}); err == nil {
		t.Errorf("it listens where somebody does: %s", other.Address())
	}
	if !six {
		return
	}
	squatter, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp6", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer squatter.Close()
	if other, err := Listen(t.Context(), portOf(squatter), Config{}); err == nil {
		t.Errorf("it listens on a port that somebody has on the other address: %s", other.Address())
	}
}

// TestIdle ends a server that nobody uses, and no other.
func TestIdle(t *testing.T) {
	began := make(chan struct{})
	stream := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
	})
	s, err := Listen(t.Context(), 0, Config{Page: http.NotFoundHandler(), Data: stream, Idle: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- s.Run(t.Context()) }()
	key := s.exchange(t, codeOf(t, s.Link("")))
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Address()+"api/v1/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	asked := make(chan error)
	go func() {
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			err = answer.Body.Close()
		}
		asked <- err
	}()
	<-began
	select {
	case err := <-ran:
		t.Fatalf("it ends under an open page: %v", err)
	case <-time.After(time.Second):
	}
	leave()
	if err := <-asked; !errors.Is(err, context.Canceled) {
		t.Errorf("the stream ends: %v", err)
	}
	if err := <-ran; !errors.Is(err, ErrIdle) {
		t.Errorf("it ends with %v", err)
	}
}
