// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/connector/identity"
	"github.com/capacitorset/liqo-broker/pkg/party"
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
