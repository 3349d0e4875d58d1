// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package steering

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// ConfigurationName is the name of the MutatingWebhookConfiguration.
	ConfigurationName = "liqo-broker"
	// ServerName is the host name by which the API server reaches the webhook.
	ServerName = "liqo-broker-webhook.liqo-broker.svc"
	// maxCertificates bounds the certificates that are announced: one for each
	// replica, and some of replicas that have been.
	maxCertificates = 8
)

// Announcer tells the API server which certificates the webhook may show.
type Announcer struct {
	// Client reads past any cache.
	Client client.Client
}

// Announce adds a certificate, as PEM, to those that are announced and have not
// expired: several replicas each have their own. Without the configuration no pod
// passes the webhook, and there is nobody to tell.
func (a Announcer) Announce(ctx context.Context, certificate []byte) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var configuration admissionv1.MutatingWebhookConfiguration
		if err := a.Client.Get(ctx, client.ObjectKey{Name: ConfigurationName}, &configuration); err != nil {
			return err
		}
		before := configuration.DeepCopy()
		for i := range configuration.Webhooks {
			known := configuration.Webhooks[i].ClientConfig.CABundle
			configuration.Webhooks[i].ClientConfig.CABundle = join(time.Now(), certificate, known)
		}
		return a.Client.Patch(ctx, &configuration, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if apierrors.IsNotFound(err) {
		ctrl.LoggerFrom(ctx).Info("There is no MutatingWebhookConfiguration: new pods may go to providers that a policy did not choose",
			"name", ConfigurationName)
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the certificate into the MutatingWebhookConfiguration %s: %w", ConfigurationName, err)
	}
	return nil
}

// join puts a certificate before the known ones that have not expired.
func join(now time.Time, certificate, known []byte) []byte {
	bundle, count := bytes.Clone(certificate), 1
	for block, rest := pem.Decode(known); block != nil && count < maxCertificates; block, rest = pem.Decode(rest) {
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err != nil || now.After(parsed.NotAfter) {
			continue
		}
		bundle = append(bundle, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		count++
	}
	return bundle
}
