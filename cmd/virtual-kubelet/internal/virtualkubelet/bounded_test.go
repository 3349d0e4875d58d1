// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package virtualkubelet

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

func TestAnswersAreBounded(t *testing.T) {
	const (
		limit = 1 << 10
		usage = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"
		agent = "/apis/metrics.liqo.io/v1alpha1/scrape/home/metrics/cadvisor"
	)
	cases := map[string]struct {
		reason string
		path   string
		length int
		ok     bool
		// bound is how much any answer may have, if that is not limit.
		bound int64
	}{
		"Short":   {"what is usual", "/api/v1/namespaces/shop/secrets", limit, true, 0},
		"Long":    {"a foreign cluster may send what it likes", "/api/v1/namespaces/shop/secrets", limit + 1, false, 0},
		"Watch":   {"a watch has no end", "/api/v1/namespaces/shop/secrets?watch=true", 10 * limit, true, 0},
		"Log":     {"nor has a log", "/api/v1/namespaces/shop/pods/web/log?follow=true", 10 * limit, true, 0},
		"Usage":   {"pods of many nodes", usage, maxUsage, true, maxAnswer},
		"Usages":  {"it becomes a multiple of it in memory", usage, maxUsage + 1, false, maxAnswer},
		"Agent":   {"metrics of pods of many nodes", agent, maxUsage, true, maxAnswer},
		"Agents":  {"these are parsed as well", agent, maxUsage + 1, false, maxAnswer},
		"NoWatch": {"a list that looks like a watch", "/api/v1/namespaces/shop/secrets?watch=false", limit + 1, false, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, strings.Repeat("x", tc.length))
			}))
			defer server.Close()
			config := &rest.Config{Host: server.URL}
			bound(config, cmp.Or(tc.bound, limit))
			client, err := rest.HTTPClientFor(config)
			if err != nil {
				t.Fatal(err)
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+tc.path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			read, err := io.ReadAll(response.Body)
			if (err == nil) != tc.ok || tc.ok && len(read) != tc.length {
				t.Errorf("%s: read %d of %d bytes, %v; want all of them %t", tc.reason, len(read), tc.length, err, tc.ok)
			}
		})
	}
}

// TestReflectorOfAForeignCluster has a reflector read a foreign cluster that would answer a list without an end, as the beginning of a
// watch.
func TestReflectorOfAForeignCluster(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch query := r.URL.Query(); {
		case query.Has("sendInitialEvents"):
			t.Errorf("the foreign cluster is asked for a list without a bound: %s", query.Encode())
		case query.Has("watch"):
			<-r.Context().Done()
		default:
			_, _ = io.WriteString(w, `{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"x","namespace":"shop"}}]}`)
		}
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	bound(config, 1000)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	factory := informers.NewSharedInformerFactory(client, 0)
	secrets := factory.Core().V1().Secrets().Informer()
	factory.Start(ctx.Done())
	defer func() { cancel(); server.CloseClientConnections(); factory.Shutdown() }()
	if !cache.WaitForCacheSync(ctx.Done(), secrets.HasSynced) || len(secrets.GetStore().ListKeys()) != 1 {
		t.Errorf("the reflector has %v", secrets.GetStore().ListKeys())
	}
}

// The foreign cluster answers a list with more than it may.
func TestListOfAForeignCluster(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"SecretList","apiVersion":"v1","items":[`+strings.Repeat(`{"metadata":{"name":"x"}},`, 100)+`{}]}`)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	bound(config, 1000)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Secrets("shop").List(t.Context(), metav1.ListOptions{}); err == nil ||
		!strings.Contains(err.Error(), "too long") {
		t.Errorf("list secrets: %v", err)
	}
}

// What the virtual kubelet asks the foreign cluster, it asks with this identity.
func TestIdentityIsBounded(t *testing.T) {
	o := NewOptions()
	o.TenantNamespace, o.RemoteKubeconfigSecretName = "liqo-tenant-provider", "liqo-identity-x"
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.TenantNamespace, Name: o.RemoteKubeconfigSecretName},
		Data: map[string][]byte{
			"apiServerUrl": []byte("https://provider.example"), "private-key": []byte("key"), "certificate": []byte("certificate"),
		},
	}
	identity, err := readIdentity(t.Context(), o, fake.NewSimpleClientset(secret))
	if err != nil {
		t.Fatal(err)
	}
	if identity.config.WrapTransport == nil {
		t.Fatal("nothing bounds what the foreign cluster answers")
	}
	if bounded, is := identity.config.WrapTransport(http.DefaultTransport).(*boundedTransport); !is || bounded.limit != maxAnswer {
		t.Errorf("what the foreign cluster answers is not bounded to %d bytes", int64(maxAnswer))
	}
}
