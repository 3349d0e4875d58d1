// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// What benchmarks use, with documents as large as a usual offer with three plans.
const (
	benchParties  = 1_000
	benchOffers   = 10_000
	benchDocument = 2 << 10
)

// benchOffer is one of the offers, with a revision.
func benchOffer(n int, revision int64) StoredOffer {
	o := signed(fmt.Sprintf("party-%04d", n%benchParties), fmt.Sprintf("offer-%d", n/benchParties), revision)
	o.JWS += strings.Repeat("x", benchDocument-len(o.JWS))
	return o
}

// BenchmarkStore measures both databases with 10,000 offers of 1,000 parties: to load all, to change an offer, by one caller and by 8, to
// renew a lease, and to read what has changed.
func BenchmarkStore(b *testing.B) {
	for name, fresh := range databases(b) {
		b.Run(name, func(b *testing.B) {
			dsn := fresh(b)
			s := opened(b, dsn)
			var writers sync.WaitGroup
			for w := range 8 {
				writers.Go(func() {
					for n := w; n < benchOffers; n += 8 {
						if n < benchParties {
							admit(b, s, fmt.Sprintf("party-%04d", n))
						}
					}
				})
			}
			writers.Wait()
			for w := range 8 {
				writers.Go(func() {
					for n := w; n < benchOffers; n += 8 {
						publish(b, s, benchOffer(n, 1))
					}
				})
			}
			writers.Wait()
			benchmarks(b, dsn, s)
		})
	}
}

func benchmarks(b *testing.B, dsn string, s *Store) {
	b.Helper()
	b.Run("Restart", func(b *testing.B) {
		for range b.N {
			again, err := Open(b.Context(), dsn)
			if err != nil {
				b.Fatal(err)
			}
			if taken := snapshot(b, again); len(taken.Offers) != benchOffers || len(taken.Parties) != benchParties {
				b.Fatalf("%d offers of %d parties", len(taken.Offers), len(taken.Parties))
			}
			again.Close()
		}
	})
	b.Run("Snapshot", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			snapshot(b, s)
		}
	})
	var revision atomic.Int64 // Each put is a change.
	revision.Store(1)
	put := func(b *testing.B) {
		b.Helper()
		r := revision.Add(1)
		publish(b, s, benchOffer(int(r*7919)%benchOffers, r))
	}
	b.Run("PutOffer/Callers1", func(b *testing.B) {
		for range b.N {
			put(b)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "offers/s")
	})
	b.Run("PutOffer/Callers8", func(b *testing.B) {
		var left atomic.Int64
		left.Store(int64(b.N))
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				for left.Add(-1) >= 0 {
					r := revision.Add(1)
					publish(b, s, benchOffer(int(r*7919)%benchOffers, r))
				}
			})
		}
		callers.Wait()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "offers/s")
	})
	b.Run("RenewLease", func(b *testing.B) {
		for n := range b.N {
			if err := s.RenewLease(b.Context(), fmt.Sprintf("party-%04d", n%benchParties), now); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "leases/s")
	})
	b.Run("ChangesAfter", func(b *testing.B) {
		last, err := s.Revision(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		for range b.N {
			if some, err := s.ChangesAfter(b.Context(), last-20, 100); err != nil || len(some) == 0 {
				b.Fatal(len(some), err)
			}
		}
	})
}
