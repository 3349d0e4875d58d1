// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/docs"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// root is the root of the repository.
const root = "../.."

// read begins with the blocks of a page that a test runs; empty is the test that runs what no journey does. The pairs are texts of
// commands, and what the federation has in their place.
func read(t *testing.T, page, in string, values map[string]string, instead ...string) *walk.Reader {
	t.Helper()
	r, err := fed.Read(page, in, instead...)
	if err != nil {
		t.Fatal(err)
	}
	r.Values = values
	return walk.Follow(t, r)
}

// placeholders are the values of what stands in capital letters in the pages, for a namespace of the consumer.
func placeholders(t *testing.T, namespace string) map[string]string {
	t.Helper()
	values := map[string]string{
		"PROVIDER": fed.ProviderA.Name, "PROVIDER_ID": string(fed.ProviderA.ID), "CONSUMER": fed.Consumer.Name,
		"CONSUMER_ID": string(fed.Consumer.ID), "BROKER": fed.Broker.Name, "BROKER_ID": string(fed.Broker.ID), "NAMESPACE": namespace,
		"DEPLOYMENT": federation.Web, "POLICY": "cheapest",
	}
	if service, err := fed.ReflectedNetworkManager(t.Context()); err == nil {
		values["REMOTE_NAMESPACE"] = service.Namespace
	}
	return values
}

// TestCommandsOfDocuments runs what stands in the pages and in no journey, page by page, while a workload runs.
func TestCommandsOfDocuments(t *testing.T) {
	needs(t, federation.CommandsOfPages)
	const namespace = "documents"
	start(t, v1alpha1.ModeOrchestrated)
	deploy(t, namespace, federation.Web, 2)
	pods := copies(t, namespace, 2)
	values := placeholders(t, namespace)
	values["POD"] = pods[0].Name
	values["TWIN_NAMESPACE"] = twinOf(t, namespace)
	pages, err := docs.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		t.Run(page, func(t *testing.T) { runPage(t, page, values) })
	}
}

// runPage runs the blocks of a page, and takes back what they have changed.
func runPage(t *testing.T, page string, values map[string]string) {
	t.Helper()
	r := read(t, page, "", values)
	if len(r.Blocks) == 0 {
		return
	}
	undo := keep(t)
	defer undo()
	for len(r.Blocks) > 0 {
		cluster, peer := fed.Broker, fed.ProviderA
		if slices.Contains(r.Blocks[0].On, "consumer") {
			cluster, peer = fed.Consumer, fed.Broker
		}
		node, err := cluster.VirtualNode(t.Context(), peer)
		if err != nil {
			t.Fatal(err)
		}
		r.Values["NODE"], r.Values["TENANT_NAMESPACE"] = node.Name, tenantNamespace(t, cluster, peer)
		r.Next("")
	}
}

// keep returns a function that gives the broker's objects the specs which they have now, and deletes those that are there by then.
func keep(t *testing.T) (undo func()) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	var providers v1alpha1.ProviderList
	var consumers v1alpha1.ConsumerList
	if err := fed.Broker.List(ctx, &providers); err != nil {
		t.Fatal(err)
	}
	if err := fed.Broker.List(ctx, &consumers); err != nil {
		t.Fatal(err)
	}
	return func() {
		// Pages make and remove the operator of the examples.
		if err := fed.ExposeAPI(ctx); err != nil {
			t.Error(err)
		}
		var errs []error
		for i := range providers.Items {
			errs = append(errs, restore(ctx, &providers.Items[i], &v1alpha1.Provider{}, func(was, now *v1alpha1.Provider) { now.Spec = was.Spec }))
		}
		for i := range consumers.Items {
			errs = append(errs, restore(ctx, &consumers.Items[i], &v1alpha1.Consumer{}, func(was, now *v1alpha1.Consumer) { now.Spec = was.Spec }))
		}
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
		for _, kind := range []client.Object{&v1alpha1.PlacementPolicy{}, &v1alpha1.ProviderQuery{}} {
			if err := fed.Broker.DeleteAllOf(ctx, kind); err != nil {
				t.Error(err)
			}
		}
	}
}

// restore gives an object of the broker the labels that it had, and what else is to be taken from how it was; now is an empty one.
func restore[T client.Object](ctx context.Context, was, now T, also func(was, now T)) error {
	if err := fed.Broker.Get(ctx, client.ObjectKeyFromObject(was), now); err != nil {
		return err
	}
	before, _ := now.DeepCopyObject().(client.Object)
	now.SetLabels(was.GetLabels())
	also(was, now)
	return fed.Broker.Patch(ctx, now, client.MergeFrom(before))
}

// tenantNamespace returns the namespace in which a cluster keeps what it has to do with a peer.
func tenantNamespace(t *testing.T, c, peer *federation.Cluster) string {
	t.Helper()
	tenant, err := c.Tenant(t.Context(), peer)
	if err != nil {
		t.Fatal(err)
	}
	return tenant
}

// serveLiqosCharts serves Liqo's chart as its repository does, and returns the address.
func serveLiqosCharts(t *testing.T) string {
	t.Helper()
	folder, version := t.TempDir(), fed.Broker.Lab.LiqoVersion()
	server := httptest.NewServer(http.FileServer(http.Dir(folder)))
	t.Cleanup(server.Close)
	for _, args := range [][]string{
		{"package", filepath.Join(fed.Broker.Lab.LiqoPath(), "chart"), "--version", version, "--app-version", version, "--destination", folder},
		{"repo", "index", folder, "--url", server.URL},
	} {
		if out, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "helm"), args...).CombinedOutput(); err != nil {
			t.Fatal(fmt.Errorf("helm %v: %w\n%s", args, err, out))
		}
	}
	return server.URL
}
