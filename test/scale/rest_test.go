// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/identity"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
)

// The goals: the memory of a seller in MiB, which is the limit of deploy/connector; how long a look takes for all but one in a hundred;
// what an idle contract costs the API server, in requests in a minute; and how long it takes until all clusters have their grants after
// Liqo has begun again.
const (
	goalSeller   = 128
	goalLook     = 250 * time.Millisecond
	goalRequests = 0.2
	goalGrants   = 10 * time.Second
)

const (
	// lookEvery is how often a buyer looks at a contract whose cluster it uses, as package purchases has it.
	lookEvery = 30 * time.Second
	// nothingFor and restFor are how long a seller is watched without contracts, and with all of them at rest.
	nothingFor, restFor = time.Minute, 3 * time.Minute
	// grantsWithin bounds how long Liqo asks before the test gives up.
	grantsWithin = 5 * time.Minute
)

// TestRest measures a seller, on a real API server, all of whose contracts are active and about which nothing happens: their buyers look at
// them and wait for a change, each over its own connection. Then Liqo's controller manager begins again, and asks for the grants of all.
func TestRest(t *testing.T) {
	program(t, "connector")
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // All buyers are this process: their garbage is not to be measured.
	s := sized(t)
	k := startKubernetes(t)
	m := &measurement{t: t}
	m.table.value("processors of the machine, and those that others use before this begins",
		fmt.Sprintf("%d, %.1f", runtime.NumCPU(), others(t)))
	m.table.value("contracts, each of a buyer and a cluster of its own", fmt.Sprint(s.contracts))
	r := newSeller(t, k)

	// Without contracts.
	p, _ := r.start()
	k.measure(m, "a seller without contracts", p, goalSeller)
	_, nothing := k.requests(nothingFor)
	p.kill()

	// With all of them.
	r.sell(s.contracts)
	p, took := r.start()
	m.table.value("started with all contracts, until it is ready", fmt.Sprintf("%.1f s", took.Seconds()))
	began, before := time.Now(), p.processor()
	k.calm(nothing)
	m.table.value("... until it asks the API server no more than without contracts, and of a processor",
		fmt.Sprintf("%.1f s, %.1f s", time.Since(began).Seconds(), (p.processor()-before).Seconds()))
	k.measure(m, "with all contracts, of which nobody asks", p, goalSeller)

	// Buyers look.
	servingtest.Run(t, r.look)
	time.Sleep(2 * lookEvery) // All have connected.
	r.looks.take()
	before = p.processor()
	most, rest := k.requests(restFor)
	found := m.seen(r, "a buyer looks at its contract")
	m.table.value("... processor, for each look and what belongs to it",
		milliseconds((p.processor()-before)/time.Duration(max(len(found.took), 1))))
	m.table.value("... waits for a change, and those that were refused because too many wait",
		fmt.Sprintf("%d, %d", found.waits, found.refused))
	m.atMost("a look, p99", found.took.percentile(99), goalLook)
	if least := s.contracts * int(restFor/lookEvery) / 2; len(found.took) < least {
		t.Errorf("there were %d looks, want at least %d", len(found.took), least)
	}
	m.table.value("requests to the API server in a minute: without contracts, and with all at rest", fmt.Sprintf("%.0f, %.0f", nothing, rest))
	each := (rest - nothing) / float64(s.contracts)
	m.table.value("... for each contract", fmt.Sprintf("%.3f", each))
	if each > goalRequests {
		t.Errorf("an idle contract makes %.2f requests to the API server in a minute, want at most %.2f: most are %s", each, goalRequests, most)
	}
	k.measure(m, "with all contracts, and all buyers waiting", p, goalSeller)

	// Liqo begins again.
	for range restarts {
		m.liqo(r)
	}
	m.seen(r, "... a look meanwhile")
	k.measure(m, "after all of this", p, goalSeller)
	t.Logf("the seller:\n%s", &m.table)
}

// seen notes how long the looks took since the last time, none of which may have failed.
func (m *measurement) seen(r *seller, what string) seen {
	m.t.Helper()
	found := r.looks.take()
	m.table.times(what, found.took, 0)
	if len(found.failed) > 0 {
		m.t.Errorf("%s: %d looks and waits failed, as: %v", what, len(found.failed), found.failed[0])
	}
	return found
}

// seller is the cluster of a connector that sells.
type seller struct {
	*kubernetes

	identity        identity.Identity
	address, plugin string
	all             []*sold
	clients         []*negotiation.Client
	looks           looks
}

func newSeller(tb testing.TB, k *kubernetes) *seller {
	tb.Helper()
	of, err := identity.Load(tb.Context(), k, namespace)
	if err != nil {
		tb.Fatal(err)
	}
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: liqo.DefaultNamespace, Name: v09.AuthTokenName},
		Data:       map[string][]byte{"token": []byte("first")},
	}
	if err := k.Create(tb.Context(), token); err != nil {
		tb.Fatal(err)
	}
	return &seller{kubernetes: k, identity: of, address: free(tb), plugin: free(tb)}
}

// start starts the connector, and returns how long it takes until buyers are answered.
func (r *seller) start() (*process, time.Duration) {
	r.t.Helper()
	began := time.Now()
	p := r.startConnector("--address="+r.address, "--endpoint=https://"+r.address, "--resource-plugin-address="+r.plugin,
		"--resource-plugin-allow=127.0.0.0/8")
	p.await("http://"+r.health+"/readyz", began)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		conn, err := (&net.Dialer{}).DialContext(r.t.Context(), "tcp", r.address)
		if err == nil {
			conn.Close()
			return p, time.Since(began)
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("buyers are not answered: %v", err)
		}
	}
}

// sell makes contracts, and puts into the cluster what the connector and Liqo would have written.
func (r *seller) sell(contracts int) {
	r.t.Helper()
	n := newNotary(r.t, r.identity)
	books := &connectorv1alpha1.SalesLedger{ObjectMeta: metav1.ObjectMeta{Name: connectorv1alpha1.LedgerName}}
	group, ctx := errgroup.WithContext(r.t.Context())
	group.SetLimit(atOnce)
	for i := range contracts {
		s := n.sell(i)
		r.all = append(r.all, s)
		r.clients = append(r.clients, n.client(s.buyer, "https://"+r.address))
		books.Holds = append(books.Holds, s.holds...)
		group.Go(func() error {
			for _, o := range []client.Object{liqotest.TenantNamespace(s.cluster), s.sale, s.foreign, s.tunnel} {
				if err := r.copy(ctx, o); err != nil {
					return err
				}
			}
			return nil
		})
	}
	slices.SortFunc(books.Holds, func(a, b connectorv1alpha1.SalesHold) int {
		return cmp.Or(cmp.Compare(a.Buyer, b.Buyer), cmp.Compare(a.ContractID, b.ContractID))
	})
	if err := errors.Join(group.Wait(), r.Create(r.t.Context(), books)); err != nil {
		r.t.Fatal(err)
	}
}

// copy makes an object as it is elsewhere, with its status.
func (k *kubernetes) copy(ctx context.Context, o client.Object) error {
	o.SetResourceVersion("")
	o.SetUID("")
	full, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", o)
	}
	if err := k.Create(ctx, o); err != nil {
		return err
	}
	full.SetResourceVersion(o.GetResourceVersion())
	full.SetUID(o.GetUID())
	return k.Status().Update(ctx, full)
}

// looks are what came of looks, and of waits for a change. It can be used concurrently.
type looks struct {
	mu    sync.Mutex
	since seen
}

// seen is how long looks took, how many waits began, and how many of them were refused because too many wait already; and what has failed.
type seen struct {
	took           took
	waits, refused int
	failed         []error
}

// take returns what has come since the last time.
func (l *looks) take() seen {
	l.mu.Lock()
	defer l.mu.Unlock()
	since := l.since
	l.since = seen{}
	return since
}

// note adds to what has come.
func (l *looks) note(add func(*seen)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	add(&l.since)
}

// look has all buyers look at their contracts until ctx ends, which is no error. They do not begin at the same time.
func (r *seller) look(ctx context.Context) error {
	var group sync.WaitGroup
	for i, s := range r.all {
		group.Go(func() {
			if sleep(ctx, time.Duration(i)*lookEvery/time.Duration(len(r.all))) {
				r.keep(ctx, s, r.clients[i])
			}
		})
	}
	group.Wait()
	return nil
}

// keep has one buyer look at its contract again and again, and wait for a change meanwhile, as package purchases does: a look ends the wait
// before it.
func (r *seller) keep(ctx context.Context, s *sold, c *negotiation.Client) {
	for ctx.Err() == nil {
		began := time.Now()
		view, err := c.Get(ctx, s.view.Key.ID, s.view.Version, 0)
		lasted := time.Since(began)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && (view.State != contract.Active || view.Version != s.view.Version):
			err = fmt.Errorf("contract %s is %s, version %d, want %d", s.view.Key, view.State, view.Version, s.view.Version)
		}
		r.looks.note(func(all *seen) {
			if err != nil {
				all.failed = append(all.failed, err)
			} else {
				all.took = append(all.took, lasted)
			}
		})
		waiting, stop := context.WithDeadline(ctx, began.Add(lookEvery))
		r.wait(waiting, s, c)
		stop()
	}
}

// wait has a buyer wait for a change of its contract until ctx ends. One that is refused, because too many wait, waits no more until it has
// looked again.
func (r *seller) wait(ctx context.Context, s *sold, c *negotiation.Client) {
	for ctx.Err() == nil {
		r.looks.note(func(all *seen) { all.waits++ })
		_, err := c.Get(ctx, s.view.Key.ID, s.view.Version, negotiation.MaxWait)
		pause := time.Second
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, negotiation.ErrTooMany):
			pause = lookEvery
			r.looks.note(func(all *seen) { all.refused++ })
		default:
			r.looks.note(func(all *seen) { all.failed = append(all.failed, err) })
		}
		sleep(ctx, pause)
	}
}

// sleep waits, and reports false if ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// liqo has Liqo's controller manager begin: it subscribes, and asks for each cluster that requests resources, one after another, and again
// for those of which it is notified by name (liqo/pkg/liqo-controller-manager/resource-request-controller@v0.9.4).
func (m *measurement) liqo(r *seller) {
	m.t.Helper()
	conn, err := grpc.NewClient("passthrough:"+r.plugin, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		m.t.Fatal(err)
	}
	defer conn.Close()
	asks := liqotest.NewResourceReaderClient(conn)
	ctx, cancel := context.WithTimeout(m.t.Context(), grantsWithin)
	defer cancel()
	queue := workqueue.NewTyped[cluster.ID]()
	defer context.AfterFunc(ctx, queue.ShutDown)()
	began := time.Now()
	var subscribed sync.WaitGroup
	defer subscribed.Wait()
	defer cancel()
	var mu sync.Mutex
	named := map[cluster.ID]bool{}
	subscribed.Go(func() {
		err := asks.Subscribe(ctx, func(id cluster.ID) error {
			if id != "" { // It knows of none yet that it could ask for again.
				mu.Lock()
				named[id] = true
				mu.Unlock()
				queue.Add(id)
			}
			return nil
		})
		if ctx.Err() == nil {
			m.t.Errorf("the subscription ends: %v", err)
		}
	})
	for _, s := range r.all {
		queue.Add(s.cluster.ID)
	}
	answered, again := map[cluster.ID]bool{}, map[cluster.ID]bool{}
	first := time.Duration(0)
	for len(again) < len(r.all) {
		id, ended := queue.Get()
		if ended {
			m.t.Errorf("after %s, %d of %d clusters have their grants, and %d were asked for again", grantsWithin, len(answered),
				len(r.all), len(again))
			return
		}
		mu.Lock()
		is := named[id]
		mu.Unlock()
		pools, err := asks.Read(ctx, id)
		switch {
		case err != nil && ctx.Err() == nil:
			m.t.Fatalf("ask for cluster %s: %v", id, err)
		case err == nil && (len(pools) != 1 || pools[0].Resources.Cpu().Value() != soldCores):
			m.t.Fatalf("cluster %s is granted %v", id, pools)
		}
		if answered[id] = true; first == 0 && len(answered) == len(r.all) {
			first = time.Since(began)
		}
		if is {
			again[id] = true
		}
		queue.Done(id)
	}
	m.table.value("Liqo begins again, until all clusters have their grants", fmt.Sprintf("%.1f s", first.Seconds()))
	m.table.value("... and until it has asked for each again, as it is notified to", fmt.Sprintf("%.1f s", time.Since(began).Seconds()))
	m.atMost("Liqo begins again, until all clusters have their grants", first, goalGrants)
}

// requests returns how many requests the connector makes in a minute, as seen for a while, and what most of them are.
func (k *kubernetes) requests(while time.Duration) (most string, perMinute float64) {
	k.t.Helper()
	k.asked()
	time.Sleep(while)
	all, sum := k.asked(), 0
	for _, n := range all {
		sum += n
	}
	kinds := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Or(all[b]-all[a], strings.Compare(a, b)) })
	for i, kind := range kinds[:min(len(kinds), 5)] {
		kinds[i] = fmt.Sprintf("%d %s", all[kind], kind)
	}
	return strings.Join(kinds[:min(len(kinds), 5)], ", "), float64(sum) / while.Minutes()
}

// calm waits until the connector makes about as many requests in a minute as it does of itself.
func (k *kubernetes) calm(itself float64) {
	k.t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); ; {
		most, perMinute := k.requests(5 * time.Second)
		if perMinute <= 2*itself {
			return
		}
		if time.Now().After(deadline) {
			k.t.Fatalf("after ten minutes the connector still makes %.0f requests in a minute: most are %s", perMinute, most)
		}
	}
}
