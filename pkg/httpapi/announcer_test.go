// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
	"github.com/capacitorset/liqo-broker/pkg/serving/selfsigned"
)

// TestAnnounced calls the API over TLS, as who knows nothing of it but what is announced.
func TestAnnounced(t *testing.T) {
	announced := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-broker", Name: CAName}}
	c := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(announced).Build()
	ctx, cancel := context.WithCancel(t.Context())
	ready := make(chan struct{})
	certificate := selfsigned.New("liqo-broker.liqo-broker.svc", func(ctx context.Context, ca []byte) error {
		defer close(ready)
		return Announcer{Client: c, Namespace: "liqo-broker"}.Announce(ctx, ca)
	})
	done := make(chan error, 2)
	go func() { done <- certificate.Run(ctx) }()
	<-ready
	for _, err := certificate.Get(nil); err != nil; _, err = certificate.Get(nil) {
		select {
		case err := <-done:
			t.Fatalf("Run(): %v", err)
		case <-time.After(time.Millisecond): // What is announced is served at once.
		}
	}
	api, err := New(Config{Client: c, Line: v09.Line{}, Reviewer: delegatedauth.New(c, Audience), Catalog: true, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		done <- api.Run(ctx, listener, &tls.Config{GetCertificate: certificate.Get, MinVersion: tls.VersionTLS12})
	}()

	if err := c.Get(t.Context(), client.ObjectKeyFromObject(announced), announced); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(announced.Data[CAKey])) {
		t.Fatalf("announced: %s", announced.Data)
	}
	caller := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots, ServerName: "liqo-broker.liqo-broker.svc", MinVersion: tls.VersionTLS12},
	}}
	get := func(scheme string) (*http.Response, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+"://"+listener.Addr().String()+"/api/clusters",
			http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		return caller.Do(request)
	}
	if answer, err := get("https"); err != nil {
		t.Errorf("GET: %v", err)
	} else if _ = answer.Body.Close(); answer.StatusCode != http.StatusOK {
		t.Errorf("GET: %s", answer.Status)
	}
	if answer, err := get("http"); err == nil {
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			t.Error("the port answers without TLS")
		}
	}
	cancel()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestNobodyToTell has no ConfigMap.
func TestNobodyToTell(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).Build()
	if err := (Announcer{Client: c, Namespace: "liqo-broker"}).Announce(t.Context(), nil); err != nil {
		t.Errorf("Announce(): %v", err)
	}
}
