// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	discoveryv1alpha1 "github.com/liqotech/liqo/apis/discovery/v1alpha1"
	"github.com/liqotech/liqo/pkg/auth"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/hostile"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// TestHostilePeers has the consumer and a provider try what no peer must achieve, each with the identity that Liqo gave it at the
// broker. Afterwards all is as before: the workload of the consumer serves, and providers and consumers are ready.
func TestHostilePeers(t *testing.T) {
	const namespace = "hostile"
	needs(t, federation.HostilePeers)
	together(t, v1alpha1.ModeOrchestrated)
	deploy(t, namespace, federation.Web, 2)
	copies(t, namespace, 2)
	before, err := fed.Broker.Kubectl(t.Context(), "get", "providers,consumers", "--output=name")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		peer, victim *federation.Cluster
		twin         string
	}{
		"Consumer": {fed.Consumer, fed.ProviderB, twinOf(t, namespace)},
		"Provider": {fed.ProviderA, fed.ProviderB, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, attempt := range intruder(t, tc.peer, tc.victim, tc.twin).Attempts() {
				got := attempt.Try(t.Context())
				// Who only provides, or only consumes, has no right to some of what admission would refuse.
				if got == nil || !strings.Contains(got.Error(), attempt.Got) && !strings.Contains(got.Error(), hostile.NoRight) {
					t.Errorf("%s could %s, which gives it %s: %v", tc.peer.Name, attempt.Name, attempt.Gain, got)
				}
			}
		})
	}
	t.Run("Identity", func(t *testing.T) { checkIdentity(t, fed.ProviderB.ID) })
	after, err := fed.Broker.Kubectl(t.Context(), "get", "providers,consumers", "--output=name")
	if err != nil {
		t.Fatal(err)
	}
	if before != after {
		t.Errorf("the broker has\n%s\nand had\n%s", after, before)
	}
	checkAddresses(t, copies(t, namespace, 2))
}

// intruder returns a peer of the broker that means no good.
func intruder(t *testing.T, peer, victim *federation.Cluster, twin string) *hostile.Peer {
	t.Helper()
	config, err := fed.Broker.Lab.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	p := &hostile.Peer{
		ID: peer.ID, Tenant: tenantNamespace(t, fed.Broker, peer), Twin: twin, Broker: fed.Broker.ID, Victim: victim.ID,
		VictimTenant: tenantNamespace(t, fed.Broker, victim),
		Node:         fed.Broker.Name,
	}
	if err := p.Connect(config, identityOf(t, peer).Data); err != nil {
		t.Fatal(err)
	}
	return p
}

// checkIdentity has a cluster that nobody knows ask the broker's Liqo for a certificate in the name of another one, with the token
// that every peer knows.
func checkIdentity(t *testing.T, victim cluster.ID) {
	t.Helper()
	const stranger = "00000000-0000-4000-8000-000000000bad"
	// Liqo makes it before it looks at the request.
	walk.KubectlAtEnd(t, fed.Broker, "delete", "namespace", "--selector=discovery.liqo.io/cluster-id="+stranger)
	var token corev1.Secret
	if err := fed.Broker.Get(t.Context(), client.ObjectKey{Namespace: "liqo", Name: "auth-token"}, &token); err != nil {
		t.Fatal(err)
	}
	for name, subject := range map[string]pkix.Name{
		"another cluster": {CommonName: string(victim), Organization: []string{"liqo.io"}},
		"administrators":  {CommonName: stranger, Organization: []string{"kubeadm:cluster-admins"}},
	} {
		wish, err := hostile.SigningRequest(subject)
		if err != nil {
			t.Fatal(err)
		}
		request := auth.NewCertificateIdentityRequest(discoveryv1alpha1.ClusterIdentity{ClusterID: stranger, ClusterName: "stranger"}, "",
			string(token.Data["token"]), wish)
		if status, body := postIdentity(t, request); status < http.StatusBadRequest {
			t.Errorf("a stranger gets a certificate of %s: status %d, %s", name, status, body)
		}
	}
}

// postIdentity sends a request to the broker's liqo-auth, from a pod of the consumer.
func postIdentity(t *testing.T, request *auth.CertificateIdentityRequest) (status int, body string) {
	t.Helper()
	var foreign v09.ForeignClusterList
	if err := fed.Consumer.List(t.Context(), &foreign); err != nil {
		t.Fatal(err)
	}
	url := ""
	for i := range foreign.Items {
		if v09.Identity(&foreign.Items[i]).ID == fed.Broker.ID {
			url = foreign.Items[i].Spec.ForeignAuthURL + auth.CertIdentityURI
		}
	}
	content, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	tools := pod(t, fed.Consumer, "default", "tools")
	asker := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return fed.Consumer.Dial(ctx, tools, address)
		},
	}}
	post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	response, err := asker.Do(post)
	if err != nil {
		t.Fatalf("POST %s: %v", url, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
