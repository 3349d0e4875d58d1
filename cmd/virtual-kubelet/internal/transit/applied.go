// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
)

// appliedOnce is a reflector of Secrets that applies each of them to the foreign cluster once. Liqo's look at a Secret again when
// the foreign cluster tells of what they have just applied, and apply it again.
type appliedOnce struct{ manager.Reflector }

// StartNamespace begins the reflection of a namespace.
func (a appliedOnce) StartNamespace(opts *options.NamespacedOpts) {
	seen := opts.RemoteFactory.Core().V1().Secrets().Lister().Secrets(opts.RemoteNamespace)
	opts.RemoteClient = appliedClient{opts.RemoteClient, opts.RemoteNamespace, &appliedSecrets{seen: seen, last: map[string]appliedSecret{}}}
	a.Reflector.StartNamespace(opts)
}

// appliedClient is a client with a memory of the Secrets of one namespace.
type appliedClient struct {
	kubernetes.Interface
	namespace string
	applied   *appliedSecrets
}

// CoreV1 returns the client of the group that has Secrets.
func (c appliedClient) CoreV1() typedcorev1.CoreV1Interface {
	return appliedCore{c.Interface.CoreV1(), c.namespace, c.applied}
}

type appliedCore struct {
	typedcorev1.CoreV1Interface
	namespace string
	applied   *appliedSecrets
}

func (c appliedCore) Secrets(namespace string) typedcorev1.SecretInterface {
	if namespace != c.namespace {
		return c.CoreV1Interface.Secrets(namespace)
	}
	return rememberingSecrets{c.CoreV1Interface.Secrets(namespace), c.applied}
}

// appliedSecrets remembers what was applied last. It may be used concurrently.
type appliedSecrets struct {
	// seen are the Secrets as the foreign cluster told of them.
	seen corev1listers.SecretNamespaceLister

	mu   sync.Mutex
	last map[string]appliedSecret
}

// appliedSecret is what was applied, and what became of it. The content itself is not kept.
type appliedSecret struct {
	what    [sha256.Size]byte
	uid     types.UID
	version string
}

// unchanged returns the Secret in the foreign cluster if the same was applied to it last, and nobody has written it since.
func (a *appliedSecrets) unchanged(name string, what [sha256.Size]byte) (*corev1.Secret, bool) {
	a.mu.Lock()
	last, known := a.last[name]
	a.mu.Unlock()
	if !known || last.what != what {
		return nil, false
	}
	// A change that is not seen yet has the Secret looked at again when it is.
	secret, err := a.seen.Get(name)
	return secret, err == nil && secret.UID == last.uid && secret.ResourceVersion == last.version
}

func (a *appliedSecrets) remember(name string, secret *corev1.Secret, what [sha256.Size]byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last[name] = appliedSecret{what, secret.UID, secret.ResourceVersion}
}

func (a *appliedSecrets) forgetSecret(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.last, name)
}

type rememberingSecrets struct {
	typedcorev1.SecretInterface
	applied *appliedSecrets
}

// Apply applies a Secret unless it is in force already.
func (s rememberingSecrets) Apply(
	ctx context.Context, secret *corev1apply.SecretApplyConfiguration, opts metav1.ApplyOptions,
) (*corev1.Secret, error) {
	if secret == nil || secret.Name == nil {
		return s.SecretInterface.Apply(ctx, secret, opts)
	}
	text, err := json.Marshal(secret)
	if err != nil {
		return nil, fmt.Errorf("write Secret %s: %w", *secret.Name, err)
	}
	what := sha256.Sum256(text)
	if inForce, ok := s.applied.unchanged(*secret.Name, what); ok {
		return inForce, nil
	}
	applied, err := s.SecretInterface.Apply(ctx, secret, opts)
	if err != nil {
		s.applied.forgetSecret(*secret.Name)
		return nil, err
	}
	// By the name that was asked for: what a foreign cluster answers may have any.
	s.applied.remember(*secret.Name, applied, what)
	return applied, nil
}

// Delete deletes a Secret.
func (s rememberingSecrets) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	s.applied.forgetSecret(name)
	return s.SecretInterface.Delete(ctx, name, opts)
}
