// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/serving/selfsigned"
)

const (
	// CAName is the name of the ConfigMap that has the certificates of the API.
	CAName = "liqo-broker-api-ca"
	// CAKey is where it has them, as PEM.
	CAKey = "ca.crt"
)

// Announcer tells callers by which certificates they know the API, in a ConfigMap that
// exists.
type Announcer struct {
	// Client reads past any cache.
	Client    client.Client
	Namespace string
}

// Announce adds a certificate, as PEM, to those that are announced and have not
// expired: several replicas each have their own.
func (a Announcer) Announce(ctx context.Context, certificate []byte) error {
	key := client.ObjectKey{Namespace: a.Namespace, Name: CAName}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var announced corev1.ConfigMap
		if err := a.Client.Get(ctx, key, &announced); err != nil {
			return err
		}
		before := announced.DeepCopy()
		if announced.Data == nil {
			announced.Data = map[string]string{}
		}
		announced.Data[CAKey] = string(selfsigned.Join(time.Now(), certificate, []byte(announced.Data[CAKey])))
		return a.Client.Patch(ctx, &announced, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if apierrors.IsNotFound(err) {
		ctrl.LoggerFrom(ctx).Info("Clients cannot verify the certificate of the HTTP API: there is no ConfigMap for it", "name", CAName)
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the certificate into the ConfigMap %s: %w", key, err)
	}
	return nil
}
