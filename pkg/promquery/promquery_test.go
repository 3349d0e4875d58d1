// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package promquery

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func reply(w http.ResponseWriter, text string) { fmt.Fprint(w, text) }

// TestFailures has servers that do not do what they should.
func TestFailures(t *testing.T) {
	hung := make(chan struct{})
	t.Cleanup(func() { close(hung) })
	for name, tc := range map[string]struct {
		reason string
		handle http.HandlerFunc
		want   error
		says   string
	}{
		"Hangs": {"It does not answer in time.", func(http.ResponseWriter, *http.Request) { <-hung }, ErrUnavailable, "deadline"},
		"HangsHalfway": {"It does not end its answer in time.", func(w http.ResponseWriter, _ *http.Request) {
			reply(w, `{"status":`)
			w.(http.Flusher).Flush()
			<-hung
		}, ErrUnavailable, "deadline"},
		"Starts": {"It is not ready.", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "Service Unavailable", http.StatusServiceUnavailable)
		}, ErrUnavailable, "503"},
		"Forbidden": {"We may not ask.", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no", http.StatusForbidden)
		}, ErrRefused, "403"},
		"LoginPage": {"It is another program.", func(w http.ResponseWriter, _ *http.Request) {
			reply(w, "<html>")
		}, ErrAnswer, ""},
		"Elsewhere": {"It sends us to another server, which we do not trust.", func(w http.ResponseWriter, req *http.Request) {
			http.Redirect(w, req, "http://localhost:1/", http.StatusTemporaryRedirect)
		}, ErrAnswer, "307"},
		"Endless": {"Its answer has no end.", func(w http.ResponseWriter, _ *http.Request) {
			for err := error(nil); err == nil; {
				_, err = w.Write(make([]byte, 1<<16))
			}
		}, ErrAnswer, "more than 4194304 bytes"},
		"Many": {"It has more values than there can be providers.", func(w http.ResponseWriter, _ *http.Request) {
			reply(w, `{"status":"success","data":{"resultType":"vector","result":[`)
			reply(w, strings.Repeat(`{"metric":{},"value":[1,"1"]},`, maxSamples))
			reply(w, `{"metric":{},"value":[1,"1"]}]}}`)
		}, ErrAnswer, "10001 values"},
		"Histogram": {"It is no number.", func(w http.ResponseWriter, _ *http.Request) {
			reply(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[1,{"count":"1","sum":"1","buckets":[]}]}]}}`)
		}, ErrAnswer, "histograms"},
		"Warning": {"A part of the answer is missing.", func(w http.ResponseWriter, _ *http.Request) {
			reply(w, `{"status":"success","warnings":["a store is down"],"data":{"resultType":"scalar","result":[1,"1"]}}`)
		}, ErrAnswer, "a store is down"},
		"Nothing": {"There is no answer in it.", func(w http.ResponseWriter, _ *http.Request) {
			reply(w, `{"status":"success"}`)
		}, ErrAnswer, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.handle)
			timeout := time.Minute
			if tc.says == "deadline" {
				timeout = time.Second
			}
			c, err := New(Config{URL: server.URL, Timeout: timeout})
			if err != nil {
				t.Fatalf("New(): %v", err)
			}
			if _, err = c.Query(t.Context(), "1"); !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s\nerror %v, want %v and %q", tc.reason, err, tc.want, tc.says)
			}
		})
	}
}

// TestTLS asks a server that wants a token, which is renewed.
func TestTLS(t *testing.T) {
	good := "first"
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "Bearer "+good {
			http.Error(w, "who?", http.StatusUnauthorized)
			return
		}
		reply(w, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`)
	}))
	t.Cleanup(server.Close)
	folder := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := file("ca", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	secret := file("token", "first\n")
	cfg := Config{URL: server.URL, CAFile: ca, TokenFile: secret, Timeout: 10 * time.Second}
	c, err := New(cfg)
	if err != nil {
		t.Fatalf("New(): %v", err)
	}
	if _, err := c.Query(t.Context(), "1"); err != nil {
		t.Errorf("with the token: %v", err)
	}
	good = "second"
	if _, err := c.Query(t.Context(), "1"); !errors.Is(err, ErrRefused) || strings.Contains(err.Error(), "first") {
		t.Errorf("with the old token: %v", err)
	}
	file("token", "second")
	if _, err := c.Query(t.Context(), "1"); err != nil {
		t.Errorf("with the new token: %v", err)
	}
	file("token", " \n")
	if _, err := c.Query(t.Context(), "1"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("without a token: %v", err)
	}
	file("token", "second")
	cfg.CAFile = ""
	if c, err = New(cfg); err != nil {
		t.Fatalf("New(): %v", err)
	}
	if _, err := c.Query(t.Context(), "1"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("with the CAs of the system: %v", err)
	}

	for name, wrong := range map[string]Config{
		"Credentials": {URL: "https://me:secret@localhost"},
		"Unparsable":  {URL: "https://me:secret@local\x00host"},
		"Scheme":      {URL: "localhost:9090"},
		"Host":        {URL: "https:///x"},
		"PlainToken":  {URL: "http://localhost", TokenFile: secret},
		"NoCA":        {URL: server.URL, CAFile: secret},
		"MissingCA":   {URL: server.URL, CAFile: filepath.Join(folder, "none")},
		"NoToken":     {URL: server.URL, TokenFile: file("empty", "")},
	} {
		if _, err := New(wrong); err == nil || strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
