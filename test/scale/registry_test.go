// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store/postgrestest"
)

// The goals: how long a change takes to be seen by all but one in a hundred, and a query; how long a restart takes, and the memory in MiB.
const (
	goalSeen, goalQuery, goalRestart = time.Second, 50 * time.Millisecond, 5 * time.Second
	goalRegistry, goalConnector      = 256, 96
)

const (
	// bursts is how often many offers change at once.
	bursts = 3
	// askers is how many ask at the same time.
	askers = 8
	// rounds is how often one asks alone what each of them asks.
	rounds = 4
	// restarts is how often the registry is killed.
	restarts = 3
)

// TestRegistry measures the registry on SQLite and on PostgreSQL.
func TestRegistry(t *testing.T) {
	program(t, "registry")
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // A thousand watchers are this process: their garbage is not to be measured.
	for _, store := range []struct {
		name string
		dsn  func(*testing.T) string
	}{
		{"SQLite", func(t *testing.T) string { t.Helper(); return "sqlite:" + filepath.Join(t.TempDir(), "registry.db") }},
		{"PostgreSQL", func(t *testing.T) string { t.Helper(); return postgrestest.Start(t).Database(t) }},
	} {
		t.Run(store.name, func(t *testing.T) {
			s := sized(t)
			m := &measurement{t: t}
			m.table.value("offers, parties, watchers", fmt.Sprintf("%d, %d, %d", s.parties*s.offersEach, s.parties, s.watchers))
			m.run(s, store.dsn(t))
			t.Logf("the registry on %s:\n%s", store.name, &m.table)
		})
	}
}

// measurement is what is found out about one registry.
type measurement struct {
	t     *testing.T
	table table
}

// atMost notes that a goal is missed.
func (m *measurement) atMost(what string, got, goal time.Duration) {
	m.t.Helper()
	if got > goal {
		m.t.Errorf("%s: %s, want at most %s", what, milliseconds(got), milliseconds(goal))
	}
}

// resident notes the most memory that a process had.
func (m *measurement) resident(what string, p *process, goal float64) {
	m.t.Helper()
	most := p.memory("VmHWM")
	m.table.value(what, fmt.Sprintf("%s, at the end %s", mebibytes(most), mebibytes(p.memory("VmRSS"))))
	if most > goal {
		m.t.Errorf("%s: %s, want at most %s", what, mebibytes(most), mebibytes(goal))
	}
}

// parts notes what the memory of a registry is at the moment.
func (m *measurement) parts(r *registry) {
	m.t.Helper()
	m.table.value("... at the end: objects of the heap, and room between them", mebibytes(r.metric("go_memstats_heap_alloc_bytes"))+", "+
		mebibytes(r.metric("go_memstats_heap_inuse_bytes")-r.metric("go_memstats_heap_alloc_bytes")))
	m.table.value("... free pages that are kept, stacks, the program's file",
		mebibytes(r.metric("go_memstats_heap_idle_bytes")-r.metric("go_memstats_heap_released_bytes"))+
			", "+mebibytes(r.metric("go_memstats_stack_inuse_bytes"))+", "+mebibytes(r.memory("RssFile")))
}

func (m *measurement) run(s size, dsn string) {
	m.t.Helper()
	m.table.value("processors of the machine, and those that others use before this begins",
		fmt.Sprintf("%d, %.1f", runtime.NumCPU(), others(m.t)))
	r := newRegistry(m.t, dsn)
	c, filled := newCrowd(m.t, s, r)
	m.table.value("all parties enrol and publish all offers, 48 at a time", fmt.Sprintf("%.1f s", filled.Seconds()))
	servingtest.Run(m.t, c.renew)

	// Watchers.
	changes := s.single + bursts*s.burst + 1
	a := newAudience(c, changes)
	after, whole, bytes := a.position(m.t)
	m.table.value(fmt.Sprintf("one watcher reads all, %d MiB", bytes>>20), milliseconds(whole))
	attached := a.attach(m.t, after)
	m.table.value("all watchers connect, and go on where the registry is", fmt.Sprintf("%.1f s", attached.Seconds()))
	a.attachWhole(m.t)

	// Changes.
	before := r.processor()
	answers, seen, verified := a.oneByOne(m.t, 0, s.single)
	m.table.times("an offer changes, until the registry answers", answers, (r.processor()-before)/time.Duration(s.single))
	m.table.times("an offer changes, until a watcher sees it", seen, 0)
	m.table.times("an offer changes, until a connector's client has verified it", verified, 0)
	m.atMost("a change is seen, p99", seen.percentile(99), goalSeen)
	answers, seen, verified = nil, nil, nil
	before = r.processor()
	for b := range bursts {
		from := s.single + b*s.burst
		answer, all, some := a.atOnce(m.t, from, from+s.burst)
		answers, seen, verified = append(answers, answer...), append(seen, all...), append(verified, some...)
	}
	what := fmt.Sprintf("%d offers change at once", s.burst)
	m.table.times(what+", until the registry answers", answers, (r.processor()-before)/time.Duration(bursts*s.burst))
	m.table.times(what+", until a watcher sees it", seen, 0)
	m.table.times(what+", until a connector's client has verified it", verified, 0)

	// Queries.
	for _, q := range queries() {
		before := r.processor()
		asked := c.ask(m.t, q, askers)
		m.table.times(fmt.Sprintf("query by %d at once: %s", askers, q.name), asked, (r.processor()-before)/time.Duration(len(asked)))
		if !q.dear {
			m.atMost("query "+q.name+", p99", asked.percentile(99), goalQuery)
		}
	}
	for _, q := range queries() {
		var asked took
		for range rounds {
			asked = append(asked, c.ask(m.t, q, 1)...)
		}
		m.table.times("query by one client alone: "+q.name, asked, 0)
		m.atMost("query "+q.name+" by one client, p99", asked.percentile(99), goalQuery)
	}
	m.resident("memory of the registry, all of this", r.process, goalRegistry)
	m.parts(r)

	// Restarts.
	var ready, listed took
	for range restarts {
		r.kill()
		began := time.Now()
		ready = append(ready, r.serve())
		if err := ask(c.asker(0), c.url(query{})); err != nil {
			m.t.Fatal(err)
		}
		listed = append(listed, time.Since(began))
	}
	m.table.times("killed and started, until it is ready", ready, 0)
	m.table.times("killed and started, until a list is answered", listed, 0)
	m.atMost("restart, until a list is answered", listed.percentile(100), goalRestart)
	m.resident("memory of the registry after a restart, nobody watches", r.process, goalRegistry)
	attached = a.attach(m.t, "")
	m.table.value("all watchers connect again, and go on where they were", fmt.Sprintf("%.1f s", attached.Seconds()))
	_, seen, _ = a.oneByOne(m.t, changes-1, changes)
	m.table.times("then an offer changes, until a watcher sees it", seen, 0)
	m.resident("memory of the registry after a restart, all watch again", r.process, goalRegistry)
}

// query is what is asked for.
type query struct {
	name   string
	filter url.Values
	// dear is whether an expression is evaluated for every plan there is, tens of thousands of times: several at once wait for each other as
	// they are many for the processors that there are, and only one is measured against the goal.
	dear bool
}

// queries are all kinds of queries, each for a hundred offers at most, as the API answers if nothing else is asked for.
func queries() []query {
	expression := `plan.resources["cpu"] >= 8.0 && plan.pricePerHour < 0.11 && offer.labels["example.org/tier"] == "standard"`
	return []query{
		{name: "size", filter: url.Values{"resource": {"cpu=8", "memory=32Gi"}}},
		{name: "price", filter: url.Values{"maxPrice": {"0.0210"}, "currency": {"EUR"}}},
		{name: "region", filter: url.Values{"region": {"us-west"}}},
		{name: "CEL", filter: url.Values{"expression": {expression}}},
		{
			name:   "CEL, of all 10,000 offers none passes",
			filter: url.Values{"expression": {`plan.resources["cpu"] >= 8.0 && offer.name == "nobody's"`}}, dear: true,
		},
		{name: "size, price, region and CEL", filter: url.Values{
			"resource": {"cpu=8", "memory=32Gi"}, "maxPrice": {"0.2200"}, "currency": {"EUR"}, "region": {"us-west"}, "expression": {expression},
		}},
	}
}

// url returns where a query is asked.
func (c *crowd) url(q query) string {
	return "https://" + c.registry.address + registryv1.Base + registryv1.PathOffers + "?" + q.filter.Encode()
}

// asker returns a client of its own of a party.
func (c *crowd) asker(n int) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: registrytest.TLS(c.members[n%len(c.members)].Key, c.registry.fingerprint)}}
}

// ask asks once, and reads the answer.
func ask(by *http.Client, at string) error {
	answer, err := by.Get(at)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		return fmt.Errorf("%s: %s: %s", at, answer.Status, text)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// ask has several clients ask the same at the same time, again and again, and returns how long each answer took.
func (c *crowd) ask(tb testing.TB, q query, clients int) took {
	tb.Helper()
	var mu sync.Mutex
	var all took
	group, _ := errgroup.WithContext(context.WithoutCancel(tb.Context()))
	for n := range clients {
		group.Go(func() error {
			by := c.asker(n)
			defer by.CloseIdleConnections()
			if err := ask(by, "https://"+c.registry.address+registryv1.Base+registryv1.PathRegistry); err != nil { // It connects.
				return err
			}
			var mine took
			for range c.queries {
				began := time.Now()
				if err := ask(by, c.url(q)); err != nil {
					return err
				}
				mine = append(mine, time.Since(began))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		tb.Fatal(err)
	}
	return all
}
