// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webpage opens the web page as people do: the plugin serves it, and a real browser, or a program that asks what a browser asks,
// has it open. It knows how the page is reached, and nothing of what it shows.
package webpage

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/serving/eventstream"
)

const (
	// patience is for how long a stream is read.
	patience = 3 * time.Minute
	// longestEvent is what one event may have, in bytes.
	longestEvent = 1 << 20
)

// Serve has the plugin serve the page of the cluster of a kubeconfig, until the test ends, and returns the link that opens it. Tests that
// call it are two folders below the root.
func Serve(t *testing.T, kubeconfig string) string {
	t.Helper()
	link, _ := ServeProcess(t, kubeconfig)
	return link
}

// ServeProcess does so, and says too which process of this machine the plugin is.
func ServeProcess(t *testing.T, kubeconfig string) (link string, pid int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	command := exec.CommandContext(ctx, filepath.Join("..", "..", "bin", "kubectl-liqo_broker"), "--kubeconfig="+kubeconfig, "ui", "--no-open")
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.StdoutPipe()
	if err := errors.Join(err, command.Start()); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := command.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("kubectl liqo-broker ui: %v\n%s", err, said.String())
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if link := regexp.MustCompile(`http://127\.0\.0\.1:\d+/#code=\w+`).FindString(lines.Text()); link != "" {
			return link, command.Process.Pid
		}
	}
	t.Fatalf("kubectl liqo-broker ui shows no link:\n%s", said.String())
	return "", 0
}

// Page is the page that the plugin serves, opened by a program. It is for one goroutine.
type Page struct {
	t            *testing.T
	address, key string
}

// Open opens the page by its link, as a browser does.
func Open(t *testing.T, link string) *Page {
	t.Helper()
	address, code, _ := strings.Cut(link, "/#code=")
	p := &Page{t: t, address: address}
	p.key = Ask[struct {
		Key string `json:"key"`
	}](p, http.MethodPost, "/session", map[string]string{"code": code}).Key
	return p
}

// Request asks for something, with a body as JSON unless it is nil, and returns whatever is answered. The caller closes its body.
func (p *Page) Request(method, path string, body any) *http.Response {
	p.t.Helper()
	var text io.Reader
	if body != nil {
		written, err := json.Marshal(body)
		if err != nil {
			p.t.Fatal(err)
		}
		text = bytes.NewReader(written)
	}
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.address+path, text)
	if err != nil {
		p.t.Fatal(err)
	}
	if p.key != "" {
		r.Header.Set("Authorization", "Bearer "+p.key)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer
}

// Text returns an answer as it is. The test fails if it is a refusal.
func (p *Page) Text(method, path string, body any) []byte {
	p.t.Helper()
	answer := p.Request(method, path, body)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		p.t.Fatalf("%s %s: %s, %v: %s", method, path, answer.Status, err, text)
	}
	return text
}

// Ask returns what is answered. The test fails if it is a refusal, or something else.
func Ask[T any](p *Page, method, path string, body any) T {
	p.t.Helper()
	text := p.Text(method, path, body)
	var said T
	if err := json.Unmarshal(text, &said); err != nil {
		p.t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
	return said
}

// Stream is what the page hears, until the test ends.
type Stream struct {
	t      *testing.T
	events *eventstream.Reader
}

// Stream watches kinds, which are separated by commas.
func (p *Page) Stream(kinds string) *Stream {
	p.t.Helper()
	answer := p.Request(http.MethodGet, "/api/v1/events?kinds="+kinds, nil)
	p.t.Cleanup(func() { answer.Body.Close() })
	if answer.StatusCode != http.StatusOK {
		p.t.Fatalf("the stream is answered with %s", answer.Status)
	}
	deadline := time.AfterFunc(patience, func() { answer.Body.Close() })
	p.t.Cleanup(func() { deadline.Stop() })
	return &Stream{p.t, eventstream.NewReader(answer.Body, longestEvent)}
}

// Until reads events until one is as wanted, which it returns. The test fails if none is.
func Until[E any](s *Stream, wanted func(name string, event E) bool) E {
	s.t.Helper()
	var last []byte
	for {
		event, err := s.events.Next()
		if err != nil {
			s.t.Fatalf("the stream ends: %v, after %s", err, last)
		}
		var about E
		if len(event.Data) > 0 {
			last = event.Data
			if err := json.Unmarshal(event.Data, &about); err != nil {
				s.t.Fatal(err)
			}
		}
		if wanted(event.Name, about) {
			return about
		}
	}
}
