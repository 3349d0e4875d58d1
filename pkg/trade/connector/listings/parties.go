// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package listings

import (
	"slices"

	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// parties is the parties that registries show, each once. It must not be used concurrently.
type parties struct {
	known map[party.ID]*shown
	// holders are the parties by the fingerprints of their current keys.
	holders map[string]party.ID
	// owners are the parties that have named clusters, each the first of those that are shown, and contested the clusters that others name
	// too.
	owners    map[string]party.ID
	contested map[string]bool
}

// shown is what registries show of one party.
type shown struct {
	// party is with the longest chain of keys, and of those the newest announcement.
	party registryclient.Party
	// alive is what each registry that shows the party says about that.
	alive map[string]bool
}

func newParties() parties {
	return parties{known: map[party.ID]*shown{}, holders: map[string]party.ID{}, owners: map[string]party.ID{}, contested: map[string]bool{}}
}

// owns reports whether a party names a cluster, and is the first of those that are shown to do so.
func (r *parties) owns(id party.ID, cluster string) bool {
	return r.known[id] != nil && r.owners[cluster] == id
}

// claim notes which clusters a party names.
func (r *parties) claim(p registryclient.Party) {
	for _, c := range p.Said.Clusters[:min(len(p.Said.Clusters), registryv1.MaxClusters)] {
		switch owner, owned := r.owners[c.ID]; {
		case !owned:
			r.owners[c.ID] = p.Keys.ID()
		case owner != p.Keys.ID():
			r.contested[c.ID] = true
		}
	}
}

// release notes that a party does not name its clusters any more. One that others name as well becomes that of one of them.
func (r *parties) release(p registryclient.Party) {
	contested := false
	for _, c := range p.Said.Clusters {
		if r.owners[c.ID] == p.Keys.ID() {
			contested = contested || r.contested[c.ID]
			delete(r.owners, c.ID)
			delete(r.contested, c.ID)
		}
	}
	if !contested {
		return
	}
	for _, s := range r.known {
		r.claim(s.party)
	}
}

// get returns a party. It is alive if one registry says so.
func (r *parties) get(id party.ID) (registryclient.Party, bool) {
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
func (r *parties) merge(registry string, p registryclient.Party) {
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
		before := s.party
		if s.party = p; !slices.Equal(before.Said.Clusters, p.Said.Clusters) {
			r.release(before)
		}
	}
	r.claim(s.party)
	r.holders[party.Fingerprint(s.party.Keys.Current())] = id
}

// withdraw takes in that a registry does not show a party any more.
func (r *parties) withdraw(registry string, id party.ID) {
	s := r.known[id]
	if s == nil {
		return
	}
	delete(s.alive, registry)
	if len(s.alive) == 0 {
		delete(r.holders, party.Fingerprint(s.party.Keys.Current()))
		delete(r.known, id)
		r.release(s.party)
	}
}

// forgetRegistry takes in that a registry shows nobody any more.
func (r *parties) forgetRegistry(registry string) {
	for id := range r.known {
		r.withdraw(registry, id)
	}
}
