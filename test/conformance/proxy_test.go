// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// newTestProxy returns the address and the token of a proxy of an API server that creates whatever it is sent and answers
// with who asked.
func newTestProxy(t *testing.T, created onCreated) (address, token string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Caller", r.Header.Get("Authorization"))
		if r.URL.Path == "/api/v1/nodes" {
			w.Header().Set("Content-Type", r.Header.Get("Accept"))
			_, _ = io.WriteString(w, someNodes)
		}
		if r.Method != http.MethodPost {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(server.Close)
	p, err := newProxy(&rest.Config{Host: server.URL, BearerToken: "administrator"}, "virtual", created)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(p.handler())
	t.Cleanup(front.Close)
	return front.URL, p.token
}

// An answer is what a client sees of it.
type answer struct {
	status       int
	caller, body string
}

func send(t *testing.T, method, url, token, body string) answer {
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
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: response.StatusCode, caller: response.Header.Get("Caller"), body: string(text)}
}

const someNodes = `{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"real"}},` +
	`{"metadata":{"name":"virtual"},"spec":{"taints":[{"key":"virtual-node.liqo.io/not-allowed","effect":"NoExecute"},{"key":"other","effect":"NoExecute"}]}}]}`

const someNamespace = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"tests"}}`

func TestNamespacesAreOffloadedBeforeTheAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		path, body string
		fails      error
		want       []string
		wantStatus int
	}{
		"a namespace": {path: "/api/v1/namespaces", body: someNamespace, want: []string{"tests"}, wantStatus: http.StatusCreated},
		"a dry run":   {path: "/api/v1/namespaces?dryRun=All", body: someNamespace, wantStatus: http.StatusCreated},
		"something in a namespace": {
			path: "/api/v1/namespaces/tests/pods", body: `{"apiVersion":"v1","kind":"Pod"}`, wantStatus: http.StatusCreated,
		},
		"a namespace that cannot be": {
			path: "/api/v1/namespaces", body: someNamespace, fails: errors.New("no"), want: []string{"tests"}, wantStatus: http.StatusBadGateway,
		},
		"an answer that is no namespace": {
			path: "/api/v1/namespaces", body: `{"apiVersion":"v1","kind":"Pod"}`, wantStatus: http.StatusBadGateway,
		},
		"an answer that nobody can parse": {path: "/api/v1/namespaces", body: `{`, wantStatus: http.StatusBadGateway},
	} {
		t.Run(name, func(t *testing.T) {
			var offloaded []string
			address, token := newTestProxy(t, func(_ context.Context, namespace string) error {
				offloaded = append(offloaded, namespace)
				return test.fails
			})
			got := send(t, http.MethodPost, address+test.path, token, test.body)
			if got.status != test.wantStatus || strings.Join(offloaded, ",") != strings.Join(test.want, ",") {
				t.Fatalf("status %d, offloaded %v, want %d and %v", got.status, offloaded, test.wantStatus, test.want)
			}
			if test.wantStatus == http.StatusCreated && got.body != test.body {
				t.Errorf("the answer is %q, want %q", got.body, test.body)
			}
		})
	}
}

func TestOnlyTheTokenMakesAnAdministrator(t *testing.T) {
	address, token := newTestProxy(t, nil)
	for sent, want := range map[string]string{token: "Bearer administrator", "of a service account": "Bearer of a service account", "": ""} {
		if got := send(t, http.MethodGet, address+"/api", sent, "").caller; got != want {
			t.Errorf("with token %q the API server sees %q, want %q", sent, got, want)
		}
	}
}

// TestOneNodeIsListed has tests that pin their pods pin them to the virtual node.
func TestOneNodeIsListed(t *testing.T) {
	address, token := newTestProxy(t, nil)
	var nodes corev1.NodeList
	if err := json.Unmarshal([]byte(send(t, http.MethodGet, address+"/api/v1/nodes?limit=500", token, "").body), &nodes); err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != 1 || nodes.Items[0].Name != "virtual" || len(nodes.Items[0].Spec.Taints) != 1 || nodes.ResourceVersion != "7" {
		t.Errorf("listed are %+v, want the virtual node, with the other taint", nodes)
	}
	if watch := send(t, http.MethodGet, address+"/api/v1/nodes?watch=true", token, "").body; watch != someNodes {
		t.Errorf("a watch of nodes shows %s, want it as it is", watch)
	}
}
