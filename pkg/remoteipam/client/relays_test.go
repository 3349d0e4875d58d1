// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
)

// fakeBroker gives every pod a relay address that has the pod's last three bytes,
// and counts the calls.
type fakeBroker struct {
	mu      sync.Mutex
	calls   int
	largest int
	// network is the first byte of the relay addresses.
	network byte
	err     error
	refused netip.Addr
}

func (f *fakeBroker) ask(_ context.Context, addresses []netip.Addr) ([]answer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	f.largest = max(f.largest, len(addresses))
	if f.err != nil {
		return nil, f.err
	}
	answers := make([]answer, len(addresses))
	for i, address := range addresses {
		if address == f.refused {
			answers[i].err = errors.New("refused")
			continue
		}
		b := address.As4()
		b[0] = f.network
		answers[i].relay = netip.AddrFrom4(b)
	}
	return answers, nil
}

func all(netip.Addr) bool { return true }

func pod(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 90, byte(i >> 8), byte(i)}) }

func TestRelaysAskOnce(t *testing.T) {
	const pods, workers = 1000, 10
	broker := &fakeBroker{network: 20}
	relays := newRelays(broker.ask, all)
	for i := range pods {
		relays.hold(fmt.Sprint(i), pod(i))
	}
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for i := worker; i < pods; i += workers {
				want := netip.AddrFrom4([4]byte{20, 90, byte(i >> 8), byte(i)})
				if got, err := relays.getRelay(t.Context(), pod(i)); err != nil || got != want {
					t.Errorf("pod %d: got %s, %v; want %s", i, got, err, want)
				}
			}
		})
	}
	group.Wait()
	if want := pods / batchSize; broker.calls != want || broker.largest != batchSize {
		t.Errorf("%d pods took %d calls with %d addresses at most, want %d with %d", pods, broker.calls, broker.largest, want, batchSize)
	}
}

func TestRelaysAreReported(t *testing.T) {
	relays := newRelays((&fakeBroker{network: 20}).ask, all)
	relays.hold("a", pod(1))
	relay, err := relays.getRelay(t.Context(), pod(1))
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := relays.reported(relay); !ok || got != pod(1) {
		t.Errorf("%s leads to %s, want %s", relay, got, pod(1))
	}
	if got, ok := relays.reported(pod(1)); ok {
		t.Errorf("%s is no relay address, and leads to %s", pod(1), got)
	}
	relays.release("a")
	if got, ok := relays.reported(relay); ok {
		t.Errorf("the pod is gone, and %s leads to %s", relay, got)
	}
}

func TestRelaysLeaveOutDirectPods(t *testing.T) {
	broker := &fakeBroker{network: 20}
	relays := newRelays(broker.ask, func(address netip.Addr) bool { return address != pod(2) })
	for i := range 3 {
		relays.hold(fmt.Sprint(i), pod(i))
	}
	if _, err := relays.getRelay(t.Context(), pod(0)); err != nil {
		t.Fatal(err)
	}
	if broker.largest != 2 {
		t.Errorf("%d addresses were asked for, want those of the 2 pods that are relayed", broker.largest)
	}
}

func TestRelaysForget(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*relays)
		want   int
	}{
		"Nothing":    {"the pod is there", func(*relays) {}, 1},
		"SameAgain":  {"an event without news", func(r *relays) { r.hold("a", pod(1)) }, 1},
		"Released":   {"the pod is gone", func(r *relays) { r.release("a") }, 2},
		"Moved":      {"the pod has another address", func(r *relays) { r.hold("a", pod(2)) }, 2},
		"PassedOn":   {"the address passed to another pod", func(r *relays) { r.hold("b", pod(1)) }, 2},
		"LateNews":   {"the end of the pod before is told late", func(r *relays) { r.hold("b", pod(1)); r.release("a") }, 2},
		"OtherPod":   {"another pod is gone", func(r *relays) { r.hold("b", pod(2)); r.release("b") }, 1},
		"NewSession": {"the broker may have lost its memory", func(r *relays) { r.renew() }, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			broker := &fakeBroker{network: 20}
			relays := newRelays(broker.ask, all)
			relays.hold("a", pod(1))
			for step := range 2 {
				if step == 1 {
					tc.change(relays)
				}
				if _, err := relays.getRelay(t.Context(), pod(1)); err != nil {
					t.Fatal(err)
				}
			}
			if broker.calls != tc.want {
				t.Errorf("%s: %d calls, want %d", tc.reason, broker.calls, tc.want)
			}
		})
	}
}

func TestRelaysWithoutBroker(t *testing.T) {
	broker := &fakeBroker{network: 20}
	relays := newRelays(broker.ask, all)
	relays.hold("a", pod(1))
	known, err := relays.getRelay(t.Context(), pod(1))
	if err != nil {
		t.Fatal(err)
	}
	broker.err = ErrUnavailable
	relays.renew()
	if got, err := relays.getRelay(t.Context(), pod(1)); err != nil || got != known {
		t.Errorf("what is known while the broker is away: got %s, %v; want %s", got, err, known)
	}
	if got, err := relays.getRelay(t.Context(), pod(2)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("what is not known while the broker is away: got %s, %v; want ErrUnavailable", got, err)
	}
	broker.err, broker.network = nil, 21
	if got, err := relays.getRelay(t.Context(), pod(1)); err != nil || got == known {
		t.Errorf("after the broker came back with other addresses: got %s, %v", got, err)
	}
	broker.refused = pod(1)
	relays.renew()
	if got, err := relays.getRelay(t.Context(), pod(1)); err == nil {
		t.Errorf("an address that the broker refuses is still shown as %s", got)
	}
	broker.err = ErrUnavailable
	if got, err := relays.getRelay(t.Context(), pod(1)); err == nil {
		t.Errorf("an address that the broker refused before it went away is shown as %s", got)
	}
}

func BenchmarkRelays(b *testing.B) {
	const pods = 10000
	broker := &fakeBroker{network: 20}
	relays := newRelays(broker.ask, all)
	for i := range pods {
		relays.hold(fmt.Sprint(i), pod(i))
	}
	for i := range pods {
		if _, err := relays.getRelay(b.Context(), pod(i)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i = (i + 1) % pods
		if _, err := relays.getRelay(b.Context(), pod(i)); err != nil {
			b.Fatal(err)
		}
	}
}
