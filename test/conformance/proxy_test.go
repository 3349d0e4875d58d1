// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// newTestProxy returns the address and the token of a proxy of an API server that creates whatever it is sent and answers
// with who asked.
func newTestProxy(t *testing.T, created onCreated) (address, token string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Caller", r.Header.Get("Authorization"))
		if r.Method != http.MethodPost {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(server.Close)
	p, err := newProxy(&rest.Config{Host: server.URL, BearerToken: "administrator"}, created)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(p.handler())
	t.Cleanup(front.Close)
	return front.URL, p.token
}

// send returns the answer to a request, and its body.
func send(t *testing.T, method, url, token, body string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(answer)
}

const someNamespace = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"tests"}}`

func TestNamespacesAreOffloadedBeforeTheAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		path, body string
		fails      error
		want       []string
		wantStatus int
	}{
		"a namespace":                     {path: "/api/v1/namespaces", body: someNamespace, want: []string{"tests"}, wantStatus: http.StatusCreated},
		"a dry run":                       {path: "/api/v1/namespaces?dryRun=All", body: someNamespace, wantStatus: http.StatusCreated},
		"something in a namespace":        {path: "/api/v1/namespaces/tests/pods", body: `{"apiVersion":"v1","kind":"Pod"}`, wantStatus: http.StatusCreated},
		"a namespace that cannot be":      {path: "/api/v1/namespaces", body: someNamespace, fails: errors.New("no"), want: []string{"tests"}, wantStatus: http.StatusBadGateway},
		"an answer that is no namespace":  {path: "/api/v1/namespaces", body: `{"apiVersion":"v1","kind":"Pod"}`, wantStatus: http.StatusBadGateway},
		"an answer that nobody can parse": {path: "/api/v1/namespaces", body: `{`, wantStatus: http.StatusBadGateway},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			address, token := newTestProxy(t, func(_ context.Context, namespace string) error {
				got = append(got, namespace)
				return test.fails
			})
			response, body := send(t, http.MethodPost, address+test.path, token, test.body)
			if response.StatusCode != test.wantStatus || strings.Join(got, ",") != strings.Join(test.want, ",") {
				t.Fatalf("status %d, offloaded %v, want %d and %v", response.StatusCode, got, test.wantStatus, test.want)
			}
			if test.wantStatus == http.StatusCreated && body != test.body {
				t.Errorf("the answer is %q, want %q", body, test.body)
			}
		})
	}
}

func TestOnlyTheTokenMakesAnAdministrator(t *testing.T) {
	address, token := newTestProxy(t, nil)
	for sent, want := range map[string]string{token: "Bearer administrator", "of a service account": "Bearer of a service account", "": ""} {
		response, _ := send(t, http.MethodGet, address+"/api", sent, "")
		if got := response.Header.Get("Caller"); got != want {
			t.Errorf("with token %q the API server sees %q, want %q", sent, got, want)
		}
	}
}
