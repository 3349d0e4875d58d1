// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package listings

import (
	"math"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
)

// keptBytes is about how much memory is taken for anything that a registry shows, besides itself: what is noted of it by those who follow
// the registry, and here.
const keptBytes = 400

// used is how much memory what a registry shows takes, in bytes.
type used struct {
	all     int
	parties map[string]int
	sizes   map[offer.Key]int
}

func newUsed() *used { return &used{parties: map[string]int{}, sizes: map[offer.Key]int{}} }

// room returns how much something may take, with what it takes now.
func (u *used) room(key offer.Key, b Bounds) int {
	room := math.MaxInt
	if b.Registry > 0 {
		room = b.Registry - u.all + u.sizes[key]
	}
	if b.Party > 0 {
		room = min(room, b.Party-u.parties[key.Party]+u.sizes[key])
	}
	return room
}

// take notes how much something takes.
func (u *used) take(key offer.Key, bytes int) {
	more := bytes - u.sizes[key]
	u.sizes[key] = bytes
	u.all += more
	u.parties[key.Party] += more
}

// leave notes that something is not there any more.
func (u *used) leave(key offer.Key) {
	bytes, there := u.sizes[key]
	if !there {
		return
	}
	delete(u.sizes, key)
	u.all -= bytes
	if u.parties[key.Party] -= bytes; u.parties[key.Party] <= 0 {
		delete(u.parties, key.Party)
	}
}

// partySize is about how much memory a party takes, as it is known and in the pages.
func partySize(p *registryclient.Party) int {
	signed := len(p.Announcement)
	for _, key := range p.Keys.Chain() {
		signed += len(key) + 64
	}
	return 2*signed + len(p.Said.Name) + len(p.Said.Endpoint) + 2*keptBytes
}

// signedSize is about how much memory a signed offer takes: in the pages it is compressed, and of its letters, which are 64 that come as
// they like, no less than three quarters are left.
func signedSize(jws string) int { return len(jws)*3/4 + len(jws)/64 + keptBytes }
