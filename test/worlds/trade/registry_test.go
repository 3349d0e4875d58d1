// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trade

import (
	"context"
	"crypto/ed25519"
	"errors"
	"math/rand/v2"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// authHost is where the clusters of all let others peer.
const authHost = "auth.example"

// mostRotated bounds how often a key is replaced: a chain of keys has an end.
const mostRotated = 12

// somebody is a party.
type somebody struct {
	// called is its name in the registry.
	called string
	id     party.ID
	key    party.Key
	keys   party.Keys
	// cluster is that which it names as its own.
	cluster cluster.ID
	// endpoint is empty for one that sells nothing.
	endpoint string
	// rotated counts its keys after the first.
	rotated int
	// shown is what others know of it, which lags.
	shown registryclient.Party
}

// newKey returns a key that follows from the seed: IDs are those of keys, and their order decides what happens.
func (w *world) newKey() party.Key {
	key, err := party.GenerateKey(seeded{w.r})
	if err != nil {
		w.t.Fatal(err)
	}
	return key
}

// seeded reads the same for the same seed.
type seeded struct{ r *rand.Rand }

func (s seeded) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = byte(s.r.IntN(256))
	}
	return len(into), nil
}

// newParty returns a party, which the registry shows.
func (w *world) newParty(name string, of cluster.ID, endpoint string) *somebody {
	p := &somebody{called: name, cluster: of, key: w.newKey(), endpoint: endpoint}
	var err error
	if p.keys, err = party.ParseKeys([]string{p.key.Announce()}); err != nil {
		w.t.Fatal(err)
	}
	p.id = p.keys.ID()
	p.show()
	w.parties = append(w.parties, p)
	return p
}

// show has the registry show a party as it is.
func (p *somebody) show() {
	p.shown = registryclient.Party{Keys: p.keys, Said: registryv1.Announcement{
		Party: string(p.id), Name: p.called, Endpoint: p.endpoint, Clusters: []registryv1.Cluster{{ID: string(p.cluster), Auth: authHost}},
	}}
}

// shows reports whether the registry shows the key that a party has now.
func (p *somebody) shows() bool { return p.shown.Keys.Current().Equal(p.key.Public()) }

// showOne has the registry show what has changed of one party.
func (w *world) showOne() { w.parties[w.r.IntN(len(w.parties))].show() }

func (s *seller) rotate() { s.w.rotate(s.somebody) }
func (b *buyer) rotate()  { b.w.rotate(b.somebody) }

// rotate replaces the key of a party. The registry shows that later.
func (w *world) rotate(p *somebody) {
	if p.rotated++; p.rotated > mostRotated {
		return
	}
	next := w.newKey()
	keys, err := party.Rotate(p.keys, p.key, next)
	if err != nil {
		w.failf("rotate: %v", err)
		return
	}
	p.key, p.keys = next, keys
	w.notef("%s has a new key", p.called)
}

// Party returns what is known of a party.
func (w *world) Party(id party.ID) (registryclient.Party, bool) {
	for _, p := range w.parties {
		if p.id == id {
			return p.shown, true
		}
	}
	return registryclient.Party{}, false
}

// Owns reports whether a cluster is a party's: the first that names it has it.
func (w *world) Owns(id party.ID, of cluster.ID) bool {
	for _, p := range w.parties {
		if p.cluster == of {
			return p.id == id
		}
	}
	return false
}

// identify tells whose key it is, as the registry shows it.
func (w *world) identify(_ context.Context, key ed25519.PublicKey) (party.Keys, error) {
	for _, p := range w.parties {
		if p.shown.Keys.Current().Equal(key) {
			return p.shown.Keys, nil
		}
	}
	return party.Keys{}, negotiation.ErrStranger
}

// identify asks the registry first, and then the books, which may know a later key.
func (r *replica) identify(ctx context.Context, key ed25519.PublicKey) (party.Keys, error) {
	keys, err := r.of.w.identify(ctx, key)
	switch {
	case errors.Is(err, negotiation.ErrStranger):
		return r.books.Identify(ctx, key)
	case err != nil:
		return party.Keys{}, err
	}
	return r.books.Longest(ctx, keys)
}

// owns tells whose a cluster is.
func (w *world) owns(_ context.Context, id party.ID, of cluster.ID) (owns, known bool, err error) {
	return w.Owns(id, of), true, nil
}

// rekey has the leader write the keys of its buyers into their Sales.
func (s *seller) rekey() {
	r := s.leading()
	r.behind()
	err := r.books.Rekey(context.Background())
	s.w.notef("%s writes the keys of its buyers: %v", r.name, err)
	if err != nil && s.w.calm {
		s.w.failf("%s writes the keys of its buyers: %v", r.name, err)
	}
}
