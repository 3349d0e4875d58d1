// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package listings

import (
	"crypto/rand"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// shownParty returns a party that names clusters.
func shownParty(t *testing.T) func(revision int64, clusters ...string) registryclient.Party {
	t.Helper()
	key, err := party.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := party.ParseKeys([]string{key.Announce()})
	if err != nil {
		t.Fatal(err)
	}
	return func(revision int64, clusters ...string) registryclient.Party {
		p := registryclient.Party{Keys: keys, Said: registryv1.Announcement{Party: string(keys.ID()), Revision: revision}}
		for _, id := range clusters {
			p.Said.Clusters = append(p.Said.Clusters, registryv1.Cluster{ID: id})
		}
		return p
	}
}

// TestOwners has the first party that names a cluster own it, until it names it no more or is shown no more.
func TestOwners(t *testing.T) {
	l, alice, bob := New(), shownParty(t), shownParty(t)
	show := func(registry string, p registryclient.Party) { l.Merge(registry, []registryclient.Change{{Party: &p}}) }
	owner := func(when, cluster string, want func(int64, ...string) registryclient.Party) {
		t.Helper()
		for name, p := range map[string]func(int64, ...string) registryclient.Party{"alice": alice, "bob": bob} {
			id := p(1).Keys.ID()
			if owns := l.Owns(id, cluster); owns != (want != nil && want(1).Keys.ID() == id) {
				t.Errorf("%s: %s owns %s: %t", when, name, cluster, owns)
			}
		}
	}
	owner("nobody is shown", "x", nil)
	show("one", alice(1, "x", "y"))
	show("two", bob(1, "x", "z"))
	owner("both name it", "x", alice)
	owner("one names it", "z", bob)
	show("one", alice(2, "y"))
	owner("the first has left it", "x", bob)
	owner("and not the other", "y", alice)
	show("two", alice(2, "y"))
	show("one", bob(2, "y"))
	owner("the second has left it", "x", nil)
	owner("it is the first's", "y", alice)
	l.Forget("two")
	owner("the first is still shown", "y", alice)
	l.Forget("one")
	owner("nobody is shown any more", "y", nil)
}
