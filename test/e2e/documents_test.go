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
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/test/docs"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// root is the root of the repository.
const root = "../.."

// reader is somebody who does what a page says: block after block, each on the cluster that it is for.
type reader struct {
	t      *testing.T
	blocks []docs.Block
	shell  *docs.Shell
	values map[string]string
	// instead has what the federation has in the place of things that it cannot reach.
	instead *strings.Replacer
}

// read begins with the blocks of a page that a test runs; empty is the test that runs what no journey does.
func read(t *testing.T, page, in string, values map[string]string) *reader {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	all, err := docs.Commands(page, string(text))
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{t: t, values: values}
	for _, b := range all {
		if b.On != "" && b.In == in {
			r.blocks = append(r.blocks, b)
		}
	}
	return r
}

// start makes the reader ready to run blocks.
func (r *reader) start(chartRepository string) {
	r.t.Helper()
	home := r.t.TempDir()
	absolute, err := filepath.Abs(root)
	if err != nil {
		r.t.Fatal(err)
	}
	path := strings.Join([]string{
		filepath.Join(absolute, "bin"), filepath.Dir(fed.Broker.Lab.KubectlPath()), fed.Broker.Lab.LiqoPath(), os.Getenv("PATH"),
	}, ":")
	r.shell, err = docs.NewShell(r.t.Context(), absolute, home, "PATH="+path, "HOME="+home, "NO_COLOR=1")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := r.shell.Close(); err != nil {
			r.t.Error(err)
		}
	})
	r.instead = strings.NewReplacer("--image=nginx", "--image=lab.local/web:1", "https://helm.liqo.io/", chartRepository)
}

// next runs the next block, which has a command that begins like this, and returns what it prints.
func (r *reader) next(command string) string {
	r.t.Helper()
	if len(r.blocks) == 0 {
		r.t.Fatalf("the page has no further block, %q was to come", command)
	}
	b := r.blocks[0]
	r.blocks = r.blocks[1:]
	if !strings.Contains("\n"+b.Text, "\n"+command) {
		r.t.Fatalf("%s: this test knows nothing of this block; %q was to come:\n%s", b, command, b.Text)
	}
	on := map[string]*federation.Cluster{"broker": fed.Broker, "consumer": fed.Consumer, "provider": fed.ProviderA}[b.On]
	if on == nil {
		r.t.Fatalf("%s: there is no cluster %q", b, b.On)
	}
	script, err := b.Fill(r.values)
	if err != nil {
		r.t.Fatal(err)
	}
	began := time.Now()
	out, err := r.shell.Run("KUBECONFIG", on.Lab.KubeconfigPath(), r.instead.Replace(script))
	if err != nil {
		r.t.Fatalf("%s, on %s: %v\n%s\n%s", b, b.On, err, b.Text, out)
	}
	r.t.Logf("%s took %.1f s", b, time.Since(began).Seconds())
	return out
}

// skip passes over blocks that begin with these commands, in this order.
func (r *reader) skip(commands ...string) {
	r.t.Helper()
	for _, command := range commands {
		if len(r.blocks) == 0 || !strings.Contains("\n"+r.blocks[0].Text, "\n"+command) {
			r.t.Fatalf("%v: a block with %q was to come", r.blocks, command)
		}
		r.blocks = r.blocks[1:]
	}
}

// end fails the test if blocks are left.
func (r *reader) end() {
	r.t.Helper()
	for _, b := range r.blocks {
		r.t.Errorf("%s: no test has run this:\n%s", b, b.Text)
	}
}

// placeholders are the values of what stands in capital letters in the pages, for a namespace of the consumer.
func placeholders(t *testing.T, namespace string) map[string]string {
	t.Helper()
	values := map[string]string{
		"PROVIDER": fed.ProviderA.Name, "PROVIDER_ID": string(fed.ProviderA.ID), "CONSUMER": fed.Consumer.Name, "CONSUMER_ID": string(fed.Consumer.ID),
		"BROKER": fed.Broker.Name, "BROKER_ID": string(fed.Broker.ID), "NAMESPACE": namespace, "DEPLOYMENT": federation.Web, "POLICY": "cheapest",
	}
	if service, err := fed.ReflectedNetworkManager(t.Context()); err == nil {
		values["REMOTE_NAMESPACE"] = service.Namespace
	}
	return values
}

// TestCommandsOfDocuments runs what stands in the pages and in no journey, page by page, while a workload runs.
func TestCommandsOfDocuments(t *testing.T) {
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
	if len(r.blocks) == 0 {
		return
	}
	r.start("")
	undo := keep(t)
	defer undo()
	for len(r.blocks) > 0 {
		cluster, peer := fed.Broker, fed.ProviderA
		if r.blocks[0].On == "consumer" {
			cluster, peer = fed.Consumer, fed.Broker
		}
		node, err := cluster.VirtualNode(t.Context(), peer)
		if err != nil {
			t.Fatal(err)
		}
		r.values["NODE"], r.values["TENANT_NAMESPACE"] = node.Name, tenantNamespace(t, cluster, peer)
		r.next("")
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
	var peers liqo.ForeignClusterList
	if err := c.List(t.Context(), &peers); err != nil {
		t.Fatal(err)
	}
	for i := range peers.Items {
		if peers.Items[i].Spec.ClusterIdentity.ClusterID == string(peer.ID) {
			return peers.Items[i].Status.TenantNamespace.Local
		}
	}
	t.Fatalf("%s has no peer %s", c.Name, peer.Name)
	return ""
}

// serveLiqosCharts serves Liqo's chart as its repository does, and returns the address.
func serveLiqosCharts(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	server := httptest.NewServer(http.FileServer(http.Dir(folder)))
	t.Cleanup(server.Close)
	for _, args := range [][]string{
		{"package", filepath.Join(fed.Broker.Lab.LiqoPath(), "chart"), "--version", "v0.9.4", "--app-version", "v0.9.4", "--destination", folder},
		{"repo", "index", folder, "--url", server.URL},
	} {
		if out, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "helm"), args...).CombinedOutput(); err != nil {
			t.Fatal(fmt.Errorf("helm %v: %w\n%s", args, err, out))
		}
	}
	return server.URL
}
