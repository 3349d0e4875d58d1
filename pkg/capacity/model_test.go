// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/offer"
)

// world is a broker with its providers and consumers, in milli-CPU. What in a real
// one takes time is two steps here, between which any others may come: an offer is
// counted and then told, a pod is asked for and then bound.
type world struct {
	rnd       *rand.Rand
	providers []*modelProvider
	consumers []*modelConsumer
	steps     map[string]int
}

type modelProvider struct {
	id      cluster.ID
	has     int64
	enabled bool
}

type modelConsumer struct {
	id    cluster.ID
	terms Terms
	// counted are offers on their way, and told is the one that arrived last.
	counted []int64
	told    int64
	pods    []*modelPod
}

type modelPod struct {
	cpu int64
	on  *modelProvider // Nil while it waits.
}

func milli(n int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(n, resource.DecimalSI)}
}

func cpu(l corev1.ResourceList) int64 { return l.Cpu().MilliValue() }

func newWorld(seed uint64, terms ...Terms) *world {
	w := &world{rnd: rand.New(rand.NewPCG(seed, 1)), steps: map[string]int{}}
	for i := range 4 {
		w.providers = append(w.providers, &modelProvider{id: cluster.ID(fmt.Sprint("p", i)), has: 4000, enabled: true})
	}
	for i, t := range terms {
		w.consumers = append(w.consumers, &modelConsumer{id: cluster.ID(fmt.Sprint("c", i)), terms: t})
	}
	// One cluster is both.
	w.providers[0].id = w.consumers[0].id
	return w
}

// books are what the broker counts at this moment; a restart makes no difference,
// because it has no other memory.
func (w *world) books() *Books {
	accounts, terms := map[cluster.ID]Account{}, map[cluster.ID]Terms{}
	for _, p := range w.providers {
		accounts[p.id] = Account{Has: milli(p.has), Usable: p.enabled, Used: map[cluster.ID]corev1.ResourceList{}}
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
			offer.Add(used[c.id], milli(pod.cpu))
		}
	}
	return NewBooks(accounts, terms)
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

// asked returns what a consumer has asked for, bound or not.
func (c *modelConsumer) asked() int64 {
	var sum int64
	for _, pod := range c.pods {
		sum += pod.cpu
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
		c.counted = append(c.counted, cpu(w.books().Offered(c.id)))
	case n < 40: // An offer arrives: the last one, as Liqo reads it when it writes it.
		if len(c.counted) > 0 {
			what = "tell"
			c.told, c.counted = c.counted[len(c.counted)-1], nil
		}
	case n < 60: // A pod is asked for, if it fits the offer: Liqo's webhook sees to it.
		if size := 100 * (1 + w.rnd.Int64N(20)); c.asked()+size <= c.told {
			what = "ask"
			c.pods = append(c.pods, &modelPod{cpu: size})
		}
	case n < 80: // The broker's scheduler binds a pod, if it fits the virtual node.
		for _, pod := range c.pods {
			if pod.on == nil && p.enabled && p.id != c.id && w.bound(p)+pod.cpu <= p.has {
				what = "bind"
				pod.on = p
				break
			}
		}
	case n < 94: // A pod ends.
		if len(c.pods) > 0 {
			what = "end"
			i := w.rnd.IntN(len(c.pods))
			c.pods = append(c.pods[:i], c.pods[i+1:]...)
		}
	case n < 96 && changeProviders:
		what = "toggle"
		p.enabled = !p.enabled
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
		books := w.books()
		for _, c := range w.consumers {
			checkOffer(t, n, w, books, c)
		}
		if t.Failed() {
			return
		}
	}
	for _, what := range []string{"count", "tell", "ask", "bind", "end", "toggle", "change", "restart"} {
		if w.steps[what] < modelSteps/200 {
			t.Errorf("only %d steps were %q: the test does not try it", w.steps[what], what)
		}
	}
}

// checkOffer counts again, in the simplest way, what a consumer may be offered.
func checkOffer(t *testing.T, n int, w *world, books *Books, c *modelConsumer) {
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
		if p.enabled && p.id != c.id {
			room += max(0, p.has-(w.bound(p)-mine))
		}
	}
	for _, other := range w.consumers {
		if other != c {
			kept += max(0, cpu(other.terms.Reserved)-cpu(books.Used(other.id)))
		}
	}
	most := max(own, room-kept)
	if limit, ok := c.terms.Limit[corev1.ResourceCPU]; ok {
		most = min(most, limit.MilliValue())
	}
	got := cpu(books.Offered(c.id))
	switch {
	case got < 0 || got > most:
		t.Errorf("step %d: %s is offered %d m, and may be offered at most %d m", n, c.id, got, most)
	case c.terms.Share == Whole && got != most:
		t.Errorf("step %d: %s is offered %d m instead of %d m", n, c.id, got, most)
	case got < min(own, most):
		t.Errorf("step %d: %s is offered %d m and uses %d m", n, c.id, got, own)
	}
}

// TestSharesOfferNothingTwice checks that what all consumers are offered at one
// moment is there, if their shares are no more than the whole.
func TestSharesOfferNothingTwice(t *testing.T) {
	w := newWorld(2,
		Terms{Share: 50}, Terms{Reserved: milli(3000), Share: 30}, Terms{Reserved: milli(2000), Share: 20}, Terms{Reserved: milli(1000)},
	)
	for n := range modelSteps {
		w.step(false)
		books := w.books()
		var offered, has int64
		for _, c := range w.consumers {
			offered += cpu(books.Offered(c.id))
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
			told += max(c.told, c.asked())
		}
		for _, p := range w.providers {
			has += p.has
		}
		if told > has {
			t.Fatalf("step %d: the consumers were told of %d m, and the providers have %d m", n, told, has)
		}
		books := w.books()
		for _, c := range w.consumers[1:] {
			if got, want := cpu(books.Offered(c.id)), cpu(c.terms.Reserved); got != want {
				t.Fatalf("step %d: %s is offered %d m instead of its %d m", n, c.id, got, want)
			}
		}
	}
}
