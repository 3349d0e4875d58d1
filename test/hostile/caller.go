// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// caller makes requests of an API server.
type caller struct {
	// DryRun is whether nothing changes of what succeeds.
	DryRun bool

	api client.Client
}

// certified is how who has a certificate uses the API server that somebody else uses.
func certified(config *rest.Config, certificate, key []byte) *rest.Config {
	return &rest.Config{
		Host: config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData, CertData: certificate, KeyData: key},
	}
}

// impersonate gives callers the access to an API server that service accounts of Liqo have; config is an administrator's.
func impersonate(config *rest.Config, accounts map[string]*caller) error {
	for account, is := range accounts {
		as := rest.CopyConfig(config)
		as.Impersonate = rest.ImpersonationConfig{
			UserName: "system:serviceaccount:liqo:" + account, Groups: []string{"system:serviceaccounts", "system:authenticated"},
		}
		if err := is.connect(as); err != nil {
			return fmt.Errorf("reach the API server as %s: %w", account, err)
		}
	}
	return nil
}

func (c *caller) connect(config *rest.Config) error {
	api, err := client.New(config, client.Options{})
	c.api = api
	return err
}

// list tries to read objects of a kind.
func (c *caller) list(apiVersion, kind, namespace string) func(context.Context) error {
	return func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind+"List"))
		return c.api.List(ctx, list, client.InNamespace(namespace))
	}
}

// create tries to create an object with a name of its own, and removes it should it succeed.
func (c *caller) create(apiVersion, kind, namespace string, labels, spec map[string]any) func(context.Context) error {
	var fields map[string]any
	if spec != nil {
		fields = map[string]any{"spec": spec}
	}
	return c.createWith(apiVersion, kind, namespace, "", labels, fields)
}

// createWith tries to create an object that has more than a spec, and removes it should it succeed. Without a name it gets one of its own.
// Annotations are keys and values in turn.
func (c *caller) createWith(
	apiVersion, kind, namespace, name string, labels, fields map[string]any, annotations ...string,
) func(context.Context) error {
	return func(ctx context.Context) error {
		object := named(apiVersion, kind, namespace, name)
		if name == "" {
			object.SetGenerateName("hostile-")
		}
		if err := unstructured.SetNestedMap(object.Object, plain(labels), "metadata", "labels"); err != nil {
			return fmt.Errorf("label the %s: %w", kind, err)
		}
		if len(annotations) > 0 {
			object.SetAnnotations(map[string]string{annotations[0]: annotations[1]})
		}
		maps.Copy(object.Object, fields)
		return c.tryCreate(ctx, object)
	}
}

// change tries to change a field of an object, or of a subresource of it.
func (c *caller) change(apiVersion, kind, namespace, name, subresource string, value any, field ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		object := named(apiVersion, kind, namespace, name)
		if err := c.api.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return fmt.Errorf("read the %s that is to be changed: %w", kind, err)
		}
		if err := unstructured.SetNestedField(object.Object, value, field...); err != nil {
			return fmt.Errorf("change the %s: %w", kind, err)
		}
		if subresource != "" {
			return c.api.SubResource(subresource).Update(ctx, object, client.DryRunAll)
		}
		return c.api.Update(ctx, object, client.DryRunAll)
	}
}

// delete tries to remove an object, which stays.
func (c *caller) delete(apiVersion, kind, namespace, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		return c.api.Delete(ctx, named(apiVersion, kind, namespace, name), client.DryRunAll)
	}
}

// tryCreate tries to create an object, and removes it should it succeed.
func (c *caller) tryCreate(ctx context.Context, object *unstructured.Unstructured) error {
	if c.DryRun {
		return c.api.Create(ctx, object, client.DryRunAll)
	}
	if err := c.api.Create(ctx, object); err != nil {
		return err
	}
	if err := c.api.Delete(ctx, object); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("the attempt succeeded, and what it made stays: %w", err)
	}
	return nil
}

// readdressed is what became of a Service for which somebody had chosen the cluster IP.
const readdressed = "the Service has another cluster IP"

// address tries to have a Service get its cluster IP when it is no ExternalName any more, one that it has chosen if it chooses: the one
// that it gave back. The Service is made for that and removed, also where nothing else changes.
func (c *caller) address(namespace string, chooses bool) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		service := named("v1", "Service", namespace, "")
		service.SetGenerateName("hostile-")
		ports := []any{map[string]any{"port": int64(443)}}
		service.Object["spec"] = map[string]any{"ports": ports}
		if err := c.api.Create(ctx, service); err != nil {
			return err
		}
		defer func() {
			if failed := client.IgnoreNotFound(c.api.Delete(ctx, service)); failed != nil {
				err = errors.Join(err, fmt.Errorf("what was made for the attempt stays: %w", failed))
			}
		}()
		ip, err := clusterIP(service)
		if err != nil {
			return err
		}
		service.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": "example.com"}
		service.SetResourceVersion("") // Whoever else has changed it meanwhile.
		if err := c.api.Update(ctx, service); err != nil {
			return err
		}
		spec := map[string]any{"type": "ClusterIP", "ports": ports}
		if chooses {
			spec["clusterIP"], spec["clusterIPs"] = ip, []any{ip}
		}
		service.Object["spec"] = spec
		service.SetResourceVersion("")
		var options []client.UpdateOption
		if c.DryRun {
			options = append(options, client.DryRunAll)
		}
		if err := c.api.Update(ctx, service, options...); err != nil {
			return err
		}
		is, err := clusterIP(service)
		if err == nil && chooses && is != ip {
			err = errors.New(readdressed)
		}
		return err
	}
}

// clusterIP returns the cluster IP of a Service that has one.
func clusterIP(service *unstructured.Unstructured) (string, error) {
	ip, _, err := unstructured.NestedString(service.Object, "spec", "clusterIP")
	if err == nil && ip == "" {
		err = errors.New("there is none")
	}
	if err != nil {
		return "", fmt.Errorf("read which cluster IP the Service has: %w", err)
	}
	return ip, nil
}

// named returns an object of which nothing else is known.
func named(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// plain returns labels as JSON has them.
func plain(labels map[string]any) map[string]any {
	if labels == nil {
		return map[string]any{}
	}
	return labels
}

// certificate asks for a certificate with a name, as Liqo's authentication service does for who has the token.
func (c *caller) certificate(name pkix.Name) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := SigningRequest(name)
		if err != nil {
			return err
		}
		return c.api.Create(ctx, signing(request), client.DryRunAll)
	}
}

// signing asks for a certificate of a client.
func signing(request []byte) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "hostile-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages: []certificatesv1.KeyUsage{
				certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth,
			},
		},
	}
}

// SigningRequest returns a request for a certificate with a name, by a key that nobody knows, as PEM.
func SigningRequest(name pkix.Name) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: name}, key)
	if err != nil {
		return nil, fmt.Errorf("request a certificate of %s: %w", name, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}
