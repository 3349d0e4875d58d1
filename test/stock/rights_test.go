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

// peer is the identity that a cluster gave to another one, as an administrator of that one can use it: from this machine, the cluster's API
// server has another address than from there. It is in a Secret.
func peer(t *testing.T, by, at *lab.Cluster, name string) *clientcmdapi.Config {
	t.Helper()
	identity, err := clientcmd.Load(secret(t, by, "liqo-tenant-"+at.Name, name, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(at.KubeconfigPath())
	if err != nil {
		t.Fatal(err)
	}
	as(config, identity.AuthInfos[identity.Contexts[identity.CurrentContext].AuthInfo])
	return config
}

// controlPlane is the identity of a peer's control plane.
func controlPlane(t *testing.T, by, at *lab.Cluster) *clientcmdapi.Config {
	t.Helper()
	return peer(t, by, at, "kubeconfig-controlplane-"+at.Name)
}

// as changes who uses a cluster by a kubeconfig.
func as(config *clientcmdapi.Config, who *clientcmdapi.AuthInfo) {
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{config.Contexts[config.CurrentContext].AuthInfo: who}
}

// kubectlAs runs kubectl on a cluster by a kubeconfig.
func kubectlAs(ctx context.Context, t *testing.T, at *lab.Cluster, config *clientcmdapi.Config, args ...string) (string, error) {
	t.Helper()
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return at.Kubectl(ctx, append([]string{"--kubeconfig", write(t, "kubeconfig", text)}, args...)...)
}

// requested is a request for a certificate of the groups, by a key, in PEM.
func requested(t *testing.T, key any, name string, groups ...string) []byte {
	t.Helper()
	subject := pkix.Name{CommonName: name}
	for _, group := range groups { // Each by itself: of several in one Liqo would read the first, too.
		subject.ExtraNames = append(subject.ExtraNames, pkix.AttributeTypeAndValue{Type: []int{2, 5, 4, 10}, Value: group})
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})
}

// answered waits for what Liqo says to a request for a certificate: the certificate, or why there is none.
func answered(t *testing.T, at *lab.Cluster, kind, namespace, name string) (signed []byte, refusal string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		out, err := at.Kubectl(ctx, "get", kind, "-n", namespace, name, "-o", "jsonpath={.status.authParams.signedCRT}")
		if err != nil {
			return err
		}
		if out != "" {
			signed, err = base64.StdEncoding.DecodeString(out)
			return err
		}
		refusal, err = at.Kubectl(ctx, "get", "events", "-n", namespace, "--field-selector", "reason=AuthParamsFailed,involvedObject.name="+name,
			"-o", "jsonpath={.items[*].message}")
		if err == nil && refusal == "" {
			err = fmt.Errorf("the request of %s %s is not answered", kind, name)
		}
		return err
	})
	return signed, refusal
}

// request has a peer ask a cluster for a certificate in groups, by a ResourceSlice, until the test ends. It returns a kubeconfig with what
// was signed, or why nothing was.
func request(t *testing.T, by, at *lab.Cluster, name string, groups ...string) (config *clientcmdapi.Config, refusal string) {
	t.Helper()
	// The request is signed by the key of the peer's cluster, whose administrator wants more.
	block, _ := pem.Decode(secret(t, by, "liqo", "authentication-keys", "privateKey"))
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	hash, tenant := sha256.Sum256([]byte(by.Name)), "liqo-tenant-"+by.Name
	slice, err := json.Marshal(map[string]any{
		"apiVersion": "authentication.liqo.io/v1beta1", "kind": "ResourceSlice",
		"metadata": map[string]any{
			"name": name, "namespace": tenant,
			"labels": map[string]string{
				"liqo.io/originID": by.Name, "liqo.io/replicated": "true", "liqo.io/remoteID": at.Name, "liqo.io/remote-cluster-id": by.Name,
			},
		},
		"spec": map[string]any{
			"class": "default", "consumerClusterID": by.Name, "providerClusterID": at.Name,
			"csr": requested(t, key, fmt.Sprintf("%s-%x", name, hash[:6]), groups...),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, "slice.json", slice)
	config = controlPlane(t, by, at)
	t.Cleanup(func() { undo(t, at, "delete", "--ignore-not-found", "-f", file) })
	// The peer's Liqo would remove what is said to come from there, and does not.
	defer stop(t, by, "liqo", "liqo-crd-replicator")()
	if _, err := kubectlAs(t.Context(), t, at, config, "apply", "-f", file); err != nil {
		t.Fatal(err)
	}
	signed, refusal := answered(t, at, "resourceslices.authentication.liqo.io", tenant, name)
	as(config, &clientcmdapi.AuthInfo{ClientCertificateData: signed, ClientKeyData: pem.EncodeToMemory(block)})
	return config, refusal
}

// administrators are a group as kubeadm makes it.
const administrators = "kubeadm:cluster-admins"

// bound gives a group rights in a cluster until the test ends.
func bound(t *testing.T, at *lab.Cluster, group, role string) {
	t.Helper()
	apply(t, at, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %q}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: %q}]
`, group, role, group))
}

// readsKeys reports whether who has a kubeconfig sees what a cluster keeps secret.
func readsKeys(t *testing.T, at *lab.Cluster, config *clientcmdapi.Config) (bool, error) {
	t.Helper()
	secrets, err := kubectlAs(t.Context(), t, at, config, "get", "secrets", "-n", "liqo", "-o", "name")
	return strings.Contains(secrets, "secret/authentication-keys"), err
}

// TestAnyPeerBecomesAdministrator asks a provider as kubeadm makes it for a certificate with one group more than Liqo looks at: it is
// signed, and what the provider keeps secret can be read with it.
func TestAnyPeerBecomesAdministrator(t *testing.T) {
	bound(t, provider, administrators, "cluster-admin")
	config, refusal := request(t, broker, provider, "one-more-group", broker.Name, administrators)
	if refusal != "" {
		t.Fatalf("the certificate is not signed: %s", refusal)
	}
	if reads, err := readsKeys(t, provider, config); !reads {
		t.Errorf("the certificate does not read keys, %v: requests need not be refused any more", err)
	}
}

// demand has a peer ask a cluster, until the test ends, for more than it can have, in the class that Liqo itself answers.
func demand(t *testing.T, by, at *lab.Cluster, name string) {
	t.Helper()
	apply(t, by, fmt.Sprintf(`
apiVersion: authentication.liqo.io/v1beta1
kind: ResourceSlice
metadata:
  name: %s
  namespace: liqo-tenant-%s
  labels: {liqo.io/remote-cluster-id: %[2]s, liqo.io/remoteID: %[2]s, liqo.io/replication: "true"}
spec: {class: default, providerClusterID: %[2]s, resources: {cpu: "1000"}}
`, name, at.Name))
}

// TestDefaultClassGrantsAnything asks a provider for more than it can have, in the class that Liqo itself answers: it grants it.
func TestDefaultClassGrantsAnything(t *testing.T) {
	const name = "too-much"
	demand(t, broker, provider, name)
	eventually(t, func(ctx context.Context) error {
		cpu, err := broker.Kubectl(ctx, "get", "resourceslices.authentication.liqo.io", "-n", "liqo-tenant-"+provider.Name, name,
			"-o", "jsonpath={.status.resources.cpu}")
		if err == nil && cpu != "1k" {
			err = fmt.Errorf("granted are %q, want 1k", cpu)
		}
		return err
	})
}

// leaking offloads the namespace of Liqo, with the keys of the cluster.
func leaking(to *lab.Cluster) string { return offloading("liqo", "DefaultName", "Remote", to) }

// TestNamespaceOfLiqoLeaks offloads the namespace of Liqo: the other cluster is sent the private key of this one.
func TestNamespaceOfLiqoLeaks(t *testing.T) {
	apply(t, consumer, leaking(broker))
	eventually(t, func(ctx context.Context) error {
		_, err := broker.Kubectl(ctx, "get", "secret", "-n", "liqo-"+consumer.Name, "authentication-keys")
		return err
	})
}

// TestPeersWriteAnything has a consumer and its Liqo try at the cluster in the middle, as a dry run, what a broker does not let them, and
// who has a peering user: all of it succeeds, and so does what honest people do in its place.
func TestPeersWriteAnything(t *testing.T) {
	open(t, intruders(t, chain(t, "hostile")))
	n := invite(t, broker, newcomerID)
	open(t, n.Rows())
	if refusal := n.arrive(t); refusal != "" {
		t.Fatalf("a newcomer is refused: %s", refusal)
	}
	n.drain(t)
	open(t, n.Drained())
}

// TestNewcomerGetsTheRightsOfAGroup has a newcomer be called like a group of people: what they may it may as well.
func TestNewcomerGetsTheRightsOfAGroup(t *testing.T) {
	bound(t, broker, staff, "view")
	if refusal := invite(t, broker, staff).arrive(t); refusal != "" {
		t.Errorf("a newcomer with the name of a group is refused, so that nobody else need do it: %s", refusal)
	}
}
