// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store/postgrestest"
)

// TestMain is also the program that TestNothingAcknowledgedIsLost kills.
func TestMain(m *testing.M) {
	if dsn := os.Getenv(childDSN); dsn != "" {
		if err := publishForEver(dsn); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

// now is the time of all tests: the store has no clock.
var now = time.Date(2026, 11, 23, 7, 0, 0, 123456000, time.UTC)

// limit is more than tests need.
const limit = 1000

// databases are makers of empty databases, by their names.
func databases(tb testing.TB) map[string]func(testing.TB) string {
	tb.Helper()
	return map[string]func(testing.TB) string{"SQLite": newFileDSN, "PostgreSQL": postgrestest.Start(tb).Database}
}

// newFileDSN is the DSN of a file that is not there yet, with a name that has to be escaped.
func newFileDSN(tb testing.TB) string {
	tb.Helper()
	return "sqlite:" + filepath.Join(tb.TempDir(), "100% #1?.db")
}

// opened is a store that is closed at the end of the test.
func opened(tb testing.TB, dsn string) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), dsn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// announced is an approved party.
func announced(id string) Party {
	return Party{ID: id, State: Approved, Announcement: "announcement 1 of " + id, Revision: 1, Keys: []string{"first key of " + id},
		CurrentKey: id, Name: "Name of " + id,
		Endpoint: "https://" + id, EnrolledBy: "test", EnrolledAt: now, LeaseUntil: now.Add(time.Minute)}
}

// signed is an offer; each revision is another document.
func signed(party, id string, revision int64) StoredOffer {
	return StoredOffer{
		Party: party, ID: id, Keys: 1, Revision: revision, JWS: fmt.Sprintf("document %d of %s/%s", revision, party, id),
		ValidUntil: now.Add(time.Hour),
	}
}

// admit puts parties there.
func admit(tb testing.TB, s *Store, ids ...string) {
	tb.Helper()
	for _, id := range ids {
		if _, err := s.PutParty(tb.Context(), announced(id), 0); err != nil {
			tb.Fatal(err)
		}
	}
}

// publish puts offers there.
func publish(tb testing.TB, s *Store, offers ...StoredOffer) {
	tb.Helper()
	for _, o := range offers {
		if _, err := s.PutOffer(tb.Context(), o, limit); err != nil {
			tb.Fatal(err)
		}
	}
}

// contents is what a store holds, for comparisons: parties and offers with their revisions.
func contents(snapshot Snapshot) []string {
	var found []string
	for _, p := range snapshot.Parties {
		found = append(found, fmt.Sprintf("party %s %s %d silent=%v @%d", p.ID, p.State, p.Revision, p.Silent, p.RegistryRevision))
	}
	for _, o := range snapshot.Offers {
		found = append(found, fmt.Sprintf("offer %s/%s %d @%d", o.Party, o.ID, o.Revision, o.RegistryRevision))
	}
	return found
}

// snapshot takes one.
func snapshot(tb testing.TB, s *Store) Snapshot {
	tb.Helper()
	taken, err := s.Snapshot(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return taken
}
