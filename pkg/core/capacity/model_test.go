// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
)

// world is a broker with its providers and consumers, in milli-CPU. What in a real
// one takes time is two steps here, between which any others may come: an offer is
// counted and then told, a pod is asked for and then bound.
type world struct {
	rnd       *rand.Rand
	providers []*modelProvider
	consumers []*modelConsumer
	steps     map[string]int
	// switching lets consumers change between one node and one per provider.
	switching bool
}

type modelProvider struct {
	id     cluster.ID
	has    int64
	offers Offers
}

type modelConsumer struct {
	id    cluster.ID
	terms Terms
	// perProvider tells that the consumer is to have a node of each provider, and
	// known are the nodes that it has: they stay.
	perProvider bool
	known       map[cluster.ID]bool
	// counted are offers on their way, and told is the one that arrived last: for
	// the node of each provider, and for the one of all under an empty ID.
	counted []map[cluster.ID]int64
	told    map[cluster.ID]int64
	pods    []*modelPod
}

type modelPod struct {
	cpu  int64
	node cluster.ID     // The provider that it must go to, or empty.
	on   *modelProvider // Nil while it waits.
}

func milli(n int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(n, resource.DecimalSI)}
}

func cpu(l corev1.ResourceList) int64 { return l.Cpu().MilliValue() }

func newWorld(seed uint64, terms ...Terms) *world {
	w := &world{rnd: rand.New(rand.NewPCG(seed, 1)), steps: map[string]int{}}
	for i := range 4 {
		w.providers = append(w.providers, &modelProvider{id: cluster.ID(fmt.Sprint("p", i)), has: 4000, offers: OffersAll})
	}
	for i, t := range terms {
		w.consumers = append(w.consumers, &modelConsumer{id: cluster.ID(fmt.Sprint("c", i)), terms: t, known: map[cluster.ID]bool{}})
	}
	// One cluster is both.
	w.providers[0].id = w.consumers[0].id
	return w
}

// snap is what the broker counts at this moment; a restart makes no difference,
// because it has no other memory.
func (w *world) snap() *Snapshot {
	accounts, terms, nodes := map[cluster.ID]Account{}, map[cluster.ID]Terms{}, map[cluster.ID][]Node{}
	for _, p := range w.providers {
		accounts[p.id] = Account{Capacity: milli(p.has), Offers: p.offers, Used: map[cluster.ID]corev1.ResourceList{}}
	}
	for _, c := range w.consumers {
		terms[c.id] = c.terms
		for _, pod := range c.pods {
			if pod.on == nil {
				continue
			}
			used := accounts[pod.on.id].Used
			if used[c.id] == nil {
				used[c.id] = corev1.ResourceList{}
			}
			resources.Add(used[c.id], milli(pod.cpu))
		}
	}
	for _, c := range w.consumers {
		nodes[c.id] = w.nodesOf(c)
	}
	return NewSnapshot(accounts, terms, nodes, nil)
}

// nodesOf returns the nodes that a consumer has or is to have: those that it was
// told of stay, and are closed if it is not to have them.
func (w *world) nodesOf(c *modelConsumer) []Node {
	nodes := []Node{{Open: !c.perProvider, Used: milli(c.uses(""))}}
	for _, p := range w.providers {
		if c.known[p.id] || c.perProvider && p.offers == OffersAll && p.id != c.id {
			nodes = append(nodes, Node{Name: string(p.id), Provider: p.id, Open: c.perProvider, Used: milli(c.uses(p.id))})
		}
	}
	return nodes
}

// uses returns what is bound of a consumer's pods on a node.
func (c *modelConsumer) uses(node cluster.ID) int64 {
	var sum int64
	for _, pod := range c.pods {
		if pod.on != nil && pod.node == node {
			sum += pod.cpu
		}
	}
	return sum
}

// toldOfAll returns what a consumer was told of in sum, or has asked for beyond.
func (c *modelConsumer) toldOfAll() int64 {
	var sum int64
	for _, node := range c.nodesTold() {
		sum += max(c.told[node], c.asked(node))
	}
	return sum
}

// nodesTold returns the nodes that a consumer has, in order.
func (c *modelConsumer) nodesTold() []cluster.ID {
	nodes := slices.Collect(maps.Keys(c.told))
	slices.Sort(nodes)
	return nodes
}

// bound returns what is bound to a provider.
func (w *world) bound(p *modelProvider) int64 {
	var sum int64
	for _, c := range w.consumers {
		for _, pod := range c.pods {
			if pod.on == p {
				sum += pod.cpu
			}
		}
	}
	return sum
}

// asked returns what a consumer has asked for on a node, bound or not.
func (c *modelConsumer) asked(node cluster.ID) int64 {
	var sum int64
	for _, pod := range c.pods {
		if pod.node == node {
			sum += pod.cpu
		}
	}
	return sum
}

// step does one thing at random.
func (w *world) step(changeProviders bool) {
	c := w.consumers[w.rnd.IntN(len(w.consumers))]
	p := w.providers[w.rnd.IntN(len(w.providers))]
	what := "nothing"
	switch n := w.rnd.IntN(100); {
	case n < 20: // The broker counts.
		what = "count"
		counted := map[cluster.ID]int64{}
		for _, pool := range w.snap().NodeOffers(c.id) {
			counted[pool.Provider] = cpu(pool.Offered)
		}
		c.counted = append(c.counted, counted)
	case n < 40: // An offer arrives: the last one, as Liqo reads it when it writes it.
		if len(c.counted) > 0 {
			what = "tell"
			c.told, c.counted = c.counted[len(c.counted)-1], nil
			for node := range c.told {
				c.known[node] = node != ""
			}
		}
	case n < 60: // A pod is asked for, if it fits a node: the consumer's scheduler sees to it.
		nodes := c.nodesTold()
		if len(nodes) == 0 {
			break
		}
		node := nodes[w.rnd.IntN(len(nodes))]
		if size := 100 * (1 + w.rnd.Int64N(20)); c.asked(node)+size <= c.told[node] {
			what = "ask"
			c.pods = append(c.pods, &modelPod{cpu: size, node: node})
		}
	case n < 80: // The broker's scheduler binds a pod, if it fits the virtual node.
		for _, pod := range c.pods {
			if pod.on == nil && (pod.node == "" || pod.node == p.id) && p.offers == OffersAll && p.id != c.id && w.bound(p)+pod.cpu <= p.has {
				what = "bind"
				pod.on = p
				break
			}
		}
	case n < 92: // A pod ends.
		if len(c.pods) > 0 {
			what = "end"
			i := w.rnd.IntN(len(c.pods))
			c.pods = append(c.pods[:i], c.pods[i+1:]...)
		}
	case n < 94 && w.switching:
		what = "switch"
		c.perProvider = !c.perProvider
	case n < 96 && changeProviders:
		what = "toggle"
		p.offers = (p.offers + 1 + Offers(w.rnd.IntN(2))) % 3
	case n < 98 && changeProviders:
		what = "change"
		p.has = w.rnd.Int64N(6000)
	case n < 99: // The broker restarts: what was on its way is lost.
		what = "restart"
		for _, c := range w.consumers {
			c.counted = nil
		}
	}
	w.steps[what]++
}

const modelSteps = 10_000

// TestModel takes random steps, and checks each time what the offers promise.
func TestModel(t *testing.T) {
	w := newWorld(1,
		Terms{Share: 100},
		Terms{Reserved: milli(3000), Share: 100},
		Terms{Limit: milli(5000), Share: 100},
		Terms{Reserved: milli(1000), Limit: milli(4000), Share: 50},
	)
	w.switching = true
	for n := range modelSteps {
		before := make([]int64, len(w.providers))
		for i, p := range w.providers {
			before[i] = w.bound(p)
		}
		w.step(true)
		for i, p := range w.providers {
			if is := w.bound(p); is > before[i] && is > p.has {
				t.Fatalf("step %d: %d m bound to %s, which has %d m", n, is, p.id, p.has)
			}
		}
		snap := w.snap()
		for _, c := range w.consumers {
			checkOffer(t, n, w, snap, c)
			checkPools(t, n, w, snap, c)
		}
		if t.Failed() {
			return
		}
	}
	for _, what := range []string{"count", "tell", "ask", "bind", "end", "switch", "toggle", "change", "restart"} {
		if w.steps[what] < modelSteps/200 {
			t.Errorf("only %d steps were %q: the test does not try it", w.steps[what], what)
		}
	}
}

// checkOffer counts again, in the simplest way, what a consumer may be offered.
func checkOffer(t *testing.T, n int, w *world, snap *Snapshot, c *modelConsumer) {
	t.Helper()
	var own, room, kept int64
	for _, p := range w.providers {
		var mine int64
		for _, pod := range c.pods {
			if pod.on == p {
				mine += pod.cpu
			}
		}
		own += mine
		has := map[Offers]int64{OffersAll: p.has, OffersUsed: min(p.has, w.bound(p))}[p.offers]
		if p.id != c.id {
			room += max(0, has-(w.bound(p)-mine))
		}
	}
	for _, other := range w.consumers {
		if other != c {
			kept += max(0, cpu(other.terms.Reserved)-cpu(snap.Used(other.id)))
		}
	}
	most := max(own, room-kept)
	if limit, ok := c.terms.Limit[corev1.ResourceCPU]; ok {
		most = min(most, limit.MilliValue())
	}
	got := cpu(snap.Offered(c.id))
	switch {
	case got < 0 || got > most:
		t.Errorf("step %d: %s is offered %d m, and may be offered at most %d m", n, c.id, got, most)
	case c.terms.Share == Whole && got != most:
		t.Errorf("step %d: %s is offered %d m instead of %d m", n, c.id, got, most)
	case got < min(own, most):
		t.Errorf("step %d: %s is offered %d m and uses %d m", n, c.id, got, own)
	}
}

// checkPools counts again what a consumer may be offered on each of its nodes.
func checkPools(t *testing.T, n int, w *world, snap *Snapshot, c *modelConsumer) {
	t.Helper()
	total, used := cpu(snap.Offered(c.id)), cpu(snap.Used(c.id))
	nodes, pools := w.nodesOf(c), snap.NodeOffers(c.id)
	var sum, room int64
	for i, node := range nodes {
		got, kept, free := cpu(pools[i].Offered), cpu(node.Used), int64(0)
		for _, p := range w.providers {
			if node.Open && p.offers == OffersAll && p.id != c.id && (node.Provider == "" || node.Provider == p.id) {
				free += max(0, p.has-w.bound(p))
			}
		}
		sum += got
		room += free
		switch {
		case got > kept+free:
			t.Errorf("step %d: node %q of %s has %d m, of which %d m are used and %d m free", n, node.Name, c.id, got, kept, free)
		case total >= used && got < kept:
			t.Errorf("step %d: node %q of %s has %d m, and uses %d m", n, node.Name, c.id, got, kept)
		case !node.Open && total >= used && got != kept:
			t.Errorf("step %d: the closed node %q of %s has %d m, and uses %d m", n, node.Name, c.id, got, kept)
		}
	}
	const rounding = 5 // One thousandth for each node.
	switch {
	case sum > total:
		t.Errorf("step %d: the nodes of %s have %d m, and it is offered %d m", n, c.id, sum, total)
	case total >= used && sum < min(total, used+room)-rounding:
		t.Errorf("step %d: the nodes of %s have %d m, and it is offered %d m", n, c.id, sum, total)
	}
}

// TestSharesOfferNothingTwice checks that what all consumers are offered at one
// moment is there, if their shares are no more than the whole.
func TestSharesOfferNothingTwice(t *testing.T) {
	w := newWorld(2,
		Terms{Share: 50}, Terms{Reserved: milli(3000), Share: 30}, Terms{Reserved: milli(2000), Share: 20}, Terms{Reserved: milli(1000)},
	)
	w.switching = true
	for n := range modelSteps {
		w.step(false)
		snap := w.snap()
		var offered, has int64
		for _, c := range w.consumers {
			for _, pool := range snap.NodeOffers(c.id) {
				offered += cpu(pool.Offered)
			}
		}
		for _, p := range w.providers {
			has += p.has
		}
		if offered > has {
			t.Fatalf("step %d: the consumers are offered %d m, and the providers have %d m", n, offered, has)
		}
	}
}

// TestFixedSharesAreAlwaysThere checks the rule by which a consumer always gets
// what it was told: its limit is what is reserved for it, and all reservations
// together are no more than each can reach. It holds for offers of any age.
func TestFixedSharesAreAlwaysThere(t *testing.T) {
	fixed := func(n int64) Terms { return Terms{Reserved: milli(n), Limit: milli(n), Share: Whole} }
	// The first consumer is a provider, too: what it has itself is of no use to it.
	w := newWorld(3, fixed(6000), fixed(3000), fixed(3000))
	for n := range modelSteps {
		w.step(false)
		var told, has int64
		for _, c := range w.consumers {
			told += c.toldOfAll()
		}
		for _, p := range w.providers {
			has += p.has
		}
		if told > has {
			t.Fatalf("step %d: the consumers were told of %d m, and the providers have %d m", n, told, has)
		}
		snap := w.snap()
		for _, c := range w.consumers[1:] {
			if got, want := cpu(snap.Offered(c.id)), cpu(c.terms.Reserved); got != want {
				t.Fatalf("step %d: %s is offered %d m instead of its %d m", n, c.id, got, want)
			}
		}
	}
}
