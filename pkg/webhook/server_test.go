// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
)

const (
	path     = "/place-pods"
	apiHost  = "127.0.0.1"
	peerHost = "127.0.0.2"
)

// telling is a webhook that answers with what strangers must not know.
var telling = &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
	return admission.Allowed("id-provider-b")
})}

// serve runs a server with a webhook on loopback, to which peerHost is a peer, and returns its address.
func serve(t *testing.T, hook http.Handler, clientCAFile string) string {
	t.Helper()
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", apiHost+":0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	certificate, _ := servingtest.Certificate(t, "liqo-broker-webhook.liqo-broker.svc")
	s := NewServer(address, certificate.Get, func(a netip.Addr) bool { return a != netip.MustParseAddr(peerHost) }, clientCAFile)
	s.Register(path, hook)
	if s.StartedChecker()(nil) == nil {
		t.Error("the server says that it has started before it has")
	}
	group.Go(func() {
		if err := s.Start(ctx); err != nil {
			t.Errorf("Start(): %v", err)
		}
	})
	t.Cleanup(func() { cancel(); group.Wait() })
	for s.StartedChecker()(nil) != nil {
		time.Sleep(time.Millisecond)
	}
	return address
}

// post sends a review from an address of loopback.
func post(t *testing.T, address, from string, body io.Reader, certificates ...tls.Certificate) (*http.Response, error) {
	t.Helper()
	transport := &http.Transport{
		DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext,
		TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true,
			Certificates:       certificates,
		},
		DisableKeepAlives: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+path, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	return (&http.Client{Transport: transport}).Do(request)
}

const review = `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "1", "namespace": "shop"}}`

// TestAnswersOnlyTheAPIServer asks where a pod goes, from the address of an API server and from that of a peer's pod.
func TestAnswersOnlyTheAPIServer(t *testing.T) {
	address := serve(t, telling, "")
	answer, err := post(t, address, apiHost, strings.NewReader(review))
	if err != nil {
		t.Fatalf("the API server is not answered: %v", err)
	}
	defer answer.Body.Close()
	var got admissionv1.AdmissionReview
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil || got.Response == nil || !got.Response.Allowed {
		t.Errorf("the API server is answered %+v, %v", got.Response, err)
	}
	if answer, err := post(t, address, peerHost, strings.NewReader(review)); err == nil {
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		t.Errorf("a peer's pod is answered: %s", body)
	}
}

// zeros is a body of spaces that does not say how long it is.
type zeros struct{ left int }

func (z *zeros) Read(p []byte) (int, error) {
	if z.left <= 0 {
		return 0, io.EOF
	}
	n := min(len(p), z.left)
	copy(p, bytes.Repeat([]byte(" "), n))
	z.left -= n
	return n, nil
}

// TestLongReviews sends reviews that do not end, several at a time: what is held in memory has a bound.
func TestLongReviews(t *testing.T) {
	const senders, long = 4, 64 << 20
	address := serve(t, telling, "")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var group sync.WaitGroup
	for range senders {
		group.Go(func() {
			answer, err := post(t, address, apiHost, &zeros{left: long})
			if err != nil {
				return // The server hung up.
			}
			defer answer.Body.Close()
			body, _ := io.ReadAll(answer.Body)
			if strings.Contains(string(body), "id-provider-b") {
				t.Errorf("a review of %d MiB is answered %s", long>>20, body)
			}
		})
	}
	group.Wait()
	runtime.ReadMemStats(&after)
	// One review of 7 MiB is read into a slice that grows: a few times that, for each sender, and not 64 MiB and more.
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > senders*64 {
		t.Errorf("%d reviews of %d MiB took %d MiB", senders, long>>20, took)
	}
}

// TestReviewsAtOnce counts how many reviews of the largest size are read at the same time.
func TestReviewsAtOnce(t *testing.T) {
	var mu sync.Mutex
	var now, most int
	count := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		time.Sleep(20 * time.Millisecond)
		mu.Lock()
		now--
		mu.Unlock()
	})
	s := NewServer("", nil, nil, "")
	s.Register(path, count)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, http.NoBody)
			request.ContentLength = maxReview
			s.WebhookMux().ServeHTTP(httptest.NewRecorder(), request)
		})
	}
	group.Wait()
	if want := maxReviews / maxReview; most != want {
		t.Errorf("%d reviews of %d MiB are read at the same time, want %d", most, maxReview>>20, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.bytes.Acquire(t.Context(), maxReviews); err != nil {
		t.Fatal(err)
	}
	s.WebhookMux().ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, path, http.NoBody)) // Returns.
}

// TestClientCA asks for a certificate, as an operator can whose API server shows one.
func TestClientCA(t *testing.T) {
	trusted, good := authority(t)
	_, bad := authority(t)
	address := serve(t, telling, trusted)
	cases := map[string]struct {
		reason       string
		certificates []tls.Certificate
		want         bool
	}{
		"Known":   {reason: "The API server has a certificate of the CA.", certificates: []tls.Certificate{good}, want: true},
		"Unknown": {reason: "One of another CA is none.", certificates: []tls.Certificate{bad}},
		"None":    {reason: "So is none."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			answer, err := post(t, address, apiHost, strings.NewReader(review), tc.certificates...)
			if err == nil {
				_ = answer.Body.Close()
			}
			if (err == nil) != tc.want {
				t.Errorf("%s\nPOST: %v, want an answer: %t", tc.reason, err, tc.want)
			}
		})
	}
	if err := os.Remove(trusted); err != nil {
		t.Fatal(err)
	}
	if answer, err := post(t, address, apiHost, strings.NewReader(review), good); err == nil {
		_ = answer.Body.Close()
		t.Error("without the file, whoever comes is answered")
	}
}

// authority returns the file of a CA, and a client's certificate of it, which is the CA's own.
func authority(t *testing.T) (file string, client tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "apiserver"}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
