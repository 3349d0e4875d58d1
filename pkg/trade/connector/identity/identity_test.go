// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/trade/connector/identity"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

const namespace = "connector"

// TestIdentityStays holds that a party is the same after restarts, for replicas that begin at once, and with a new key.
func TestIdentityStays(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	found := make([]identity.Identity, 4)
	var all sync.WaitGroup
	for i := range found {
		all.Go(func() {
			var err error
			if found[i], err = identity.Load(t.Context(), c, namespace); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, one := range found[1:] {
		if one.ID() != found[0].ID() || !one.Keys().Current().Equal(one.Key().Public()) {
			t.Errorf("one replica is party %s, another one %s", one.ID(), found[0].ID())
		}
	}
	rotated, err := identity.Rotate(t.Context(), c, namespace)
	if err != nil {
		t.Fatal(err)
	}
	again, err := identity.Load(t.Context(), c, namespace)
	switch {
	case err != nil:
		t.Fatal(err)
	case again.ID() != found[0].ID() || !again.Keys().Continues(found[0].Keys()):
		t.Errorf("with a new key it is party %s, not %s", again.ID(), found[0].ID())
	case again.Key().Fingerprint() != rotated.Key().Fingerprint() || again.Key().Fingerprint() == found[0].Key().Fingerprint():
		t.Error("the key is not the new one")
	}
}

// TestMalformedSecret holds that a Secret that cannot be read is neither replaced nor quoted.
func TestMalformedSecret(t *testing.T) {
	other, err := party.GenerateKey(strings.NewReader(strings.Repeat("x", 32)))
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*corev1.Secret){
		"no key":    func(s *corev1.Secret) { delete(s.Data, "key.pem") },
		"no chain":  func(s *corev1.Secret) { s.Data["chain.json"] = []byte("secret words") },
		"other key": func(s *corev1.Secret) { s.Data["key.pem"] = other.PEM() },
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().Build()
			if _, err := identity.Load(t.Context(), c, namespace); err != nil {
				t.Fatal(err)
			}
			var secret corev1.Secret
			key := client.ObjectKey{Namespace: namespace, Name: identity.SecretName}
			if err := c.Get(t.Context(), key, &secret); err != nil {
				t.Fatal(err)
			}
			spoil(&secret)
			if err := c.Update(t.Context(), &secret); err != nil {
				t.Fatal(err)
			}
			for _, load := range []func() (identity.Identity, error){
				func() (identity.Identity, error) { return identity.Load(t.Context(), c, namespace) },
				func() (identity.Identity, error) { return identity.Rotate(t.Context(), c, namespace) },
			} {
				got, err := load()
				if !errors.Is(err, identity.ErrMalformed) || strings.Contains(fmt.Sprint(err), "words") {
					t.Errorf("got %v and error %v", got.ID(), err)
				}
			}
			var after corev1.Secret
			if err := c.Get(t.Context(), key, &after); err != nil || after.ResourceVersion != secret.ResourceVersion {
				t.Errorf("the Secret was written: %v", err)
			}
		})
	}
}

// TestAnnounce holds that an announcement stays as it is until it says something else, and that its revision only grows.
func TestAnnounce(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	now := time.Unix(1000, 0)
	announce := func(name string) (string, registryv1.Announcement) {
		t.Helper()
		id, err := identity.Load(t.Context(), c, namespace)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := identity.Announce(t.Context(), c, namespace, name, "https://a.example",
			[]registryv1.Cluster{{ID: "own-id", Auth: "b.example"}}, now)
		if err != nil {
			t.Fatal(err)
		}
		var said registryv1.Announcement
		if err := party.Verify(signed, registryv1.TypeAnnouncement, id.Key().Public(), &said); err != nil {
			t.Fatal(err)
		}
		if said.Party != string(id.ID()) || said.Name != name {
			t.Errorf("announced %+v", said)
		}
		return signed, said
	}
	if _, err := identity.Load(t.Context(), c, namespace); err != nil {
		t.Fatal(err)
	}
	first, one := announce("a")
	now = time.Unix(500, 0) // The clock is set back.
	if again, _ := announce("a"); again != first {
		t.Error("the same announcement was signed twice")
	}
	_, two := announce("b")
	if _, err := identity.Rotate(t.Context(), c, namespace); err != nil {
		t.Fatal(err)
	}
	_, three := announce("b")
	now = time.Unix(2000, 0)
	_, four := announce("c")
	if one.Revision != 1000 || two.Revision != 1001 || three.Revision != 1002 || four.Revision != 2000 {
		t.Errorf("revisions %d, %d, %d, %d", one.Revision, two.Revision, three.Revision, four.Revision)
	}
}

// TestKeeper holds that replicas replace the key together, once, when the Secret says so, and that each of them ends then.
func TestKeeper(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	first, err := identity.Load(t.Context(), c, namespace)
	if err != nil {
		t.Fatal(err)
	}
	keeper := identity.Keeper{Client: c, Namespace: namespace, InUse: first, Log: logr.Discard(), Every: 10 * time.Millisecond}
	quiet, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if err := keeper.Run(quiet); err != nil {
		t.Errorf("a key that nobody wants to replace: %v", err)
	}
	var secret corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: identity.SecretName}, &secret); err != nil {
		t.Fatal(err)
	}
	secret.Annotations = map[string]string{identity.AnnotationRotate: ""}
	if err := c.Update(t.Context(), &secret); err != nil {
		t.Fatal(err)
	}
	bounded, end := context.WithTimeout(t.Context(), 10*time.Second)
	defer end()
	var replicas sync.WaitGroup
	for range 3 {
		replicas.Go(func() {
			if err := keeper.Run(bounded); !errors.Is(err, identity.ErrRotated) {
				t.Errorf("a replica goes on with the old key: %v", err)
			}
		})
	}
	replicas.Wait()
	now, err := identity.Load(t.Context(), c, namespace)
	if err != nil || now.ID() != first.ID() || len(now.Keys().Chain()) != 2 {
		t.Errorf("party %s has a chain of %d keys: %v", now.ID(), len(now.Keys().Chain()), err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(&secret), &secret); err != nil || len(secret.Annotations) > 0 {
		t.Errorf("the Secret has %v: %v", secret.Annotations, err)
	}
}

// TestKeeperOfManyKeys holds that a party which can have no more keys goes on with the one that it has.
func TestKeeperOfManyKeys(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	last, err := identity.Load(t.Context(), c, namespace)
	for range party.MaxRotations {
		if err == nil {
			last, err = identity.Rotate(t.Context(), c, namespace)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	var secret corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: identity.SecretName}, &secret); err != nil {
		t.Fatal(err)
	}
	secret.Annotations = map[string]string{identity.AnnotationRotate: "again"}
	if err := c.Update(t.Context(), &secret); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if err := (identity.Keeper{Client: c, Namespace: namespace, InUse: last, Log: logr.Discard(), Every: 10 * time.Millisecond}).
		Run(ctx); err != nil {
		t.Errorf("Run(): %v", err)
	}
	if now, err := identity.Load(t.Context(), c, namespace); err != nil || now.Key().Fingerprint() != last.Key().Fingerprint() {
		t.Errorf("the key is another one: %v", err)
	}
}
