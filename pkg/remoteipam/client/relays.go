// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"
)

const (
	// batchSize is how many addresses are asked for in one call. Liqo's IPAM writes
	// two objects for each address that it has not mapped before.
	batchSize = 100
	// batchTimeout bounds one call. A batch that takes longer goes on where it
	// stopped when it is asked for again.
	batchTimeout = 10 * time.Second
)

// answer is what a broker says about one address.
type answer struct {
	relay netip.Addr
	err   error
}

// ask asks a broker for the relay addresses of pods. The answers are in the order
// of the addresses; the error is [ErrUnavailable] and concerns all of them.
type ask func(ctx context.Context, addresses []netip.Addr) ([]answer, error)

// relays remembers the relay addresses of the pods that it was told of. An
// address is asked for once, and together with those of all other pods that will
// be asked for. It is safe for concurrent use.
type relays struct {
	ask ask
	// relayed reports whether an address is one to ask for.
	relayed func(netip.Addr) bool

	mu sync.Mutex
	// pods are the pods by their key, holders the keys by the pods' address.
	pods    map[string]netip.Addr
	holders map[netip.Addr]string
	// known are the answers; those of an older generation serve only as long as the
	// broker cannot be asked.
	known      map[netip.Addr]knownRelay
	generation int
	// waiting are the addresses that a caller waits for.
	waiting map[netip.Addr]int
	// flight is the call that is being made; nil if none is.
	flight *flight
}

type knownRelay struct {
	relay      netip.Addr
	generation int
}

// flight is one call. The answers may be read once done is closed.
type flight struct {
	done    chan struct{}
	answers map[netip.Addr]answer
}

func newRelays(ask ask, relayed func(netip.Addr) bool) *relays {
	return &relays{
		ask: ask, relayed: relayed,
		pods: map[string]netip.Addr{}, holders: map[netip.Addr]string{},
		known: map[netip.Addr]knownRelay{}, waiting: map[netip.Addr]int{},
	}
}

// hold notes that a pod has an address; one that is not valid means none. What
// was known about an address that another pod had is forgotten.
func (r *relays) hold(pod string, address netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.pods[pod]
	if old == address {
		return
	}
	if old.IsValid() {
		r.drop(pod, old)
	}
	if !address.IsValid() {
		return
	}
	delete(r.known, address)
	r.pods[pod], r.holders[address] = address, pod
}

// release notes that a pod is gone.
func (r *relays) release(pod string) { r.hold(pod, netip.Addr{}) }

// drop is called with the lock held.
func (r *relays) drop(pod string, address netip.Addr) {
	delete(r.pods, pod)
	if r.holders[address] == pod {
		delete(r.holders, address)
		delete(r.known, address)
	}
}

// reported returns the address of the pod to which a relay address leads; false if no
// pod that is held is known to have it.
func (r *relays) reported(relay netip.Addr) (netip.Addr, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for address, known := range r.known {
		if known.relay == relay {
			return address, true
		}
	}
	return netip.Addr{}, false
}

// renew makes that every address is asked for once more.
func (r *relays) renew() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.generation++
}

// getRelay returns the relay address of a pod.
func (r *relays) getRelay(ctx context.Context, address netip.Addr) (netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if relay, ok := r.current(address); ok {
		return relay, nil
	}
	r.waiting[address]++
	defer func() {
		if r.waiting[address]--; r.waiting[address] == 0 {
			delete(r.waiting, address)
		}
	}()
	for {
		if relay, ok := r.current(address); ok {
			return relay, nil
		}
		current := r.flight
		if current == nil {
			return r.fly(ctx, address)
		}
		r.mu.Unlock()
		select {
		case <-current.done:
		case <-ctx.Done():
		}
		r.mu.Lock()
		if ctx.Err() != nil {
			return netip.Addr{}, ctx.Err()
		}
		if got, ok := current.answers[address]; ok {
			return r.settle(address, got)
		}
	}
}

// current returns what is known about an address, unless the broker is to be asked
// once more. It is called with the lock held.
func (r *relays) current(address netip.Addr) (netip.Addr, bool) {
	k, ok := r.known[address]
	return k.relay, ok && k.generation == r.generation
}

// fly makes a call for an address and for others that are needed. The lock is
// held when it begins and when it ends, but not during the call.
func (r *relays) fly(ctx context.Context, address netip.Addr) (netip.Addr, error) {
	current := &flight{done: make(chan struct{}), answers: map[netip.Addr]answer{}}
	r.flight = current
	batch, generation := r.batch(address), r.generation

	r.mu.Unlock()
	// Others wait for this call: it must not end with its first caller.
	callCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), batchTimeout)
	answers, err := r.ask(callCtx, batch)
	cancel()
	r.mu.Lock()

	for i, asked := range batch {
		got := answer{err: err}
		if err == nil {
			got = answers[i]
		}
		current.answers[asked] = got
		if _, held := r.holders[asked]; held && got.err == nil {
			r.known[asked] = knownRelay{got.relay, generation}
		}
	}
	r.flight = nil
	close(current.done)
	return r.settle(address, current.answers[address])
}

// batch returns the address, and others that are not known: first those that a
// caller waits for, then those of pods that nobody has asked for yet.
func (r *relays) batch(address netip.Addr) []netip.Addr {
	batch := []netip.Addr{address}
	add := func(candidate netip.Addr) {
		if _, ok := r.current(candidate); candidate != address && !ok {
			batch = append(batch, candidate)
		}
	}
	for candidate := range r.waiting {
		if len(batch) == batchSize {
			return batch
		}
		add(candidate)
	}
	for candidate := range r.holders {
		if len(batch) == batchSize {
			return batch
		}
		if r.waiting[candidate] == 0 && r.relayed(candidate) {
			add(candidate)
		}
	}
	return batch
}

// settle turns an answer into a result: while the broker cannot be asked, what is
// known goes on to be true, because nobody else frees relay addresses.
func (r *relays) settle(address netip.Addr, got answer) (netip.Addr, error) {
	if got.err == nil {
		return got.relay, nil
	}
	if k, ok := r.known[address]; ok && errors.Is(got.err, ErrUnavailable) {
		return k.relay, nil
	}
	delete(r.known, address)
	return netip.Addr{}, got.err
}
