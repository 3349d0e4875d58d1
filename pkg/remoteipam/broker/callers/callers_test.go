// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
)

const consumer = cluster.ID("consumer")

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	a.certificate = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0), KeyUsage: x509.KeyUsageCertSign,
	}
	a.certificate = a.sign(t, a.certificate, a.key)
	return a
}

func (a *authority) sign(t *testing.T, template *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// issue signs a client certificate of the consumer for a key.
func (a *authority) issue(t *testing.T, key *ecdsa.PrivateKey, lifetime time.Duration) *x509.Certificate {
	t.Helper()
	return a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: string(consumer), Organization: []string{"liqo.io"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, key)
}

func encode(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

func shows(certificate *x509.Certificate) *tls.ConnectionState {
	return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificate}}
}

func configMap(authorities ...*authority) *corev1.ConfigMap {
	var bundle []byte
	for _, a := range authorities {
		bundle = append(bundle, encode(a.certificate)...)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: AuthoritiesNamespace, Name: AuthoritiesName},
		Data:       map[string]string{authoritiesKey: string(bundle)},
	}
}

// runner keeps what a manager would run.
type runner []manager.Runnable

func (r *runner) Add(runnable manager.Runnable) error {
	*r = append(*r, runnable)
	return nil
}

// start runs it until ctx ends.
func (r *runner) start(ctx context.Context) error {
	var group errgroup.Group
	for _, runnable := range *r {
		group.Go(func() error { return runnable.Start(ctx) })
	}
	return group.Wait()
}

// TestAuthoritiesAreFollowed replaces the CA of a cluster's clients as its administrators
// do: both are trusted for a while, and then the new one only.
func TestAuthoritiesAreFollowed(t *testing.T) {
	before, after := newAuthority(t), newAuthority(t)
	client := kubefake.NewSimpleClientset(configMap(before))
	ctx, cancel := context.WithCancel(t.Context())
	var followers runner
	authorities, err := NewAuthorities(ctx, client, &followers, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- followers.start(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start(): %v", err)
		}
	}()
	// Unlike an API server, the fake one tells nothing of what happens between a list and the watch after it.
	watches := func() bool {
		return slices.ContainsFunc(client.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() == "watch" })
	}
	for deadline := time.Now().Add(10 * time.Second); !watches(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody watches the authorities")
		}
	}
	c := New(authorities, nil)
	key := newKey(t)
	of := map[string]*tls.ConnectionState{
		"before": shows(before.issue(t, key, time.Hour)), "after": shows(after.issue(t, key, time.Hour)),
	}
	steps := []struct {
		reason   string
		contents *corev1.ConfigMap
		want     map[string]bool
	}{
		{"as it was", nil, map[string]bool{"before": true, "after": false}},
		{"both sign", configMap(before, after), map[string]bool{"before": true, "after": true}},
		{"the old one is withdrawn", configMap(after), map[string]bool{"before": false, "after": true}},
		{"what cannot be read changes nothing", configMap(), map[string]bool{"before": false, "after": true}},
	}
	for _, step := range steps {
		if step.contents != nil {
			if _, err := client.CoreV1().ConfigMaps(AuthoritiesNamespace).Update(ctx, step.contents, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			got := map[string]bool{}
			for name, connection := range of {
				_, err := c.Name(connection)
				got[name] = err == nil
			}
			if got["before"] == step.want["before"] && got["after"] == step.want["after"] {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: trusted %v, want %v", step.reason, got, step.want)
			}
		}
	}
}

func TestName(t *testing.T) {
	own := newAuthority(t)
	authorities := &Authorities{}
	if err := authorities.set(configMap(own)); err != nil {
		t.Fatal(err)
	}
	key := newKey(t)
	server := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: string(consumer)}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	cases := map[string]struct {
		reason      string
		certificate *x509.Certificate
		ok          bool
	}{
		"Own":     {"issued by this cluster", own.issue(t, key, time.Hour), true},
		"Foreign": {"issued by another one", newAuthority(t).issue(t, key, time.Hour), false},
		"Ended":   {"the connection outlived the certificate", own.issue(t, key, -time.Second), false},
		"Server":  {"not for clients", own.sign(t, server, key), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := New(authorities, nil).Name(shows(tc.certificate))
			if (err == nil) != tc.ok || tc.ok && got != consumer || !tc.ok && !errors.Is(err, ErrUntrusted) {
				t.Errorf("%s: Name() = %q, %v", tc.reason, got, err)
			}
		})
	}
	if _, err := New(authorities, nil).Name(&tls.ConnectionState{}); !errors.Is(err, ErrUntrusted) {
		t.Errorf("a connection without a certificate: %v", err)
	}
}

// TestFromLiqo looks up what Liqo keeps in the tenant namespaces.
func TestFromLiqo(t *testing.T) {
	key := newKey(t)
	issued := newAuthority(t).issue(t, key, time.Hour)
	tenant := func(name string, labels map[string]string) *corev1.Namespace {
		labels["discovery.liqo.io/cluster-id"] = string(consumer)
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	secret := func(namespace string, data []byte) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "liqo-remote-certificate"},
			Data:       map[string][]byte{"csr": []byte("the request"), "certificate": data},
		}
	}
	known := tenant("tenant", map[string]string{"discovery.liqo.io/tenant-namespace": "true"})
	hash := remoteipam.KeyHash(issued.RawSubjectPublicKeyInfo)
	cases := map[string]struct {
		reason  string
		objects []any
		want    string
		fails   bool
	}{
		"Issued":    {"Liqo wrote it down", []any{known, secret("tenant", encode(issued))}, hash, false},
		"NotIssued": {"the cluster has not asked for one", []any{known}, "", false},
		"NoTenant":  {"nobody knows the cluster", []any{secret("tenant", encode(issued))}, "", false},
		"Elsewhere": {
			"a consumer makes Secrets in its own namespaces", []any{tenant("twin", map[string]string{}), secret("twin", encode(issued))}, "", false,
		},
		"TwoTenants": {"nobody knows which one counts", []any{
			known, tenant("second", map[string]string{"discovery.liqo.io/tenant-namespace": "true"}), secret("tenant", encode(issued)),
		}, "", false},
		"Garbage": {"it cannot be read", []any{known, secret("tenant", []byte("garbage"))}, "", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t))
			for _, object := range tc.objects {
				switch o := object.(type) {
				case *corev1.Namespace:
					builder.WithObjects(o)
				case *corev1.Secret:
					builder.WithObjects(o)
				}
			}
			api := builder.Build()
			got, err := FromLiqo(api, api)(t.Context(), consumer)
			if (err != nil) != tc.fails || got != tc.want {
				t.Errorf("%s: %q, %v, want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}

// TestCheck changes what Liqo has written down, and looks whose certificate counts.
func TestCheck(t *testing.T) {
	own := newAuthority(t)
	first, second := newKey(t), newKey(t)
	certificate := own.issue(t, first, time.Hour)
	renewed, replaced := own.issue(t, first, 2*time.Hour), own.issue(t, second, time.Hour)
	down := errors.New("the API server is down")
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var stored *x509.Certificate
		var failure error
		lookups := 0
		c := New(nil, func(_ context.Context, id cluster.ID) (string, error) {
			time.Sleep(10 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			lookups++
			if id != consumer || stored == nil || failure != nil {
				return "", failure
			}
			return remoteipam.KeyHash(stored.RawSubjectPublicKeyInfo), nil
		})
		set := func(certificate *x509.Certificate, err error) { stored, failure = certificate, err }
		steps := []struct {
			reason  string
			after   time.Duration
			set     func()
			shows   *x509.Certificate
			want    error
			lookups int
		}{
			{"nothing was issued", 0, nil, certificate, ErrNotIssued, 1},
			{"who asks on and on is not looked up each time", time.Second, func() { set(certificate, nil) }, certificate, ErrNotIssued, 0},
			{"it was issued", lookAgain, nil, certificate, nil, 1},
			{"and is known", time.Minute, nil, certificate, nil, 0},
			{"a renewed one has the same key", 0, nil, renewed, nil, 0},
			{"another cluster got one with this name", lookAgain, nil, replaced, ErrNotIssued, 1},
			{"it counts from when Liqo has written it down", lookAgain, func() { set(replaced, nil) }, replaced, nil, 1},
			{"and the one before does not any more", 0, nil, certificate, ErrNotIssued, 0},
			{"nobody can tell at the moment: what was so stays so", knownFor, func() { set(nil, down) }, replaced, nil, 1},
			{"but what does not count is not let in", 0, nil, certificate, down, 0},
			{"nor anybody after an hour", knownAtMost, nil, replaced, down, 1},
			{"it was taken back", lookAgain, func() { set(nil, nil) }, replaced, ErrNotIssued, 1},
		}
		for _, step := range steps {
			time.Sleep(step.after)
			if step.set != nil {
				step.set()
			}
			lookups = 0
			if err := c.Check(t.Context(), consumer, shows(step.shows)); !errors.Is(err, step.want) || lookups != step.lookups {
				t.Errorf("%s: %v after %d lookups, want %v after %d", step.reason, err, lookups, step.want, step.lookups)
			}
			if _, known := c.Known(shows(step.shows)); known != (step.want == nil) {
				t.Errorf("%s: known %t, want what was found out", step.reason, known)
			}
		}
		// All virtual kubelets of a consumer come at once when the broker has restarted.
		set(certificate, nil)
		lookups = 0
		time.Sleep(lookAgain)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if err := c.Check(t.Context(), consumer, shows(certificate)); err != nil {
					t.Errorf("one of many at once: %v", err)
				}
			})
		}
		all.Wait()
		if lookups != 1 {
			t.Errorf("%d lookups for many callers at once, want 1", lookups)
		}
		if err := c.Check(t.Context(), consumer, &tls.ConnectionState{}); !errors.Is(err, ErrNotIssued) {
			t.Errorf("a connection without a certificate: %v", err)
		}
	})
}
