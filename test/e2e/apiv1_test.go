// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/apiclient"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// TestAPI asks version 1 of the HTTP API with a client that is generated from the API's own document, from the network of the consumer: as
// an operator of the broker, and as the consumer, which is known by the certificate that Liqo got for it.
func TestAPI(t *testing.T) {
	const namespace = "api"
	start(t, v1alpha1.ModeOrchestrated)
	ctx := t.Context()
	token, err := fed.APIToken(ctx)
	if err != nil {
		t.Fatal(err)
	}
	operator, itself := apiClient(t, token, nil), apiClient(t, "", new(consumerIdentity(t)))
	deploy(t, namespace, federation.Web, 2)
	pods := copies(t, namespace, 2)

	// What the operator sees is what is there.
	providers, err := operator.ListProvidersWithResponse(ctx, nil)
	if err != nil || providers.JSON200 == nil {
		t.Fatalf("list providers: %v, %s", err, bodyOf(providers))
	}
	listed := map[string]bool{}
	for _, p := range providers.JSON200.Items {
		listed[p.Id] = p.Ready
	}
	for _, p := range fed.Providers() {
		if !listed[string(p.ID)] {
			t.Errorf("provider %s is not listed as ready: %s", p.Name, providers.Body)
		}
	}
	workloads := func(who *apiclient.ClientWithResponses) map[string]apiclient.Workload {
		t.Helper()
		answer, err := who.ListWorkloadsWithResponse(ctx, &apiclient.ListWorkloadsParams{Consumer: new(string(fed.Consumer.ID))})
		if err != nil || answer.JSON200 == nil {
			t.Fatalf("list workloads: %v, %s", err, bodyOf(answer))
		}
		found := map[string]apiclient.Workload{}
		for _, w := range answer.JSON200.Items {
			if w.Namespace == namespace {
				found[w.Pod] = w
			}
		}
		return found
	}
	for _, who := range []*apiclient.ClientWithResponses{operator, itself} {
		eventually(t, time.Minute, func(context.Context) error {
			found := workloads(who)
			for _, pod := range pods {
				w, is := found[pod.Name]
				if !is || w.Provider == nil || w.Provider.Id != string(pod.RunsOn.ID) || w.Address == nil ||
					*w.Address != pod.Address[fed.Broker.Name] {
					return fmt.Errorf("pod %s of %s at %s is shown as %+v", pod.Name, pod.RunsOn.Name, pod.Address[fed.Broker.Name], w)
				}
			}
			return nil
		})
	}

	// The consumer is told with whom to peer: it has a tunnel to provider-a, and none to provider-b. That is of use if it reaches pods by it.
	eventually(t, time.Minute, func(ctx context.Context) error { // A tunnel that was lost for a moment is back soon.
		advice, err := itself.GetAdviceWithResponse(ctx, string(fed.Consumer.ID), nil)
		if err != nil || advice.JSON200 == nil {
			return fmt.Errorf("ask for advice: %w, %s", err, bodyOf(advice))
		}
		connected := map[string]bool{}
		for _, p := range advice.JSON200.Peers {
			connected[p.Provider.Id] = p.Connected
		}
		if !direct() {
			if len(connected) > 0 || !advice.JSON200.Done {
				return fmt.Errorf("the consumer is told to peer: %s", advice.Body)
			}
			return nil
		}
		if is, named := connected[string(fed.ProviderB.ID)]; !named || is || advice.JSON200.Done {
			return fmt.Errorf("the consumer is not told to peer with %s: %s", fed.ProviderB.Name, advice.Body)
		}
		if is := connected[string(fed.ProviderA.ID)]; !is {
			return fmt.Errorf("the consumer is told to peer with %s, its peer: %s", fed.ProviderA.Name, advice.Body)
		}
		return nil
	})

	// A provider that is drained by the API is empty in the end, which the consumer, who watches, learns too.
	drained, err := operator.SetSchedulingWithResponse(ctx, string(fed.ProviderA.ID),
		apiclient.Scheduling{Scheduling: apiclient.SchedulingSchedulingDrained})
	if err != nil || drained.JSON200 == nil {
		t.Fatalf("drain %s: %v, %s", fed.ProviderA.Name, err, bodyOf(drained))
	}
	copies(t, namespace, 2, fed.ProviderB)

	// The consumer sees and does nothing that is not its own; a stranger sees nothing at all.
	for name, tc := range map[string]struct {
		ask  func() (*http.Response, error)
		want int
	}{
		"Providers": {func() (*http.Response, error) { return itself.ListProviders(ctx, nil) }, http.StatusForbidden},
		"Other":     {func() (*http.Response, error) { return itself.GetConsumer(ctx, string(fed.ProviderA.ID), nil) }, http.StatusForbidden},
		"Itself":    {func() (*http.Response, error) { return itself.GetConsumer(ctx, string(fed.Consumer.ID), nil) }, http.StatusOK},
		"Drain": {func() (*http.Response, error) {
			return itself.SetScheduling(ctx, string(fed.ProviderA.ID), apiclient.Scheduling{Scheduling: apiclient.SchedulingSchedulingActive})
		}, http.StatusForbidden},
		"Nobody": {func() (*http.Response, error) { return apiClient(t, "", nil).ListProviders(ctx, nil) }, http.StatusUnauthorized},
	} {
		answer, err := tc.ask()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_ = answer.Body.Close()
		if answer.StatusCode != tc.want {
			t.Errorf("%s: status %d, want %d", name, answer.StatusCode, tc.want)
		}
	}

	// An aggregated consumer learns of no provider.
	start(t, v1alpha1.ModeAggregated)
	eventually(t, time.Minute, func(ctx context.Context) error {
		answer, err := itself.ListWorkloadsWithResponse(ctx, nil)
		if err != nil || answer.JSON200 == nil {
			return fmt.Errorf("list workloads: %w, %s", err, bodyOf(answer))
		}
		told, err := itself.GetAdviceWithResponse(ctx, string(fed.Consumer.ID), nil)
		if err != nil {
			return err
		}
		for _, p := range fed.Providers() {
			for _, secret := range []string{string(p.ID), p.Name} {
				if strings.Contains(string(answer.Body)+string(told.Body), secret) {
					return fmt.Errorf("an aggregated consumer learns of %s: %s %s", p.Name, answer.Body, told.Body)
				}
			}
		}
		return nil
	})
}

// bodyOf returns what was answered, for an error.
func bodyOf(answer interface{ GetBody() []byte }) string {
	defer func() { _ = recover() }() // There is no answer at all.
	return string(answer.GetBody())
}

// apiClient returns a client of the HTTP API that connects from the network of the consumer, with a token, if it is not empty, and a
// certificate, if it is not nil, and trusts what the broker announces.
func apiClient(t *testing.T, token string, certificate *tls.Certificate) *apiclient.ClientWithResponses {
	t.Helper()
	address, err := fed.APIAddress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var announced corev1.ConfigMap
	if err := fed.Broker.Get(t.Context(), client.ObjectKey{Namespace: "liqo-broker", Name: "liqo-broker-api-ca"}, &announced); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(announced.Data["ca.crt"])) {
		t.Fatal("the broker announces no certificate")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: federation.APIName}
	if certificate != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	from := pod(t, fed.Consumer, "default", "tools")
	transport := &http.Transport{TLSClientConfig: config, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return fed.Consumer.Dial(ctx, from, address)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := apiclient.NewClientWithResponses("https://"+federation.APIName,
		apiclient.WithHTTPClient(&http.Client{Transport: transport, Timeout: 20 * time.Second}),
		apiclient.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}
