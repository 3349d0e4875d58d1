// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity keeps the key of a cluster as a party of the catalog, in a Secret. It is made when it is needed for the first time, and
// replaced when somebody says so, by one that the old one signs: a cluster that has lost its key is another party, and has lost its
// contracts.
//
// It signs what the party announces of itself, and does not know what else is signed with the key.
package identity

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// SecretName is the name of the Secret.
const SecretName = "liqo-broker-connector" //nolint:gosec // A name.

// The keys of the Secret's data: the current private key as PEM, and the chain of public ones as a JSON list of signed documents.
const (
	dataKey   = "key.pem"
	dataChain = "chain.json"
)

// ErrMalformed means that the Secret has no key in the form in which it was written, or one that is not the last of the chain.
var ErrMalformed = errors.New("malformed key of the party")

// Identity is the key of a party, and the chain of its keys. It does not change.
type Identity struct {
	key  party.Key
	keys party.Keys
}

// Key returns the current key.
func (i Identity) Key() party.Key { return i.key }

// Keys returns the chain of the keys.
func (i Identity) Keys() party.Keys { return i.keys }

// ID returns who the party is, whichever key it has.
func (i Identity) ID() party.ID { return i.keys.ID() }

// Load returns the identity in the Secret of a namespace, and creates it if there is none. The client must not be one that caches. The
// error is ErrMalformed, or that of the API server.
func Load(ctx context.Context, c client.Client, namespace string) (Identity, error) {
	found, _, err := readIdentity(ctx, c, namespace)
	if !apierrors.IsNotFound(err) {
		return found, err
	}
	key, err := party.GenerateKey(rand.Reader)
	if err != nil {
		return Identity{}, err
	}
	keys, err := party.ParseKeys([]string{key.Announce()})
	if err != nil {
		return Identity{}, fmt.Errorf("announce a new key: %w", err)
	}
	made := Identity{key: key, keys: keys}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: SecretName}}
	if err := made.writeKeys(secret); err != nil {
		return Identity{}, err
	}
	switch err := c.Create(ctx, secret); {
	case apierrors.IsAlreadyExists(err): // Another replica was faster.
		found, _, err := readIdentity(ctx, c, namespace)
		return found, err
	case err != nil:
		return Identity{}, fmt.Errorf("create Secret %s/%s: %w", namespace, SecretName, err)
	}
	return made, nil
}

// rotate replaces the key that was read in a Secret, unless somebody has written it since.
func rotate(ctx context.Context, c client.Client, old Identity, secret *corev1.Secret) (Identity, error) {
	next, err := party.GenerateKey(rand.Reader)
	if err != nil {
		return Identity{}, err
	}
	keys, err := party.Rotate(old.keys, old.key, next)
	if err != nil {
		return Identity{}, err
	}
	rotated := Identity{key: next, keys: keys}
	if err := rotated.writeKeys(secret); err != nil {
		return Identity{}, err
	}
	delete(secret.Annotations, AnnotationRotate) // With the key, so that nobody does it twice.
	if err := c.Update(ctx, secret); err != nil {
		return Identity{}, fmt.Errorf("update Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return rotated, nil
}

// readIdentity returns the identity in the Secret, and the Secret.
func readIdentity(ctx context.Context, c client.Reader, namespace string) (Identity, *corev1.Secret, error) {
	var secret corev1.Secret
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: SecretName}, &secret); err != nil {
		return Identity{}, nil, fmt.Errorf("get Secret %s/%s: %w", namespace, SecretName, err)
	}
	found, err := parse(&secret)
	if err != nil {
		return Identity{}, nil, fmt.Errorf("read Secret %s/%s: %w", namespace, SecretName, err)
	}
	return found, &secret, nil
}

// parse reads a Secret. The error shows nothing of its data.
func parse(secret *corev1.Secret) (Identity, error) {
	key, err := party.ParseKey(secret.Data[dataKey])
	if err != nil {
		return Identity{}, fmt.Errorf("%s: %w: %w", dataKey, err, ErrMalformed)
	}
	var chain []string
	if err := json.Unmarshal(secret.Data[dataChain], &chain); err != nil {
		return Identity{}, fmt.Errorf("%s is no list: %w", dataChain, ErrMalformed)
	}
	keys, err := party.ParseKeys(chain)
	switch {
	case err != nil:
		return Identity{}, fmt.Errorf("%s: %w: %w", dataChain, err, ErrMalformed)
	case !keys.Current().Equal(key.Public()):
		return Identity{}, fmt.Errorf("%s is not the last of %s: %w", dataKey, dataChain, ErrMalformed)
	}
	return Identity{key: key, keys: keys}, nil
}

func (i Identity) writeKeys(secret *corev1.Secret) error {
	chain, err := json.Marshal(i.keys.Chain())
	if err != nil {
		return fmt.Errorf("write the chain of keys: %w", err)
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[dataKey], secret.Data[dataChain] = i.key.PEM(), chain
	return nil
}
