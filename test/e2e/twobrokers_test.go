// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// TestTwoBrokers makes provider-a a second broker, beside the first, and has pods on provider-b through each of them. It leaves the
// second broker behind, so that it needs a lab of its own: make test-full.
func TestTwoBrokers(t *testing.T) {
	const replicas = 2
	start(t, v1alpha1.ModeOrchestrated)
	toggle(t, fed.ProviderA, false)
	first, second := fed, fed.WithBroker(fed.ProviderA)
	if err := second.Install(t.Context(), federation.NewProgress(os.Stderr)); err != nil {
		t.Fatal(err)
	}

	var pods []federation.Copy
	for namespace, through := range map[string]*federation.Federation{"first": first, "second": second} {
		fed = through
		t.Cleanup(func() { fed = first })
		deploy(t, namespace, federation.Web, replicas)
		through := onPath(t, namespace, replicas, federation.PathRelay, time.Minute)
		checkAddresses(t, through)
		pods = append(pods, through...)
	}
	fed = first
	checkAddresses(t, pods)

	if fed.Consumer.Has(federation.RemoteIPAM) {
		for _, broker := range []*federation.Cluster{first.Broker, second.Broker} {
			checkUsesRemoteIPAM(t, broker)
		}
	}
}

// checkUsesRemoteIPAM fails unless the consumer's virtual kubelet for a broker says once that it uses a remote IPAM.
func checkUsesRemoteIPAM(t *testing.T, broker *federation.Cluster) {
	t.Helper()
	var namespaces corev1.NamespaceList
	if err := fed.Consumer.List(t.Context(), &namespaces); err != nil {
		t.Fatal(err)
	}
	for i := range namespaces.Items {
		if peer, ok := liqo.TenantOf(&namespaces.Items[i]); !ok || peer != broker.ID {
			continue
		}
		output, err := fed.Consumer.Kubectl(t.Context(), "logs", "--namespace="+namespaces.Items[i].Name,
			"--selector=app.kubernetes.io/component=virtual-kubelet", "--tail=-1")
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(output, "Remote IPAM is in use"); n != 1 {
			t.Errorf("the virtual kubelet for %s says %d times that it uses a remote IPAM, want once", broker.Name, n)
		}
		return
	}
	t.Errorf("the consumer has no tenant namespace of %s", broker.Name)
}
