// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package wake

import "sync"

// Broadcast wakes all that wait at the same time. The zero Broadcast is ready. It may be used concurrently.
type Broadcast struct {
	mu   sync.Mutex
	next chan struct{} // Nil while nobody waits.
}

// Send wakes all that wait. It does not block.
func (b *Broadcast) Send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}

// Next returns a channel that the next call of Send closes. Who asks for it before he looks at what changes misses no change.
func (b *Broadcast) Next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}
