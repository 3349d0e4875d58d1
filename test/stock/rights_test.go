// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package stock

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/capacitorset/liqo-broker/test/lab"
)

// secret reads a field of a Secret.
func secret(t *testing.T, c *lab.Cluster, namespace, name, field string) []byte {
	t.Helper()
	out := kubectl(t, c, "get", "secret", "-n", namespace, name, "-o", "jsonpath={.data."+field+"}")
	data, err := base64.StdEncoding.DecodeString(out)
	if err != nil || len(data) == 0 {
		t.Fatalf("Secret %s/%s of %s has no %s: %v", namespace, name, c.Name, field, err)
	}
	return data
}

// peer is the identity that the provider gave to the broker, as an administrator of the broker can use it: from this machine, the
// provider's API server has another address than from the broker.
func peer(t *testing.T) *clientcmdapi.Config {
	t.Helper()
	namespace, name := "liqo-tenant-"+provider.Name, "kubeconfig-controlplane-"+provider.Name
	identity, err := clientcmd.Load(secret(t, broker, namespace, name, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(provider.KubeconfigPath())
	if err != nil {
		t.Fatal(err)
	}
	as(config, identity.AuthInfos[identity.Contexts[identity.CurrentContext].AuthInfo])
	return config
}

// as changes who uses a cluster by a kubeconfig.
func as(config *clientcmdapi.Config, who *clientcmdapi.AuthInfo) {
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{config.Contexts[config.CurrentContext].AuthInfo: who}
}

// write writes a file for as long as the test runs.
func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// atProvider runs kubectl on the provider by a kubeconfig.
func atProvider(ctx context.Context, t *testing.T, config *clientcmdapi.Config, args ...string) (string, error) {
	t.Helper()
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return provider.Kubectl(ctx, append([]string{"--kubeconfig", write(t, "kubeconfig", text)}, args...)...)
}

// TestAnyPeerBecomesAdministrator asks a provider as kubeadm makes it for a certificate with one group more than Liqo looks at: it is
// signed, and what the provider keeps secret can be read with it.
func TestAnyPeerBecomesAdministrator(t *testing.T) {
	const administrators, name = "kubeadm:cluster-admins", "one-more-group"
	apply(t, provider, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %q}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: %q}]
`, administrators, administrators))

	// The request is signed by the key of the broker's cluster, whose administrator wants more.
	block, _ := pem.Decode(secret(t, broker, "liqo", "authentication-keys", "privateKey"))
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256([]byte(broker.Name))
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName: fmt.Sprintf("%s-%x", name, hash[:6]),
		ExtraNames: []pkix.AttributeTypeAndValue{
			{Type: []int{2, 5, 4, 10}, Value: broker.Name}, {Type: []int{2, 5, 4, 10}, Value: administrators},
		},
	}}, key)
	if err != nil {
		t.Fatal(err)
	}
	slice, err := json.Marshal(map[string]any{
		"apiVersion": "authentication.liqo.io/v1beta1", "kind": "ResourceSlice",
		"metadata": map[string]any{
			"name": name, "namespace": "liqo-tenant-" + broker.Name,
			// Liqo on the broker would remove what is said to come from there, and does not.
			"labels": map[string]string{
				"liqo.io/originID": "nobody", "liqo.io/replicated": "true", "liqo.io/remoteID": provider.Name,
				"liqo.io/remote-cluster-id": broker.Name,
			},
		},
		"spec": map[string]any{
			"class": "default", "consumerClusterID": broker.Name, "providerClusterID": provider.Name,
			"csr": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	file, config := write(t, "slice.json", slice), peer(t)
	if _, err := atProvider(t.Context(), t, config, "apply", "-f", file); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if _, err := atProvider(ctx, t, config, "delete", "-f", file); err != nil {
			t.Error(err)
		}
	})
	var signed []byte
	eventually(t, func(ctx context.Context) error {
		out, err := atProvider(ctx, t, config, "get", "-f", file, "-o", "jsonpath={.status.authParams.signedCRT}")
		if err == nil && out == "" {
			err = fmt.Errorf("the request is not signed")
		}
		if err != nil {
			return err
		}
		signed, err = base64.StdEncoding.DecodeString(out)
		return err
	})

	// The same key, with the certificate that was signed.
	as(config, &clientcmdapi.AuthInfo{ClientCertificateData: signed, ClientKeyData: pem.EncodeToMemory(block)})
	secrets, err := atProvider(t.Context(), t, config, "get", "secrets", "-n", "liqo", "-o", "name")
	if err != nil || !strings.Contains(secrets, "secret/authentication-keys") {
		t.Errorf("the certificate reads %q, %v: requests need not be refused any more", secrets, err)
	}
}

// TestDefaultClassGrantsAnything asks a provider for more than it can have, in the class that Liqo itself answers: it grants it.
func TestDefaultClassGrantsAnything(t *testing.T) {
	const name = "too-much"
	apply(t, broker, fmt.Sprintf(`
apiVersion: authentication.liqo.io/v1beta1
kind: ResourceSlice
metadata:
  name: %s
  namespace: liqo-tenant-%s
  labels: {liqo.io/remote-cluster-id: %[2]s, liqo.io/remoteID: %[2]s, liqo.io/replication: "true"}
spec: {class: default, providerClusterID: %[2]s, resources: {cpu: "1000"}}
`, name, provider.Name))
	eventually(t, func(ctx context.Context) error {
		cpu, err := broker.Kubectl(ctx, "get", "resourceslices.authentication.liqo.io", "-n", "liqo-tenant-"+provider.Name, name,
			"-o", "jsonpath={.status.resources.cpu}")
		if err == nil && cpu != "1k" {
			err = fmt.Errorf("granted are %q, want 1k", cpu)
		}
		return err
	})
}

// TestNamespaceOfLiqoLeaks offloads the namespace of Liqo: the other cluster is sent the private key of this one.
func TestNamespaceOfLiqoLeaks(t *testing.T) {
	reoffload(t, consumer, "liqo", "DefaultName", broker)
	eventually(t, func(ctx context.Context) error {
		_, err := broker.Kubectl(ctx, "get", "secret", "-n", "liqo-"+consumer.Name, "authentication-keys")
		return err
	})
}
