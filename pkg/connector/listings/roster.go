// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package listings

import (
	"github.com/capacitorset/liqo-broker/pkg/party"
	registryclient "github.com/capacitorset/liqo-broker/pkg/registry/client"
)

// roster is the parties that registries show, each once. It must not be used concurrently.
type roster struct {
	known map[party.ID]*shown
	// holders are the parties by the fingerprints of their current keys.
	holders map[string]party.ID
}

// shown is what registries show of one party.
type shown struct {
	// party is with the longest chain of keys, and of those the newest announcement.
	party registryclient.Party
	// alive is what each registry that shows the party says about that.
	alive map[string]bool
}

func newRoster() roster { return roster{known: map[party.ID]*shown{}, holders: map[string]party.ID{}} }

// get returns a party. It is alive if one registry says so.
func (r *roster) get(id party.ID) (registryclient.Party, bool) {
	s := r.known[id]
	if s == nil {
		return registryclient.Party{}, false
	}
	p := s.party
	p.Alive = false
	for _, alive := range s.alive {
		p.Alive = p.Alive || alive
	}
	return p, true
}

// merge takes in what a registry shows. Keys that do not continue those that another registry shows are left out: who has stolen an old
// key, and a registry that helps him, change nothing.
func (r *roster) merge(registry string, p registryclient.Party) {
	id := p.Keys.ID()
	s := r.known[id]
	if s == nil {
		s = &shown{party: p, alive: map[string]bool{}}
		r.known[id] = s
	}
	s.alive[registry] = p.Alive
	longer := len(p.Keys.Chain()) > len(s.party.Keys.Chain())
	if p.Keys.Continues(s.party.Keys) && (longer || p.Said.Revision >= s.party.Said.Revision) {
		delete(r.holders, party.Fingerprint(s.party.Keys.Current()))
		s.party = p
	}
	r.holders[party.Fingerprint(s.party.Keys.Current())] = id
}

// withdraw takes in that a registry does not show a party any more.
func (r *roster) withdraw(registry string, id party.ID) {
	s := r.known[id]
	if s == nil {
		return
	}
	delete(s.alive, registry)
	if len(s.alive) == 0 {
		delete(r.holders, party.Fingerprint(s.party.Keys.Current()))
		delete(r.known, id)
	}
}

// forget takes in that a registry shows nobody any more.
func (r *roster) forget(registry string) {
	for id := range r.known {
		r.withdraw(registry, id)
	}
}
