// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"encoding/json"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/configuration"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/reflectiontest"
)

// secretsThatApply lets the fake API of a client apply Secrets as an API server does: a Secret that is so already is not written.
// It returns how often something was applied. While it fails, nothing is.
func secretsThatApply(client *fake.Clientset, fails *atomic.Bool) *atomic.Int64 {
	var asked, versions atomic.Int64
	kind := corev1.SchemeGroupVersion.WithResource("secrets")
	client.PrependReactor("patch", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		if patch.GetPatchType() != types.ApplyPatchType {
			return false, nil, nil
		}
		asked.Add(1)
		if fails.Load() {
			return true, nil, errors.New("not now")
		}
		wanted := &corev1.Secret{}
		if err := json.Unmarshal(patch.GetPatch(), wanted); err != nil {
			return true, nil, err
		}
		wanted.ResourceVersion = strconv.FormatInt(versions.Add(1), 10)
		current, err := client.Tracker().Get(kind, patch.GetNamespace(), patch.GetName())
		if apierrors.IsNotFound(err) {
			wanted.UID = types.UID("born at " + wanted.ResourceVersion)
			return true, wanted, client.Tracker().Create(kind, wanted, patch.GetNamespace())
		}
		before := current.(*corev1.Secret)
		if cmp.Equal(before.Data, wanted.Data) && cmp.Equal(before.Labels, wanted.Labels) {
			return true, before, nil
		}
		wanted.UID = before.UID
		return true, wanted, client.Tracker().Update(kind, wanted, patch.GetNamespace())
	})
	return &asked
}

// TestSecretsAreAppliedOnce reflects a Secret with Liqo's own reflector, which looks at it each time when somebody tells of it.
func TestSecretsAreAppliedOnce(t *testing.T) {
	reflectiontest.BeBroker()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "twin", Name: "web", UID: "1"}, Data: map[string][]byte{"key": []byte("1")},
	}
	secrets := configuration.NewSecretReflector(false, &generic.ReflectorConfig{NumWorkers: 1, Type: consts.DenyList})
	c := reflectiontest.Start(t, appliedOnce{reflectiontest.Unstarted(secrets)}, configuration.NewNamespacedSecretReflector(false), secret)
	var fails atomic.Bool
	asked := secretsThatApply(c.Remote, &fails)
	local, remote := c.Local.CoreV1().Secrets("twin"), c.Remote.CoreV1().Secrets("twin-broker")
	handle := func() {
		t.Helper()
		if err := c.Handle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// settled waits until the foreign cluster has a value, and nothing is asked of it any more.
	settled := func(step, value string) {
		t.Helper()
		reflectiontest.Eventually(t, func() bool {
			handle()
			got, err := remote.Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil || string(got.Data["key"]) != value {
				return false
			}
			before := asked.Load()
			handle()
			return asked.Load() == before
		})
		before := asked.Load()
		for range 3 {
			handle()
		}
		if now := asked.Load(); now != before {
			t.Errorf("%s: the Secret is applied %d times more", step, now-before)
		}
	}
	settled("made", "1")

	change := func(value string) {
		t.Helper()
		secret = secret.DeepCopy()
		secret.Data["key"] = []byte(value)
		if _, err := local.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	change("2")
	settled("changed here", "2")

	other, err := remote.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other = other.DeepCopy()
	other.Data["key"], other.ResourceVersion = []byte("other"), "1000"
	if _, err := remote.Update(t.Context(), other, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	settled("changed there", "2")

	if err := remote.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	settled("deleted there", "2")

	fails.Store(true)
	change("3")
	reflectiontest.Eventually(t, func() bool { return c.Handle(t.Context()) != nil })
	fails.Store(false)
	settled("failed", "3")

	if err := local.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	reflectiontest.Eventually(t, func() bool {
		handle()
		_, err := remote.Get(t.Context(), "web", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if _, err := local.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	settled("made again", "3")
}
