// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo1

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/peerwrite"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// parse returns a request for a certificate as it is checked.
func parse(t *testing.T, text []byte) *x509.CertificateRequest {
	t.Helper()
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("%s is no request", text)
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// TestCertificates has Liqo ask for certificates as it does: they are given.
func TestCertificates(t *testing.T) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	consumer := liqov1beta1.ClusterID("milano-1")
	tenant, err := authentication.GenerateCSRForControlPlane(key, consumer)
	if err != nil {
		t.Fatal(err)
	}
	asked := v1.Asked{Tenants: []api.Tenant{{Spec: api.TenantSpec{ClusterID: "milano-1", CSR: tenant}}}}
	if err := v1.CheckCSR(parse(t, tenant), tenant, asked); err != nil {
		t.Errorf("that of a control plane: %v", err)
	}
	slice, err := authentication.GenerateCSRForResourceSlice(key, &authv1beta1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "big"}, Spec: authv1beta1.ResourceSliceSpec{ConsumerClusterID: &consumer},
	})
	if err != nil {
		t.Fatal(err)
	}
	asked.Slices = []api.ResourceSlice{{
		ObjectMeta: metav1.ObjectMeta{Name: "big", Labels: map[string]string{
			liqo.LabelReplicated: liqo.ReplicationValue, liqo.LabelOrigin: "milano-1",
		}},
		Spec: api.ResourceSliceSpec{ConsumerClusterID: new("milano-1"), CSR: slice},
	}}
	if err := v1.CheckCSR(parse(t, slice), slice, asked); err != nil {
		t.Errorf("that of a ResourceSlice: %v", err)
	}
	// The peering user has the name by which it is known.
	_, user, err := authentication.GenerateCSRForPeerUser(key, consumer)
	if err != nil {
		t.Fatal(err)
	}
	write := &peerwrite.Write{User: user, Groups: []string{authentication.OrganizationControlPlaneCSR()}, Resource: "others"}
	rules := v1.Line{}.PeerRules()
	if err := rules.Check(write, "milano-1", "own"); err != nil || !rules.IsPeer(write, "milano-1") {
		t.Errorf("the peering user %s is none: %v", user, err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		liqo.LabelTenantNamespace: "true", liqo.LabelRemoteClusterID: "milano-1",
	}}}
	if of, is := rules.TenantOf(namespace); of != "milano-1" || !is {
		t.Errorf("TenantOf() = %q, %t", of, is)
	}
}

// TestNonce has liqoctl ask for a nonce as it does, and write nothing else: that is let in.
func TestNonce(t *testing.T) {
	made, err := os.ReadFile(filepath.Join(liqoFolder(t), "pkg/liqo-controller-manager/authentication/forge/nonce.go"))
	if err != nil {
		t.Fatal(err)
	}
	const name = "liqo-nonce"
	if !strings.Contains(string(made), `return "`+name+`"`) {
		t.Errorf("the Secret for a nonce is not called %s any more", name)
	}
	nonce := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{consts.NonceSecretLabelKey: "true", consts.RemoteClusterID: "milano-1"},
	}}
	text, err := json.Marshal(nonce)
	if err != nil {
		t.Fatal(err)
	}
	write := &peerwrite.Write{User: "milano-1", Resource: "secrets", New: text}
	if err := (v1.Line{}).PeerRules().Check(write, "milano-1", "own"); err != nil {
		t.Errorf("no cluster can peer: %v", err)
	}
}

// TestWhoReadsSecrets finds where Liqo lists Secrets or watches them, outside of liqoctl: the rules for peers know by which marks. Another
// place may go by another one.
func TestWhoReadsSecrets(t *testing.T) {
	const controllers = "pkg/liqo-controller-manager/"
	want := []string{
		"internal/crdReplicator/crdReplicator-operator.go",
		controllers + "authentication/noncecreator-controller/noncecreator_controller.go",
		controllers + "authentication/noncesigner-controller/noncesigner_controller.go",
		controllers + "networking/external-network/wireguard/utils.go",
		controllers + "networking/external-network/wireguard/wggatewayclient_controller.go",
		controllers + "networking/external-network/wireguard/wggatewayserver_controller.go",
		"pkg/utils/getters/k8sGetters.go",
		"pkg/webhooks/secretcontroller/secret_controller.go",
	}
	reads := regexp.MustCompile(`corev1\.SecretList|(For|Watches)\(&corev1\.Secret\{\}`)
	folder, got := liqoFolder(t), []string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(folder, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name == "pkg/liqoctl":
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if reads.Match(text) {
			got = append(got, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-known +read\n%s", diff)
	}
}

// TestNamesThatRulesKnow compares names that Liqo has in packages which would bring much to compile, and in its chart.
func TestNamesThatRulesKnow(t *testing.T) {
	manager := constants(t, "pkg/identityManager/const.go")
	if got, key := manager["remoteCertificateSecret"], manager["certificateSecretKey"]; got != liqo.IssuedName || key != "certificate" {
		t.Errorf("Liqo keeps what it issues in %s of Secret %s, want %s", key, got, liqo.IssuedName)
	}
	if got := constants(t, "pkg/tenantNamespace/const.go")["NamePrefix"]; got != api.TenantNamePrefix {
		t.Errorf("tenant namespaces begin with %q, want %q", got, api.TenantNamePrefix)
	}
	webhooks, err := os.ReadFile(filepath.Join(liqoFolder(t), "deployments/liqo/templates/webhooks/liqo-validating-webhook.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(webhooks), "key: "+api.LabelSkipWebhooks+"\n") {
		t.Errorf("Liqo's webhooks do not know the label %s", api.LabelSkipWebhooks)
	}
}
