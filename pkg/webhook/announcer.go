// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook serves admission webhooks to the API server, and to
// nobody else, and tells it which certificates they show. It does not know what the
// webhooks decide.
package webhook

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/serving/selfsigned"
)

// keepInterval is how long a certificate can be missing that somebody took out, as who
// replaces the configuration by its manifest does.
const keepInterval = 10 * time.Second

// Announcer tells the API server which certificates the webhooks may show. It may be used
// concurrently.
type Announcer struct {
	// Client reads past any cache.
	Client client.Client
	// Configuration is the name of the MutatingWebhookConfiguration and of the ValidatingWebhookConfiguration.
	Configuration string

	last atomic.Pointer[[]byte]
}

// Keep announces the last certificate again where it is missing, until the context ends.
func (a *Announcer) Keep(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(keepInterval):
		}
		if last := a.last.Load(); last != nil {
			if err := a.Announce(ctx, *last); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "Cannot check whether the certificate of the webhooks is announced")
			}
		}
	}
}

// Announce adds a certificate, as PEM, to those that are announced and have not
// expired: several replicas each have their own. A configuration that does not exist
// is reported in the log: the API server then asks nobody.
func (a *Announcer) Announce(ctx context.Context, certificate []byte) error {
	a.last.Store(&certificate)
	var mutating admissionv1.MutatingWebhookConfiguration
	if err := a.announce(ctx, certificate, &mutating, func() (configs []*admissionv1.WebhookClientConfig) {
		for i := range mutating.Webhooks {
			configs = append(configs, &mutating.Webhooks[i].ClientConfig)
		}
		return configs
	}); err != nil {
		return err
	}
	var validating admissionv1.ValidatingWebhookConfiguration
	return a.announce(ctx, certificate, &validating, func() (configs []*admissionv1.WebhookClientConfig) {
		for i := range validating.Webhooks {
			configs = append(configs, &validating.Webhooks[i].ClientConfig)
		}
		return configs
	})
}

// announce writes a certificate into one configuration, whose webhooks clients returns
// once the configuration is read.
func (a *Announcer) announce(
	ctx context.Context, certificate []byte, configuration client.Object, clients func() []*admissionv1.WebhookClientConfig,
) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := a.Client.Get(ctx, client.ObjectKey{Name: a.Configuration}, configuration); err != nil {
			return err
		}
		before, missing := configuration.DeepCopyObject().(client.Object), false
		for _, c := range clients() {
			if !bytes.Contains(c.CABundle, certificate) {
				c.CABundle, missing = selfsigned.Join(time.Now(), certificate, c.CABundle), true
			}
		}
		if !missing {
			return nil
		}
		return a.Client.Patch(ctx, configuration, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if apierrors.IsNotFound(err) {
		ctrl.LoggerFrom(ctx).Error(err, "The API server does not call the webhooks for what consumers and providers write: install it again",
			"kind", fmt.Sprintf("%T", configuration), "name", a.Configuration)
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the certificate into the %T %s: %w", configuration, a.Configuration, err)
	}
	return nil
}
