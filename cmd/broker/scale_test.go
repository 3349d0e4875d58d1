// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/httpapi"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/promquery"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/test/apiserver"
)

// BenchmarkDaemon runs the daemon on a real API server that has the objects of a
// federation. It reports what the daemon holds, and what it does when a provider
// becomes unready: one that nobody has chosen, and one that a policy has. A process
// takes one of the federations, because it has metrics for one daemon.
func BenchmarkDaemon(b *testing.B) {
	small := large
	small.providers, small.namespaces = 100, 100
	for _, f := range []federation{small, large} {
		b.Run(fmt.Sprint(f.providers), func(b *testing.B) {
			for b.Loop() {
				f.run(b).report(b)
			}
		})
	}
}

// report reports findings, and fails if the daemon holds too much.
func (got findings) report(b *testing.B) {
	b.Helper()
	b.ReportMetric(got.liveMiB, "live-MiB")
	b.ReportMetric(float64(got.concerned), "concerned")
	for name, work := range map[string]map[string]int{"stranger": got.stranger, "favourite": got.favourite} {
		for what, n := range work {
			b.ReportMetric(float64(n), name+":"+what)
		}
	}
	if got.liveMiB > mostMiB {
		b.Errorf("the daemon holds %.0f MiB, want at most %d", got.liveMiB, mostMiB)
	}
}

// TestProviderConcernsFew does the same on a small scale.
func TestProviderConcernsFew(t *testing.T) {
	got := federation{providers: 8, consumers: 2, namespaces: 6, pods: 2, chosen: 2, window: 10 * time.Second}.run(t)
	for what, most := range map[string]int{twinReconciles: 0, offloadingWrites: 0, reads: 0, registrationReads: 4} {
		if got.stranger[what] > most {
			t.Errorf("a provider that nobody has chosen: %s %d, want %d", what, got.stranger[what], most)
		}
	}
	// At once no new pods are placed there, and what the policy chooses instead may come with that or after it.
	if n := got.favourite[offloadingWrites]; n < got.concerned || n > 2*got.concerned || n == 0 {
		t.Errorf("a provider that a policy has chosen: %d writes for %d namespaces", n, got.concerned)
	}
	if n := got.favourite[reads]; n != 0 {
		t.Errorf("the daemon has read %d times what it watches", n)
	}
}

// What is counted.
const (
	reads             = "reads"
	registrationReads = "reads-of-webhooks"
	twinReconciles    = "twin-reconciles"
	offloadingWrites  = "writes-of-offloadings"
)

// findings are what a run has shown.
type findings struct {
	liveMiB float64
	// concerned is how many namespaces have selected the favourite.
	concerned int
	// stranger and favourite are what was done when the provider became unready that
	// nobody has chosen, and the one that was chosen for the most namespaces.
	stranger, favourite map[string]int
}

// run runs the daemon in a federation.
func (f federation) run(tb testing.TB) findings {
	tb.Helper()
	s := startServer(tb)
	f.populate(s)

	var got findings
	window := cmp.Or(f.window, 20*time.Second)
	before := live()
	stop := s.startDaemon()
	defer stop()
	s.await("all providers are ready", func() bool { return f.readyProviders(s) == f.providers })
	s.await("all namespaces are offloaded", func() bool { return len(s.offloadings()) == f.namespaces })
	f.playLiqo(s)
	s.await("all pods are counted", func() bool { return f.countedPods(s) == f.namespaces*f.pods })
	s.settle(window)
	got.liveMiB = (live() - before) / (1 << 20)

	selected := map[cluster.ID]int{}
	for _, o := range s.offloadings() {
		for _, id := range v09.OffloadingOf(&o).Selected {
			selected[id]++
		}
	}
	var stranger, favourite cluster.ID
	for n := range f.providers {
		id := f.provider(n).ID
		if selected[id] == 0 {
			stranger = id
		} else if selected[id] > selected[favourite] {
			favourite = id
		}
	}
	got.concerned = selected[favourite]
	if got.stranger = s.during(window, func() { f.breakNode(s, stranger) }); !isQuiet(got.stranger) {
		s.settle(window)
	}
	got.favourite = s.during(window, func() { f.breakNode(s, favourite) })
	return got
}

// server is an API server, a client of it, and what the daemon has asked of it.
type server struct {
	tb     testing.TB
	config *rest.Config
	client client.Client
	daemon *parts
	// as is who the daemon is; who has all rights if empty.
	as rest.ImpersonationConfig
	// inventory is where the daemon writes for other programs; nowhere if empty.
	inventory string
	// webhooks is where webhooks are served, if the API server asks there; anywhere if empty.
	webhooks string

	mu    sync.Mutex
	calls map[string]int
}

// startServer starts an API server with the CRDs of the broker and of Liqo, and of further folders. Nothing is logged from then on.
func startServer(tb testing.TB, kinds ...string) *server {
	tb.Helper()
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	return &server{tb: tb, config: apiserver.Start(tb, apiserver.Options{Kinds: kinds}).Config, calls: map[string]int{}}
}

// startDaemon starts the daemon and returns what stops it.
func (s *server) startDaemon() (stop func()) {
	config := rest.CopyConfig(s.config)
	config.Impersonate = s.as
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			s.count(r)
			return next.RoundTrip(r)
		})
	})
	b, err := newBroker(brokerConfig{
		options: options{
			orchestrator: true, anonymousToggle: true, liqoNamespace: liqo.DefaultNamespace, giveBackAfter: defaultGiveBackAfter,
			pluginAddress: "127.0.0.1:0", apiAddress: "127.0.0.1:0", webhookAddress: cmp.Or(s.webhooks, freeAddress(s.tb)),
			metricsAddress: "0", healthAddress: "0", inventoryNamespace: s.inventory, apiAudiences: []string{httpapi.Audience},
		},
		mapping: defaultMapping, rest: config, log: logr.Discard(), asker: promquery.None{},
	})
	if err != nil {
		s.tb.Fatalf("newBroker(): %v", err)
	}
	ctx, cancel := context.WithCancel(s.tb.Context())
	done := make(chan error, 1)
	go func() {
		err := b.run(ctx)
		cancel() // Nothing is to wait for a daemon that has ended.
		done <- err
	}()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			s.tb.Errorf("run(): %v", err)
		}
	}
	if s.daemon, err = b.parts.Synced(ctx); err != nil {
		stop()
		s.tb.FailNow()
	}
	return stop
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// count notes a call: a list, or what is written. Watches are not counted.
func (s *server) count(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Query().Has("watch"):
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/configmaps/"+remoteipam.DirectName):
		s.calls["reads-of-who-reaches-it"]++ // Of a lost provider, and not watched.
	case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/apis/admissionregistration.k8s.io/"):
		s.calls[registrationReads]++ // Every few seconds, whatever happens, and past the cache.
	case r.Method == http.MethodGet:
		s.calls[reads]++
	case strings.Contains(r.URL.Path, "/events"):
		s.calls["events"]++
	case strings.Contains(r.URL.Path, "/namespaceoffloadings"):
		s.calls[offloadingWrites]++
	default:
		s.calls["writes-of-"+path[3]]++
	}
}

// during returns the calls and the reconciliations from the beginning of a deed until the window has passed.
func (s *server) during(window time.Duration, do func()) map[string]int {
	s.forgetCalls()
	before := s.reconciled()
	do()
	s.pass(window)
	calls := s.forgetCalls()
	for controller, n := range s.reconciled() {
		calls[controller+"-reconciles"] = n - before[controller]
	}
	return calls
}

// forgetCalls returns the calls until now, and counts from zero.
func (s *server) forgetCalls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = map[string]int{}
	return calls
}

// reconciled returns how often each controller has reconciled something.
func (s *server) reconciled() map[string]int {
	families, err := metrics.Registry.Gather()
	if err != nil {
		s.tb.Fatalf("read the metrics: %v", err)
	}
	counts := map[string]int{}
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "controller" {
					counts[label.GetValue()] += int(m.GetCounter().GetValue())
				}
			}
		}
	}
	return counts
}

// pass lets time pass.
func (s *server) pass(d time.Duration) {
	select {
	case <-s.tb.Context().Done():
		s.tb.Fatal(s.tb.Context().Err())
	case <-time.After(d):
	}
}

// await waits for what the daemon is to reach.
func (s *server) await(what string, reached func() bool) {
	began := time.Now()
	for !reached() {
		if time.Since(began) > 30*time.Minute {
			s.tb.Fatalf("not within half an hour: %s", what)
		}
		s.pass(2 * time.Second)
	}
	s.tb.Logf("after %s: %s", time.Since(began).Round(time.Second), what)
}

// settle waits until the daemon has nothing to do for a while but to measure.
func (s *server) settle(window time.Duration) {
	s.await("only KPIs are measured", func() bool { return isQuiet(s.during(window, func() {})) })
}

// isQuiet reports whether nothing was done for namespaces.
func isQuiet(calls map[string]int) bool {
	return calls[twinReconciles] == 0 && calls[offloadingWrites] == 0
}

// each does something for the numbers below count, a few at a time.
func (s *server) each(count int, do func(n int) error) {
	group, _ := errgroup.WithContext(s.tb.Context())
	group.SetLimit(8)
	for n := range count {
		group.Go(func() error { return do(n) })
	}
	if err := group.Wait(); err != nil {
		s.tb.Fatal(err)
	}
}

// create makes an object, and writes its status.
func (s *server) create(object client.Object) error {
	return apiserver.Create(s.tb.Context(), s.client, object)
}

// populate makes what is there before the daemon starts.
func (f federation) populate(s *server) {
	config := rest.CopyConfig(s.config)
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: liqotest.Scheme(s.tb)})
	if err != nil {
		s.tb.Fatal(err)
	}
	s.client = c
	s.each(1, func(int) error {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: liqo.DefaultNamespace}}
		if err := c.Create(s.tb.Context(), namespace); err != nil {
			return err
		}
		return c.Create(s.tb.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: liqo.DefaultNamespace, Name: liqo.IdentityName},
			Data:       map[string]string{"CLUSTER_ID": "the-broker", "CLUSTER_NAME": "broker"},
		})
	})
	s.each(f.consumers, func(n int) error {
		if err := s.create(liqotest.Discovered(f.consumer(n), false)); err != nil {
			return err
		}
		return s.create(f.policy(n))
	})
	s.each(f.providers, func(n int) error {
		tenant := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.offer(n).Namespace}}
		if err := c.Create(s.tb.Context(), tenant); err != nil {
			return err
		}
		for _, object := range []client.Object{liqotest.Discovered(f.provider(n), true), f.offer(n), f.node(n), f.tunnel(n)} {
			if err := s.create(object); err != nil {
				return err
			}
		}
		return nil
	})
	s.each(f.namespaces, func(n int) error {
		if err := c.Create(s.tb.Context(), f.twin(n)); err != nil {
			return err
		}
		for pod := range f.pods {
			if err := c.Create(s.tb.Context(), f.shadow(n, pod)); err != nil {
				return err
			}
		}
		return nil
	})
	s.tb.Log("The API server has the objects")
}

// playLiqo makes the namespaces on the providers, and the pods.
func (f federation) playLiqo(s *server) {
	identities := map[cluster.ID]cluster.Identity{}
	for n := range f.providers {
		identities[f.provider(n).ID] = f.provider(n)
	}
	offloadings := map[string]v09.NamespaceOffloading{}
	for _, o := range s.offloadings() {
		offloadings[o.Namespace] = o
	}
	s.each(f.namespaces, func(n int) error {
		o := offloadings[f.namespace(n)]
		var selected []cluster.Identity
		for _, id := range v09.OffloadingOf(&o).Selected {
			selected = append(selected, identities[id])
		}
		var ns corev1.Namespace
		if err := s.client.Get(s.tb.Context(), client.ObjectKey{Name: o.Namespace}, &ns); err != nil {
			return err
		}
		// The daemon may change both meanwhile.
		ofNamespace, ofOffloading := client.MergeFrom(ns.DeepCopy()), client.MergeFrom(o.DeepCopy())
		putInForce(&ns, &o, selected)
		if err := s.client.Patch(s.tb.Context(), &ns, ofNamespace); err != nil {
			return err
		}
		if err := s.client.Status().Patch(s.tb.Context(), &o, ofOffloading); err != nil {
			return err
		}
		for pod := range f.pods {
			if err := s.create(f.pod(n, pod, selected)); err != nil {
				return err
			}
		}
		return nil
	})
	s.tb.Log("Liqo has made the pods")
}

// offloadings returns what the daemon knows of them. It is asked, and not the API
// server, which has enough to do.
func (s *server) offloadings() []v09.NamespaceOffloading {
	var list v09.NamespaceOffloadingList
	if err := s.daemon.mgr.GetClient().List(s.tb.Context(), &list); err != nil {
		s.tb.Fatal(err)
	}
	return list.Items
}

func (f federation) readyProviders(s *server) int {
	var list v1alpha1.ProviderList
	if err := s.daemon.mgr.GetClient().List(s.tb.Context(), &list); err != nil {
		s.tb.Fatal(err)
	}
	ready := 0
	for i := range list.Items {
		if meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, v1alpha1.ConditionReady) {
			ready++
		}
	}
	return ready
}

// countedPods returns how many pods the broker knows to be on the providers.
func (f federation) countedPods(s *server) int {
	var list v1alpha1.ConsumerList
	if err := s.daemon.mgr.GetClient().List(s.tb.Context(), &list); err != nil {
		s.tb.Fatal(err)
	}
	pods := int64(0)
	for i := range list.Items {
		pods += list.Items[i].Status.Used.Pods().Value()
	}
	return int(pods)
}

// breakNode makes the virtual node of a provider unready.
func (f federation) breakNode(s *server, provider cluster.ID) {
	var nodes corev1.NodeList
	if err := s.client.List(s.tb.Context(), &nodes, client.MatchingLabels{liqo.LabelRemoteClusterID: string(provider)}); err != nil {
		s.tb.Fatal(err)
	}
	for i := range nodes.Items {
		nodes.Items[i].Status.Conditions[0].Status = corev1.ConditionFalse
		if err := s.client.Status().Update(s.tb.Context(), &nodes.Items[i]); err != nil {
			s.tb.Fatal(err)
		}
	}
}

// freeAddress returns an address on the loopback interface that nobody listens on.
func freeAddress(tb testing.TB) string {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
