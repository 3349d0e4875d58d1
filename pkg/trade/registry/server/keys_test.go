// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"math"
	"net/http"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// TestKeysHaveOneParty replaces keys, makes up another party of them, and is revoked: what was replaced reads nothing, and nobody takes the
// place of another.
func TestKeysHaveOneParty(t *testing.T) {
	r := run(t, newFileDSN(t), func(c *Config) { c.AutoApprove = false })
	reads := func(p *registrytest.Party) int { return r.call(t, &p.Key, http.MethodGet, "/v1/offers", "").status }
	announce := func(p *registrytest.Party, revision int64) error {
		_, err := p.Client(t, r.address, r.key).Announce(t.Context(), p.ID, p.Enrolment(t, revision, ""))
		return err
	}
	first := registrytest.NewParty(t, "first")
	if err := announce(first, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.Approve(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	second := first.Rotate(t)
	if err := announce(second, 1); err != nil {
		t.Fatal(err)
	}

	// The first key, whose fingerprint is the party's ID, and the current one, as another party's.
	for what, key := range map[string]party.Key{"first": first.Key, "current": second.Key} {
		other := registrytest.NewParty(t, "other")
		keys, err := party.Rotate(other.Keys, other.Key, key)
		if err != nil {
			t.Fatal(err)
		}
		made := &registrytest.Party{ID: other.ID, Name: "made-up", Key: key, Keys: keys}
		if refused := client.Refused(announce(made, 1)); refused == nil || refused.Status != http.StatusConflict {
			t.Errorf("another party with its %s key: %v", what, refused)
		}
	}
	if found := r.parties.getParty(first.ID); found == nil || found.ID != first.ID {
		t.Errorf("%s is %+v", first.ID, found)
	}

	third := second.Rotate(t)
	if err := announce(third, 1); err != nil {
		t.Fatal(err)
	}
	if a, b, c := reads(first), reads(second), reads(third); a != http.StatusForbidden || b != http.StatusForbidden || c != http.StatusOK {
		t.Errorf("with the keys in turn: %d, %d, %d", a, b, c)
	}
	if _, err := r.store.Revoke(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	until(t, "the registry knows who is revoked", func() bool { return r.parties.getParty(first.ID).State == registryv1.Revoked })
	for i, p := range []*registrytest.Party{first, second, third} {
		if status := reads(p); status != http.StatusForbidden {
			t.Errorf("revoked, with key %d: %d", i+1, status)
		}
	}
}

// TestRevisionsBeginAnew has somebody with a stolen key announce and offer with the largest revisions: who replaces the key is held up by
// neither.
func TestRevisionsBeginAnew(t *testing.T) {
	r := run(t, newFileDSN(t), nil)
	owner, thief := r.member(t, "owner")
	if _, err := thief.Announce(t.Context(), owner.ID, owner.Enrolment(t, math.MaxInt64, "")); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if _, err := thief.Publish(t.Context(), owner.ID, id, owner.Offer(t, id, 1<<53-1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := thief.Withdraw(t.Context(), owner.ID, "b"); err != nil {
		t.Fatal(err)
	}
	next := owner.Rotate(t)
	c := next.Client(t, r.address, r.key)
	if _, err := c.Announce(t.Context(), owner.ID, next.Enrolment(t, 2, "")); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if _, err := c.Publish(t.Context(), owner.ID, id, next.Offer(t, id, 2)); err != nil {
			t.Error(err)
		}
	}
	if _, err := thief.Publish(t.Context(), owner.ID, "a", owner.Offer(t, "a", 1<<53-1)); client.Refused(err) == nil {
		t.Errorf("the replaced key offers: %v", err)
	}
}
