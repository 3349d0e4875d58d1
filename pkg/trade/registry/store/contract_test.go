// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store/postgrestest"
)

// TestContract asks a file of SQLite and a PostgreSQL the same.
func TestContract(t *testing.T) {
	for name, fresh := range databases(t) {
		t.Run(name, func(t *testing.T) {
			for promise, hold := range map[string]func(*testing.T, string){
				"Announcements": announcements, "Admission": admission, "Approval": approval, "Forgetting": forgetting,
				"WaitingRoom": waitingRoom, "OpenRegistry": openRegistry, "Clock": clock,
				"Revisions": revisions, "Limits": limits, "Leases": leases, "Expiry": expiry, "ManyGoAtOnce": manyGoAtOnce,
				"Changes": changes, "Compaction": compaction, "Tokens": tokens, "OneTokenForMany": oneTokenForMany,
				"HostileTexts": hostileTexts, "Oversize": oversize, "Restart": restart, "OpenTogether": openTogether,
				"Followers": followers, "Churn": churn, "Waiting": waiting, "Migration": migration, "Foreign": foreign,
			} {
				t.Run(promise, func(t *testing.T) { hold(t, fresh(t)) })
			}
		})
	}
}

// refused fails unless an error is the one that is wanted; nil wants none.
func refused(t *testing.T, reason string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) || (want == nil && got != nil) {
		t.Errorf("%s: error %v, want %v", reason, got, want)
	}
}

// announcements goes through the life of one party.
func announcements(t *testing.T, dsn string) {
	s := opened(t, dsn)
	with := func(revision int64, text string, keys ...string) Party {
		p := announced("p")
		p.Revision, p.Announcement, p.Keys, p.Name = revision, text, keys, text
		return p
	}
	otherWith := func(key string) Party {
		p := announced("other")
		p.CurrentKey = key
		return p
	}
	for _, step := range []struct {
		reason string
		put    Party
		want   error
		at     int64 // the registry revision after it
	}{
		{"a new party", with(3, "three", "k1"), nil, 1},
		{"the same again changes nothing", with(3, "three", "k1"), nil, 1},
		{"an older announcement", with(2, "two", "k1"), ErrStale, 1},
		{"another with the same revision", with(3, "drei", "k1"), ErrStale, 1},
		{"a rotated key", with(4, "four", "k1", "k2"), nil, 2},
		{"without the rotation", with(5, "five", "k1"), ErrChain, 2},
		{"another rotation: somebody stole the first key", with(5, "five", "k1", "thief"), ErrChain, 2},
		{"another first key", with(5, "five", "k0", "k1", "k2"), ErrChain, 2},
		{"the old state of an approved party", func() Party { p := with(6, "six", "k1", "k2"); p.State = Pending; return p }(), nil, 3},
		{"revoking is not for announcements", func() Party { p := with(7, "seven", "k1", "k2"); p.State = Revoked; return p }(), ErrInvalid, 3},
		{"no revision", with(0, "zero", "k1", "k2"), ErrInvalid, 3},
		{"no keys", with(7, "seven"), ErrInvalid, 3},
		{"the largest revision", with(math.MaxInt64, "far", "k1", "k2"), nil, 4},
		{"the next key begins again", with(6, "six", "k1", "k2", "k3"), nil, 5},
		{"what the key before has signed, of whatever revision", with(math.MaxInt64, "far", "k1", "k2"), ErrChain, 5},
		{"another party with its ID as current key", otherWith("p"), ErrKey, 5},
		{"another party with another key", otherWith("q"), nil, 6},
		{
			"its current key is another party's", func() Party { p := with(7, "seven", "k1", "k2", "k3", "k4"); p.CurrentKey = "q"; return p }(),
			ErrKey, 6,
		},
	} {
		stored, err := s.PutParty(t.Context(), step.put, 10)
		refused(t, step.reason, err, step.want)
		if err == nil && (stored.RegistryRevision != step.at || stored.Name != step.put.Name) {
			t.Errorf("%s: stored %+v, want registry revision %d", step.reason, stored, step.at)
		}
		if at, err := s.Revision(t.Context()); err != nil || at != step.at {
			t.Errorf("%s: revision %d, %v; want %d", step.reason, at, err, step.at)
		}
	}
	want := with(6, "six", "k1", "k2", "k3")
	want.RegistryRevision = 5
	got, err := s.Party(t.Context(), "p")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("stored: %v, %s", err, diff)
	}
	_, err = s.Party(t.Context(), "nobody")
	refused(t, "nobody", err, ErrNotFound)
}

// admission lets parties in by a token, once each.
func admission(t *testing.T, dsn string) {
	s := opened(t, dsn)
	secret := Digest("secret")
	if err := s.CreateToken(t.Context(), Token{Digest: secret, Uses: 1, ExpiresAt: now.Add(time.Hour), CreatedAt: now}); err != nil {
		t.Fatal(err)
	}
	pending := announced("a")
	pending.State = Pending
	if _, err := s.PutParty(t.Context(), pending, 1); err != nil {
		t.Fatal(err)
	}
	stolen := announced("a")
	stolen.Keys, stolen.Revision = []string{"other"}, 2
	_, err := s.AdmitByToken(t.Context(), stolen, secret, now)
	refused(t, "what PutParty refuses uses no token", err, ErrChain)
	_, err = s.AdmitByToken(t.Context(), announced("a"), Digest("guessed"), now)
	refused(t, "an unknown token", err, ErrToken)
	for range 2 { // The second time it needs no token.
		got, err := s.AdmitByToken(t.Context(), announced("a"), secret, now)
		if err != nil || got.State != Approved || got.EnrolledBy != "test" {
			t.Errorf("admitted: %+v, %v", got, err)
		}
	}
	_, err = s.AdmitByToken(t.Context(), announced("b"), secret, now)
	refused(t, "a token that is used up", err, ErrToken)
	_, err = s.Party(t.Context(), "b")
	refused(t, "who was not admitted", err, ErrNotFound)
	if _, err := s.Revoke(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	_, err = s.AdmitByToken(t.Context(), announced("a"), secret, now)
	refused(t, "a revoked party", err, ErrRevoked)
}

// approval lets an administrator decide.
func approval(t *testing.T, dsn string) {
	s := opened(t, dsn)
	for i, id := range []string{"a", "b", "c"} {
		p := announced(id)
		p.State, p.EnrolledBy = Pending, ""
		_, err := s.PutParty(t.Context(), p, []int{2, 2, 0}[i])
		refused(t, "party "+id, err, []error{nil, nil, ErrLimit}[i])
	}
	_, err := s.PutOffer(t.Context(), signed("a", "o", 1), limit)
	refused(t, "an offer of a party that waits", err, ErrNotApproved)
	refused(t, "its lease", s.RenewLease(t.Context(), "a", now), ErrNotApproved)
	_, err = s.Approve(t.Context(), "nobody")
	refused(t, "approving nobody", err, ErrNotFound)
	_, err = s.Revoke(t.Context(), "nobody")
	refused(t, "revoking nobody", err, ErrNotFound)
	for range 2 {
		got, err := s.Approve(t.Context(), "a")
		if err != nil || got.State != Approved || got.EnrolledBy != "approval" || got.RegistryRevision != 3 {
			t.Errorf("approved: %+v, %v", got, err)
		}
	}
	publish(t, s, signed("a", "o", 1), signed("a", "p", 1))

	// The offers go with the party, for all that follow.
	for range 2 {
		if got, err := s.Revoke(t.Context(), "a"); err != nil || got.State != Revoked || got.RegistryRevision != 6 {
			t.Errorf("revoked: %+v, %v", got, err)
		}
	}
	if got, want := told(t, s, 5, limit), "party a @6, delete a/o @7, delete a/p @8"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	_, err = s.PutOffer(t.Context(), signed("a", "q", 1), limit)
	refused(t, "an offer of a revoked party", err, ErrRevoked)
	_, err = s.PutParty(t.Context(), announced("a"), 10)
	refused(t, "its announcement", err, ErrRevoked)
	_, err = s.Approve(t.Context(), "a")
	refused(t, "its approval", err, ErrRevoked)
	refused(t, "its lease", s.RenewLease(t.Context(), "a", now), ErrRevoked)
	_, err = s.PutOffer(t.Context(), signed("nobody", "q", 1), limit)
	refused(t, "an offer of nobody", err, ErrNotFound)
}

// forgetting makes room for other parties that wait.
func forgetting(t *testing.T, dsn string) {
	s := opened(t, dsn)
	admit(t, s, "old")
	for i, id := range []string{"a", "b", "c"} {
		p := announced(id)
		p.State, p.EnrolledAt = Pending, now.Add(time.Duration(i)*time.Hour)
		if _, err := s.PutParty(t.Context(), p, 3); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.DropPending(t.Context(), now.Add(90*time.Minute)); n != 2 || err != nil {
		t.Errorf("forgot %d, %v; want 2", n, err)
	}
	if got, want := told(t, s, 0, limit), "party old @1, party c @4, party-deleted a @5, party-deleted b @6"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	admit(t, s, "a")
	if got, want := told(t, s, 4, limit), "party-deleted b @6, party a @7"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

// waitingRoom has one network announce more and more parties: they take each other's places, and later those of who has most.
func waitingRoom(t *testing.T, dsn string) {
	s := opened(t, dsn)
	const all = MaxWaitingEach + 3
	waits := func(network string, n int) {
		t.Helper()
		p := announced(fmt.Sprintf("%s/%d", network, n))
		p.State, p.Network, p.EnrolledAt = Pending, network, now.Add(time.Duration(n)*time.Second)
		if _, err := s.PutParty(t.Context(), p, all); err != nil {
			t.Fatal(err)
		}
	}
	held := func(reason string, want map[string]int) {
		t.Helper()
		got := map[string]int{}
		for _, p := range snapshot(t, s).Parties {
			got[p.Network]++
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", reason, diff)
		}
	}
	waits("honest", 0)
	for n := range 3 * MaxWaitingEach {
		waits("many", n)
	}
	held("one network does not take the place of another", map[string]int{"honest": 1, "many": MaxWaitingEach})
	if _, err := s.Party(t.Context(), fmt.Sprintf("many/%d", 2*MaxWaitingEach)); err != nil {
		t.Errorf("the newest stay: %v", err)
	}
	for n := range 6 {
		waits(fmt.Sprintf("other %d", n), 0)
	}
	held("there is room for others", map[string]int{
		"honest": 1, "many": all - 7, "other 0": 1, "other 1": 1, "other 2": 1, "other 3": 1, "other 4": 1, "other 5": 1,
	})
}

// openRegistry lets parties in that nobody has let in, up to what one network may have.
func openRegistry(t *testing.T, dsn string) {
	s := opened(t, dsn)
	if err := s.write(t.Context(), func(w *writing) error {
		for n := range MaxOpenEach {
			p := announced(fmt.Sprintf("p%d", n))
			p.EnrolledBy, p.Network = OpenRegistry, "many"
			if _, err := w.putParty(t.Context(), p, 0); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	p := announced("more")
	p.EnrolledBy, p.Network = OpenRegistry, "many"
	_, err := s.PutParty(t.Context(), p, 0)
	refused(t, "one more of the network", err, ErrLimit)
	p.Network = "other"
	_, err = s.PutParty(t.Context(), p, 0)
	refused(t, "one of another network", err, nil)
	p.Revision, p.Announcement = 2, "again"
	_, err = s.PutParty(t.Context(), p, 0)
	refused(t, "one that is there", err, nil)
}

// clock compares the time of the database with that of the machine, which the tests have both.
func clock(t *testing.T, dsn string) {
	s := opened(t, dsn)
	before := time.Now().Add(-time.Millisecond)
	first, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := opened(t, dsn).Now(t.Context())
	if after := time.Now().Add(time.Millisecond); err != nil || first.Before(before) || second.Before(first) || after.Before(second) {
		t.Errorf("%s, %s, %s, %s: %v", before, first, second, after, err)
	}
}

// told writes changes as text.
func told(t *testing.T, s *Store, after int64, most int) string {
	t.Helper()
	changes, err := s.ChangesAfter(t.Context(), after, most)
	if err != nil {
		t.Error(err)
	}
	var texts []string
	for _, c := range changes {
		name := c.PartyID
		if c.OfferID != "" {
			name += "/" + c.OfferID
		}
		if (c.Offer != nil) != (c.Kind == Upsert) || (c.Party != nil) != (c.Kind == PartyUpsert) {
			t.Errorf("change %+v", c)
		}
		texts = append(texts, fmt.Sprintf("%s %s @%d", c.Kind, name, c.RegistryRevision))
	}
	return strings.Join(texts, ", ")
}

// revisions goes through the life of one offer.
func revisions(t *testing.T, dsn string) {
	s := opened(t, dsn)
	admit(t, s, "p", "other")
	put := func(o StoredOffer) func() error {
		return func() error {
			_, err := s.PutOffer(t.Context(), o, 1)
			return err
		}
	}
	rotate := func() error {
		p := announced("p")
		p.Keys, p.CurrentKey = append(p.Keys, "second key"), "second"
		_, err := s.PutParty(t.Context(), p, 0)
		return err
	}
	next := func(revision int64) StoredOffer {
		o := signed("p", "o", revision)
		o.Keys = 2
		return o
	}
	forged := signed("p", "o", 2)
	forged.JWS = "another document"
	remove := func() error { return s.DeleteOffer(t.Context(), "p", "o") }
	expire := func() error { _, err := s.ExpireOffers(t.Context(), now.Add(2*time.Hour)); return err }
	for _, step := range []struct {
		reason string
		do     func() error
		want   error
		at     int64
	}{
		{"a new offer", put(signed("p", "o", 2)), nil, 3},
		{"the same again changes nothing", put(signed("p", "o", 2)), nil, 3},
		{"an older document", put(signed("p", "o", 1)), ErrStale, 3},
		{"another document with the same revision", put(forged), ErrStale, 3},
		{"a newer document", put(signed("p", "o", 3)), nil, 4},
		{"the same ID of another party is another offer", put(signed("other", "o", 1)), nil, 5},
		{"its owner deletes it", remove, nil, 6},
		{"there is none any more", remove, ErrNotFound, 6},
		{"the deleted document does not come back", put(signed("p", "o", 3)), ErrStale, 6},
		{"nor an older one", put(signed("p", "o", 2)), ErrStale, 6},
		{"a newer one does", put(signed("p", "o", 4)), nil, 7},
		{"both offers expire", expire, nil, 9},
		{"an older one than has expired", put(signed("p", "o", 3)), ErrStale, 9},
		{"what has expired may come back: the clock was wrong", put(signed("p", "o", 4)), nil, 10},
		{"no revision", put(signed("p", "o", 0)), ErrInvalid, 10},
		{"the largest revision", put(signed("p", "o", math.MaxInt64)), nil, 11},
		{"the party replaces its key", rotate, nil, 12},
		{"what the old key has signed is taken no more", put(signed("p", "o2", 1)), ErrChain, 12},
		{"the next key begins again", put(next(4)), nil, 13},
		{"its owner deletes that", remove, nil, 14},
		{"and the same does not come back", put(next(4)), ErrStale, 14},
		{"a newer one does again", put(next(5)), nil, 15},
	} {
		refused(t, step.reason, step.do(), step.want)
		if at, err := s.Revision(t.Context()); err != nil || at != step.at {
			t.Errorf("%s: revision %d, %v; want %d", step.reason, at, err, step.at)
		}
	}
	want := next(5)
	want.Digest, want.RegistryRevision = Digest(want.JWS), 15
	got, err := offer(t.Context(), s.reader, "p", "o")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("stored: %v, %s", err, diff)
	}
	_, err = offer(t.Context(), s.reader, "other", "o")
	refused(t, "an offer that has expired", err, ErrNotFound)
}

// limits stops a party that publishes too much from two replicas at once, and nobody else.
func limits(t *testing.T, dsn string) {
	replicas := []*Store{opened(t, dsn), opened(t, dsn)}
	admit(t, replicas[0], "greedy", "modest")
	var accepted atomic.Int32
	var callers sync.WaitGroup
	for i := range 30 {
		callers.Go(func() {
			_, err := replicas[i%2].PutOffer(t.Context(), signed("greedy", fmt.Sprint(i), 1), 10)
			if err == nil {
				accepted.Add(1)
			} else if !errors.Is(err, ErrLimit) {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if accepted.Load() != 10 {
		t.Errorf("%d offers accepted, want 10", accepted.Load())
	}
	known := snapshot(t, replicas[0]).Offers[0]
	_, err := replicas[1].PutOffer(t.Context(), signed("greedy", known.ID, 2), 10)
	refused(t, "a new revision at the limit", err, nil)
	_, err = replicas[1].PutOffer(t.Context(), signed("modest", "o", 1), 10)
	refused(t, "somebody else", err, nil)
}

// leases lets a party fall silent, be dropped, and come back.
func leases(t *testing.T, dsn string) {
	s := opened(t, dsn)
	admit(t, s, "a", "b")
	publish(t, s, signed("a", "o", 1), signed("b", "o", 1))
	refused(t, "nobody's lease", s.RenewLease(t.Context(), "nobody", now), ErrNotFound)
	refused(t, "a renewed lease", s.RenewLease(t.Context(), "b", now.Add(10*time.Minute)), nil)
	mark := func(at time.Time, want int) {
		t.Helper()
		if n, err := s.MarkSilent(t.Context(), at); n != want || err != nil {
			t.Errorf("marked %d, %v; want %d", n, err, want)
		}
	}
	mark(now.Add(59*time.Second), 0)
	mark(now.Add(time.Minute), 1)
	mark(now.Add(time.Minute), 0)
	if got, want := told(t, s, 4, limit), "party a @5"; got != want {
		t.Errorf("told %q, want %q: a renewed lease is no change", got, want)
	}
	if p, err := s.Party(t.Context(), "a"); !p.Silent || err != nil {
		t.Errorf("a is not silent: %+v, %v", p, err)
	}

	// It is dropped, and comes back with the same document.
	drop := func(before time.Time, want int) {
		t.Helper()
		if n, err := s.DropSilent(t.Context(), before); n != want || err != nil {
			t.Errorf("dropped %d, %v; want %d", n, err, want)
		}
	}
	drop(now.Add(time.Minute), 0)
	drop(now.Add(time.Minute+time.Microsecond), 1)
	refused(t, "a lease of one that was silent", s.RenewLease(t.Context(), "a", now.Add(time.Hour)), nil)
	publish(t, s, signed("a", "o", 1))
	if got, want := told(t, s, 5, limit), "party a @7, upsert a/o @8"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	if p, err := s.Party(t.Context(), "a"); p.Silent || !p.LeaseUntil.Equal(now.Add(time.Hour)) || err != nil {
		t.Errorf("a is silent: %+v, %v", p, err)
	}
	mark(now.Add(30*time.Minute), 1)

	// A clock that was an hour ahead is overruled.
	refused(t, "an earlier lease", s.RenewLease(t.Context(), "a", now.Add(time.Second)), nil)
	mark(now.Add(time.Second), 1)
}

// expiry deletes what is not valid any more.
func expiry(t *testing.T, dsn string) {
	s := opened(t, dsn)
	admit(t, s, "p")
	short := signed("p", "short", 1)
	short.ValidUntil = now.Add(time.Minute)
	publish(t, s, signed("p", "long", 1), short)
	for _, step := range []struct {
		at   time.Time
		want int
	}{{now, 0}, {now.Add(time.Minute - time.Microsecond), 0}, {now.Add(time.Minute), 1}, {now.Add(time.Minute), 0}} {
		if n, err := s.ExpireOffers(t.Context(), step.at); n != step.want || err != nil {
			t.Errorf("%s: expired %d, %v; want %d", step.at, n, err, step.want)
		}
	}
	if got, want := told(t, s, 1, limit), "upsert p/long @2, delete p/short @4"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

// manyGoAtOnce removes more offers than one statement does.
func manyGoAtOnce(t *testing.T, dsn string) {
	s := opened(t, dsn)
	admit(t, s, "p", "q")
	for _, p := range []string{"p", "q"} {
		for i := range batch + 1 {
			o := signed(p, fmt.Sprintf("%04d", i), 1)
			if p == "p" {
				o.ValidUntil = now
			}
			publish(t, s, o)
		}
	}
	if n, err := s.ExpireOffers(t.Context(), now); n != batch+1 || err != nil {
		t.Errorf("expired %d, %v", n, err)
	}
	if _, err := s.Revoke(t.Context(), "q"); err != nil {
		t.Fatal(err)
	}
	taken := snapshot(t, s)
	if want := int64(2 + 4*(batch+1) + 1); len(taken.Offers) != 0 || taken.Revision != want {
		t.Errorf("%d offers at revision %d, want none at %d", len(taken.Offers), taken.Revision, want)
	}
}

// changes reads them page by page.
func changes(t *testing.T, dsn string) {
	s := opened(t, dsn)
	admit(t, s, "p")
	publish(t, s, signed("p", "a", 1), signed("p", "b", 1), signed("p", "c", 1))
	refused(t, "delete", s.DeleteOffer(t.Context(), "p", "b"), nil)
	publish(t, s, signed("p", "a", 2))
	for _, page := range []struct {
		after int64
		most  int
		want  string
	}{
		{0, limit, "party p @1, upsert p/c @4, delete p/b @5, upsert p/a @6"},
		{0, 2, "party p @1, upsert p/c @4"},
		{4, 1, "delete p/b @5"},
		{5, limit, "upsert p/a @6"},
		{6, limit, ""},
		{0, 0, ""},
	} {
		if got := told(t, s, page.after, page.most); got != page.want {
			t.Errorf("after %d, at most %d: %q, want %q", page.after, page.most, got, page.want)
		}
	}
	_, err := s.ChangesAfter(t.Context(), 7, limit)
	refused(t, "a revision that this database never had, as after a restored backup", err, ErrCompacted)
}

// compaction forgets deletions, and says so.
func compaction(t *testing.T, dsn string) {
	s := opened(t, dsn)
	admit(t, s, "p")
	publish(t, s, signed("p", "a", 1), signed("p", "b", 1))
	refused(t, "delete", s.DeleteOffer(t.Context(), "p", "a"), nil) // @4
	refused(t, "delete", s.DeleteOffer(t.Context(), "p", "b"), nil) // @5
	for _, step := range []struct {
		keep     int64
		want     int
		after    int64
		err      error
		nextPage string
	}{
		{2, 0, 0, nil, "party p @1, delete p/a @4, delete p/b @5"},
		{1, 1, 3, ErrCompacted, ""},
		{1, 0, 4, nil, "delete p/b @5"},
		{0, 1, 4, ErrCompacted, ""},
		{0, 0, 5, nil, ""},
	} {
		if n, err := s.Compact(t.Context(), step.keep); n != step.want || err != nil {
			t.Errorf("keep %d: forgot %d, %v; want %d", step.keep, n, err, step.want)
		}
		_, err := s.ChangesAfter(t.Context(), step.after, limit)
		refused(t, fmt.Sprintf("after %d", step.after), err, step.err)
		if step.err == nil {
			if got := told(t, s, step.after, limit); got != step.nextPage {
				t.Errorf("keep %d, after %d: %q, want %q", step.keep, step.after, got, step.nextPage)
			}
		}
	}
}

// tokens are made, used, listed and deleted.
func tokens(t *testing.T, dsn string) {
	s := opened(t, dsn)
	first := Token{Digest: Digest("first"), Uses: 2, ExpiresAt: now.Add(time.Hour), CreatedAt: now, Comment: "for the lab"}
	second := Token{Digest: Digest("second"), Uses: 1, ExpiresAt: now, CreatedAt: now.Add(time.Second)}
	for _, tok := range []Token{second, first} {
		refused(t, "create", s.CreateToken(t.Context(), tok), nil)
	}
	refused(t, "the same again", s.CreateToken(t.Context(), first), ErrExists)
	refused(t, "no uses", s.CreateToken(t.Context(), Token{Digest: "x"}), ErrInvalid)
	refused(t, "too many uses", s.CreateToken(t.Context(), Token{Digest: "x", Uses: MaxUses + 1}), ErrInvalid)
	refused(t, "no digest", s.CreateToken(t.Context(), Token{Uses: 1}), ErrInvalid)
	refused(t, "use", useToken(t.Context(), s.writer, first.Digest, now), nil)
	refused(t, "an expired token", useToken(t.Context(), s.writer, second.Digest, now), ErrToken)
	refused(t, "an unknown token", useToken(t.Context(), s.writer, "' OR 1=1 --", now), ErrToken)
	refused(t, "no token", useToken(t.Context(), s.writer, "", now), ErrInvalid)
	first.Uses = 1
	got, err := s.Tokens(t.Context())
	if diff := cmp.Diff([]Token{first, second}, got); diff != "" || err != nil {
		t.Errorf("tokens: %v, %s", err, diff)
	}
	refused(t, "delete", s.DeleteToken(t.Context(), first.Digest), nil)
	refused(t, "delete again", s.DeleteToken(t.Context(), first.Digest), ErrNotFound)
	refused(t, "a deleted token", useToken(t.Context(), s.writer, first.Digest, now), ErrToken)
}

// oneTokenForMany lets 50 callers on two replicas use a token with 5 uses.
func oneTokenForMany(t *testing.T, dsn string) {
	replicas := []*Store{opened(t, dsn), opened(t, dsn)}
	for _, way := range []struct {
		name string
		use  func(s *Store, digest string, caller int) error
	}{
		{"use", func(s *Store, digest string, _ int) error { return useToken(t.Context(), s.writer, digest, now) }},
		{"admit", func(s *Store, digest string, caller int) error {
			_, err := s.AdmitByToken(t.Context(), announced(fmt.Sprint(caller)), digest, now)
			return err
		}},
	} {
		digest := Digest(way.name)
		refused(t, "create", replicas[0].CreateToken(t.Context(), Token{Digest: digest, Uses: 5, ExpiresAt: now.Add(time.Hour)}), nil)
		var used atomic.Int32
		var callers sync.WaitGroup
		for i := range 50 {
			callers.Go(func() {
				switch err := way.use(replicas[i%2], digest, i); {
				case err == nil:
					used.Add(1)
				case !errors.Is(err, ErrToken):
					t.Error(err)
				}
			})
		}
		callers.Wait()
		if used.Load() != 5 {
			t.Errorf("%s: used %d times, want 5", way.name, used.Load())
		}
	}
	if admitted := snapshot(t, replicas[1]).Parties; len(admitted) != 5 {
		t.Errorf("%d parties, want 5", len(admitted))
	}
}

// hostileTexts stores what looks like SQL as it is, and refuses what is not text.
func hostileTexts(t *testing.T, dsn string) {
	s := opened(t, dsn)
	names := []string{
		`x'); DROP TABLE offers; --`, `"; SELECT pg_sleep(9)`, `$1`, `?`, `%s`, `\`, `a/b`, ` `, "Zoë 🚀", "new\nline", "É", "é",
		strings.Repeat("x", MaxText),
	}
	for _, name := range names {
		p := announced(name)
		p.Name, p.Endpoint, p.Announcement, p.EnrolledBy = name, name, name, name
		if _, err := s.PutParty(t.Context(), p, 0); err != nil {
			t.Fatal(err)
		}
		publish(t, s, signed(name, name, 1))
		got, err := s.Party(t.Context(), name)
		p.RegistryRevision = got.RegistryRevision
		if diff := cmp.Diff(p, got); diff != "" || err != nil {
			t.Errorf("party %q: %v, %s", name, err, diff)
		}
		if o, err := offer(t.Context(), s.reader, name, name); err != nil || o.Party != name || o.ID != name {
			t.Errorf("offer %q: %+v, %v", name, o, err)
		}
		refused(t, "token", s.CreateToken(t.Context(), Token{Digest: name, Uses: 1, Comment: name}), nil)
	}
	taken := snapshot(t, s)
	if len(taken.Offers) != len(names) || !slices.IsSortedFunc(taken.Parties, func(a, b Party) int { return strings.Compare(a.ID, b.ID) }) {
		t.Errorf("%d offers, and parties %v", len(taken.Offers), contents(taken))
	}
	for _, name := range names {
		refused(t, "delete "+name, s.DeleteOffer(t.Context(), name, name), nil)
	}
	for _, name := range []string{"", "zero\x00byte", "not\xffUTF-8", "half a rune \xe2\x82"} {
		_, err := s.PutParty(t.Context(), announced(name), 0)
		refused(t, fmt.Sprintf("party %q", name), err, ErrInvalid)
		_, err = s.PutOffer(t.Context(), signed(names[0], name, 1), limit)
		refused(t, fmt.Sprintf("offer %q", name), err, ErrInvalid)
		o := signed(names[0], "o", 1)
		o.JWS = name
		_, err = s.PutOffer(t.Context(), o, limit)
		refused(t, fmt.Sprintf("document %q", name), err, ErrInvalid)
	}
	refused(t, "nobody's offer", s.DeleteOffer(t.Context(), "zero\x00byte", "o"), ErrInvalid)
	_, err := s.Party(t.Context(), "not\xffUTF-8")
	refused(t, "nobody", err, ErrInvalid)
}

// oversize refuses what is too long, by name and size.
func oversize(t *testing.T, dsn string) {
	s := opened(t, dsn)
	admit(t, s, "p")
	long, huge := strings.Repeat("x", MaxText+1), strings.Repeat("x", MaxDocument+1)
	party := func(change func(*Party)) error {
		p := announced("q")
		change(&p)
		_, err := s.PutParty(t.Context(), p, 0)
		return err
	}
	offer := func(change func(*StoredOffer)) error {
		o := signed("p", "o", 1)
		change(&o)
		_, err := s.PutOffer(t.Context(), o, limit)
		return err
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{party(func(p *Party) { p.ID = long }), "the ID of the party has 1025 bytes, more than 1024"},
		{party(func(p *Party) { p.Announcement = huge }), "the announcement has 65537 bytes, more than 65536"},
		{party(func(p *Party) { p.Name = long }), "the name has 1025 bytes"},
		{party(func(p *Party) { p.Endpoint = long }), "the endpoint has 1025 bytes"},
		{party(func(p *Party) { p.Keys = []string{"k", huge} }), "statement 1 of the chain of keys has 65537 bytes"},
		{party(func(p *Party) { p.Keys = slices.Repeat([]string{long}, 64) }), "the chain of keys has"},
		{offer(func(o *StoredOffer) { o.ID = long }), "the ID of the offer has 1025 bytes"},
		{offer(func(o *StoredOffer) { o.JWS = huge }), "the document has 65537 bytes"},
		{s.CreateToken(t.Context(), Token{Digest: "d", Uses: 1, Comment: long}), "the comment has 1025 bytes"},
	} {
		refused(t, c.want, c.err, ErrInvalid)
		if c.err != nil && (!strings.Contains(c.err.Error(), c.want) || len(c.err.Error()) > 300) {
			t.Errorf("error %.300q, want %q", c.err.Error(), c.want)
		}
	}
	refused(t, "the largest document", offer(func(o *StoredOffer) { o.JWS = huge[1:] }), nil)
}

// restart finds everything again.
func restart(t *testing.T, dsn string) {
	first, err := Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	admit(t, first, "p", "q")
	publish(t, first, signed("p", "a", 1), signed("q", "b", 1))
	refused(t, "delete", first.DeleteOffer(t.Context(), "p", "a"), nil)
	refused(t, "an era", first.BeginEra(t.Context()), nil)
	before := snapshot(t, first)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Snapshot(t.Context()); err == nil {
		t.Error("a closed store answers")
	}
	second := opened(t, dsn)
	if diff := cmp.Diff(before, snapshot(t, second)); diff != "" {
		t.Error(diff)
	}
	if len(before.Eras) != 1 || len(before.Eras[0].Name) < 16 || before.Eras[0].From != before.Revision {
		t.Errorf("eras %v at revision %d", before.Eras, before.Revision)
	}
	publish(t, second, signed("p", "c", 1))
	if got, want := told(t, second, before.Revision, limit), "upsert p/c @7"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	for range maxEras {
		refused(t, "an era", second.BeginEra(t.Context()), nil)
	}
	eras, err := second.Eras(t.Context())
	if err != nil || len(eras) != maxEras || eras[0].From != 8 || eras[maxEras-1].From != 7+maxEras {
		t.Errorf("eras %v, %v", eras, err)
	}
}

// openTogether opens a new database from many programs at once.
func openTogether(t *testing.T, dsn string) {
	var programs sync.WaitGroup
	for range 4 {
		programs.Go(func() {
			s, err := Open(t.Context(), dsn)
			if err != nil {
				t.Error(err)
				return
			}
			refused(t, "an era", s.BeginEra(t.Context()), nil)
			s.Close()
		})
	}
	programs.Wait()
	eras, err := opened(t, dsn).Eras(t.Context())
	if err != nil || len(eras) != 4 || eras[0].From != 1 || eras[3].From != 4 {
		t.Errorf("eras %v, %v", eras, err)
	}
}

// replica is what a follower has put together from changes.
type replica struct {
	revision int64
	parties  map[string]Party
	offers   map[[2]string]StoredOffer
	seen     []int64 // registry revisions, as they came
}

func newReplica() *replica {
	return &replica{parties: map[string]Party{}, offers: map[[2]string]StoredOffer{}}
}

// follow applies changes until a revision.
func (r *replica) follow(ctx context.Context, s *Store, until int64, page int) error {
	for r.revision < until {
		if _, err := s.Wait(ctx, r.revision); err != nil {
			return err
		}
		some, err := s.ChangesAfter(ctx, r.revision, page)
		if err != nil {
			return err
		}
		for _, c := range some {
			r.apply(c)
		}
	}
	return nil
}

func (r *replica) apply(c Change) {
	key := [2]string{c.PartyID, c.OfferID}
	switch c.Kind {
	case Upsert:
		r.offers[key] = *c.Offer
	case Delete:
		delete(r.offers, key)
	case PartyUpsert:
		r.parties[c.PartyID] = *c.Party
	case PartyDeleted:
		delete(r.parties, c.PartyID)
	}
	r.revision = c.RegistryRevision
	r.seen = append(r.seen, c.RegistryRevision)
}

// snapshot is what a replica holds.
func (r *replica) snapshot() Snapshot {
	var taken Snapshot
	for _, p := range r.parties {
		taken.Parties = append(taken.Parties, p)
	}
	for _, o := range r.offers {
		taken.Offers = append(taken.Offers, o)
	}
	return taken
}

// followers see each revision once and in order, on two replicas, while 8 writers publish; and every snapshot is of one moment.
func followers(t *testing.T, dsn string) {
	const writers, each = 8, 40
	const last = writers + writers*each
	replicas := []*Store{opened(t, dsn), opened(t, dsn)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var everybody sync.WaitGroup
	for i := range writers {
		everybody.Go(func() {
			s, id := replicas[i%2], fmt.Sprintf("party-%d", i)
			admit(t, s, id)
			for n := range each {
				publish(t, s, signed(id, fmt.Sprint(n), 1))
			}
		})
	}
	for i, s := range replicas {
		everybody.Go(func() {
			r := newReplica()
			if err := r.follow(ctx, s, last, 7); err != nil {
				t.Errorf("follower %d at revision %d: %v", i, r.revision, err)
			}
			for n, revision := range r.seen {
				if revision != int64(n+1) {
					t.Errorf("follower %d: revision %d at place %d", i, revision, n+1)
					return
				}
			}
		})
		everybody.Go(func() {
			for ctx.Err() == nil {
				taken, err := s.Snapshot(ctx)
				if err != nil || taken.Revision == last {
					refused(t, "snapshot", err, nil)
					return
				}
				if n := len(taken.Parties) + len(taken.Offers); int64(n) != taken.Revision {
					t.Errorf("a snapshot of revision %d has %d objects, which were each changed once", taken.Revision, n)
					return
				}
			}
		})
	}
	everybody.Wait()
}

// churn lets writers do everything at once; who follows has the same as who takes a snapshot.
func churn(t *testing.T, dsn string) {
	replicas := []*Store{opened(t, dsn), opened(t, dsn)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	following, done := newReplica(), make(chan error, 1)
	stopped, stop := context.WithCancel(ctx)
	defer stop()
	go func() { done <- following.follow(stopped, replicas[0], 1<<62, 5) }()

	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			s, id := replicas[i%2], fmt.Sprintf("party-%d", i)
			admit(t, s, id)
			for n := range 40 {
				publish(t, s, signed(id, fmt.Sprint(n%7), int64(n+1)))
				switch n % 5 {
				case 1:
					if err := s.DeleteOffer(ctx, id, fmt.Sprint(n%7)); !errors.Is(err, ErrNotFound) { // Somebody may have dropped it.
						refused(t, "delete", err, nil)
					}
				case 2:
					_, err := s.MarkSilent(ctx, now.Add(time.Duration(n)*time.Minute))
					refused(t, "mark", err, nil)
				case 3:
					refused(t, "renew", s.RenewLease(ctx, id, now.Add(time.Duration(n)*time.Minute)), nil)
				case 4:
					_, err := s.DropSilent(ctx, now.Add(time.Duration(n-20)*time.Minute))
					refused(t, "drop", err, nil)
				}
			}
			if i == 7 {
				_, err := s.Revoke(ctx, id)
				refused(t, "revoke", err, nil)
			}
		})
	}
	writers.Wait()
	want := snapshot(t, replicas[1])
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	refused(t, "the rest", following.follow(ctx, replicas[0], want.Revision, 5), nil)
	if !slices.IsSorted(following.seen) {
		t.Errorf("revisions in disorder: %v", following.seen)
	}
	got := contents(following.snapshot())
	wanted := contents(want)
	slices.Sort(got)
	slices.Sort(wanted)
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Error(diff)
	}
}

// waiting hears of changes by itself and by others, and ends with its context.
func waiting(t *testing.T, dsn string) {
	here, there := opened(t, dsn), opened(t, dsn)
	poll := here.poll
	here.poll = time.Hour
	for i, s := range []*Store{here, there} {
		if i == 1 && here.notify == "" {
			here.poll = poll // Nobody tells what another process has written.
		}
		heard := make(chan int64, 1)
		go func() {
			revision, err := here.Wait(t.Context(), int64(i))
			refused(t, "wait", err, nil)
			heard <- revision
		}()
		admit(t, s, fmt.Sprint(i))
		if revision := <-heard; revision != int64(i+1) {
			t.Errorf("heard of revision %d, want %d", revision, i+1)
		}
	}
	if revision, err := here.Wait(t.Context(), 9); revision != 2 || err != nil {
		t.Errorf("a revision that the database does not have: %d, %v; want 2 at once", revision, err)
	}
	ended, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := here.Wait(ended, 2); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an ended wait: %v", err)
	}
}

// TestServerBreaksConnections ends all connections of a store, as a server that restarts does.
func TestServerBreaksConnections(t *testing.T) {
	dsn := postgrestest.Start(t).Database(t)
	here, there := opened(t, dsn), opened(t, dsn)
	here.poll = time.Hour
	admit(t, here, "before")
	if _, err := there.writer.ExecContext(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`); err != nil {
		t.Fatal(err)
	}
	heard := make(chan error, 1)
	go func() {
		_, err := here.Wait(t.Context(), 1)
		for err != nil && t.Context().Err() == nil { // Connections of the pool are found broken when they are used.
			_, err = here.Wait(t.Context(), 1)
		}
		heard <- err
	}()
	time.Sleep(2 * listenAgain) // So that it waits already, and hears it by a connection that is new.
	for tries := 0; ; tries++ {
		_, err := there.PutParty(t.Context(), announced("after"), 0)
		if err == nil {
			break
		}
		if tries > postgresConnections {
			t.Fatal(err)
		}
	}
	select {
	case err := <-heard:
		refused(t, "wait", err, nil)
	case <-time.After(10 * time.Second):
		t.Error("the change was not heard")
	}
}
