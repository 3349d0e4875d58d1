// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command certgen stands in for kube-webhook-certgen, which Liqo's chart runs to
// give its webhooks a certificate: "create" makes one and stores it in a Secret,
// "patch" tells the webhook configurations whom to trust. It takes the flags that
// the chart passes, and no others.
package main

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/capacitorset/liqo-broker/test/lab/pki"
)

type options struct {
	hosts, namespace, secret, certificate, key, webhook string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("use certgen create or certgen patch")
	}
	var o options
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.StringVar(&o.hosts, "host", "", "host names of the certificate, separated by commas")
	flags.StringVar(&o.namespace, "namespace", "", "namespace of the secret")
	flags.StringVar(&o.secret, "secret-name", "", "name of the secret")
	flags.StringVar(&o.certificate, "cert-name", "cert", "key of the certificate in the secret")
	flags.StringVar(&o.key, "key-name", "key", "key of the private key in the secret")
	flags.StringVar(&o.webhook, "webhook-name", "", "name of the webhook configurations")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	switch args[0] {
	case "create":
		return create(ctx, client, o)
	case "patch":
		return patch(ctx, client, o)
	}
	return fmt.Errorf("unknown command %q: use create or patch", args[0])
}

// create stores a new certificate, unless there is one.
func create(ctx context.Context, client kubernetes.Interface, o options) error {
	secrets := client.CoreV1().Secrets(o.namespace)
	if _, err := secrets.Get(ctx, o.secret, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	authority, err := pki.NewAuthority("webhook")
	if err != nil {
		return err
	}
	hosts := strings.Split(o.hosts, ",")
	server, err := authority.Server(pkix.Name{CommonName: hosts[0]}, hosts...)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: o.secret},
		Data:       map[string][]byte{"ca": authority.Certificate, o.certificate: server.Certificate, o.key: server.Key},
	}
	if _, err := secrets.Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create secret %s: %w", o.secret, err)
	}
	return nil
}

// patch makes both webhook configurations of that name trust the stored certificate.
func patch(ctx context.Context, client kubernetes.Interface, o options) error {
	secret, err := client.CoreV1().Secrets(o.namespace).Get(ctx, o.secret, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read secret %s: %w", o.secret, err)
	}
	authority := secret.Data["ca"]
	mutating := client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	m, err := mutating.Get(ctx, o.webhook, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read mutating webhooks %s: %w", o.webhook, err)
	}
	for i := range m.Webhooks {
		m.Webhooks[i].ClientConfig.CABundle = authority
	}
	if _, err := mutating.Update(ctx, m, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update mutating webhooks %s: %w", o.webhook, err)
	}
	validating := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	v, err := validating.Get(ctx, o.webhook, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read validating webhooks %s: %w", o.webhook, err)
	}
	for i := range v.Webhooks {
		v.Webhooks[i].ClientConfig.CABundle = authority
	}
	if _, err := validating.Update(ctx, v, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update validating webhooks %s: %w", o.webhook, err)
	}
	return nil
}
