// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package ipamguard

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestRun changes the cluster step by step, and looks who may reach the IPAM.
func TestRun(t *testing.T) {
	api := fake.NewClientBuilder().WithObjects(
		namespace("tenant-a", "discovery.liqo.io/tenant-namespace"), namespace("tenant-b", "discovery.liqo.io/tenant-namespace"),
		namespace("twin", "liqo.io/remote-cluster-id"),
		kubelet("tenant-a", "vk", "10.0.0.3"),
		kubelet("twin", "disguised", "10.0.0.4"),
		pod("tenant-a", "other", "10.0.0.5"),
	).Build()
	objects := &objects{api: api}
	installed := make(chan []netip.Prefix)
	guard := New(objects, []netip.Prefix{netip.MustParsePrefix("10.9.0.0/24")}, func(sources []netip.Prefix) error {
		installed <- sources
		return nil
	}, logr.Discard())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- guard.Run(ctx) }()
	check := func(reason string, want ...string) {
		t.Helper()
		select {
		case sources := <-installed:
			var got []string
			for _, source := range sources {
				got = append(got, source.String())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: sources (-want +got):\n%s", reason, diff)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: nothing was installed", reason)
		}
	}

	check("virtual kubelets in tenant namespaces, and nobody else", "10.0.0.3/32", "10.9.0.0/24")

	must(t, api.Create(ctx, kubelet("tenant-b", "vk", "10.0.0.2")))
	objects.changed(t, &corev1.Pod{})
	check("a virtual kubelet more", "10.0.0.2/32", "10.0.0.3/32", "10.9.0.0/24")

	finished := kubelet("tenant-b", "finished", "10.0.0.7")
	finished.Status.Phase = corev1.PodFailed
	for _, created := range []*corev1.Pod{
		finished, kubelet("tenant-b", "starting", ""), kubelet("tenant-b", "six", "fd00::1"), pod("twin", "another", "10.0.0.6"),
	} {
		must(t, api.Create(ctx, created))
		objects.changed(t, created)
	}
	ending := kubelet("tenant-a", "vk", "10.0.0.3")
	ending.Finalizers = []string{"example.com/kept"}
	must(t, api.Update(ctx, ending), api.Delete(ctx, ending))
	objects.changed(t, ending)
	check("pods without an address of their own, which change nothing, and one that ends", "10.0.0.2/32", "10.9.0.0/24")

	must(t, api.Delete(ctx, namespace("tenant-b")))
	objects.changed(t, &corev1.Namespace{})
	check("a tenant namespace less", "10.9.0.0/24")

	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run at the end of its context: %v", err)
	}
}

// TestRunEmpty checks that a guard that starts again takes away what the one before it allowed, though nobody is allowed.
func TestRunEmpty(t *testing.T) {
	failure := errors.New("no nftables")
	calls := 0
	err := New(&objects{api: fake.NewClientBuilder().Build()}, nil, func(sources []netip.Prefix) error {
		calls++
		if len(sources) != 0 {
			t.Errorf("sources = %v, want none", sources)
		}
		return failure
	}, logr.Discard()).Run(t.Context())
	if calls != 1 || !errors.Is(err, failure) {
		t.Errorf("Run installed %d times and returned %v, want once and its failure", calls, err)
	}
}

// TestRunRenews checks that what was installed is installed again although nothing changes.
func TestRunRenews(t *testing.T) {
	guard := New(&objects{api: fake.NewClientBuilder().Build()}, nil, nil, logr.Discard())
	if guard.renew*3 > Lifetime {
		t.Errorf("renewed every %s, of what lives %s", guard.renew, Lifetime)
	}
	guard.renew = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	guard.install = func([]netip.Prefix) error {
		if calls++; calls == 3 {
			cancel()
		}
		return nil
	}
	if err := guard.Run(ctx); err != nil || calls < 3 {
		t.Errorf("installed %d times, %v", calls, err)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func namespace(name string, labels ...string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, label := range labels {
		n.Labels[label] = "true"
	}
	return n
}

func pod(namespace, name, address string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address},
	}
}

// kubelet returns a pod with the labels that Liqo v0.9.4 gives to virtual kubelets.
func kubelet(namespace, name, address string) *corev1.Pod {
	p := pod(namespace, name, address)
	p.Labels = map[string]string{
		"app.kubernetes.io/name": "virtual-kubelet", "app.kubernetes.io/instance": "virtual-kubelet",
		"app.kubernetes.io/managed-by": "advertisementoperator", "app.kubernetes.io/component": "virtual-kubelet",
		"app.kubernetes.io/part-of": "liqo", "discovery.liqo.io/virtual-node": "liqo-" + name,
	}
	return p
}

// objects are a cache of what a client holds.
type objects struct {
	informertest.FakeInformers

	api client.Client
}

// List implements cache.Cache.
func (o *objects) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return o.api.List(ctx, list, options...)
}

// changed tells those who watch objects of a kind that one of them changed.
func (o *objects) changed(t *testing.T, kind client.Object) {
	t.Helper()
	informer, err := o.FakeInformerFor(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	informer.Update(kind, kind)
}
