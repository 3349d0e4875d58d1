// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// size is how large a registry is, and what is done with it.
type size struct {
	parties, offersEach, watchers int
	// single is how many offers change one after another, and burst how many at once.
	single, burst int
	// queries is how many queries of a kind each of the clients makes.
	queries int
	// contracts is how many contracts a seller has.
	contracts int
}

// partiesVariable makes everything smaller.
const partiesVariable = "LIQO_BROKER_SCALE_PARTIES"

// sized returns the size.
func sized(tb testing.TB) size {
	tb.Helper()
	s := size{parties: 1000, offersEach: 10, watchers: 1000, single: 100, burst: 200, queries: 50, contracts: 2048}
	if text := os.Getenv(partiesVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 4000 {
			tb.Fatalf("%s=%q is no number from 1 to 4000", partiesVariable, text)
		}
		s.parties, s.watchers, s.single, s.burst, s.queries, s.contracts = n, n, min(n, s.single), min(n, s.burst), min(n, s.queries),
			min(n, s.contracts)
	}
	return s
}

// atOnce is how many parties are announced at the same time.
const atOnce = 48

// crowd is all parties of a registry.
type crowd struct {
	size

	registry *registry
	members  []*member
}

// member is a party with its client.
type member struct {
	*registrytest.Party
	client *client.Client
}

// newCrowd returns parties that are enrolled and have published their offers, and how long that took.
func newCrowd(tb testing.TB, s size, r *registry) (*crowd, time.Duration) {
	tb.Helper()
	c := &crowd{size: s, registry: r}
	token := r.token(s.parties + 10)
	enrolments := make([]registryv1.Enrolment, s.parties)
	signed := make([][]string, s.parties)
	for n := range s.parties {
		m := &member{Party: registrytest.NewParty(tb, fmt.Sprintf("provider-%04d", n))}
		m.client = m.Client(tb, r.address, r.fingerprint)
		c.members = append(c.members, m)
		enrolments[n] = m.Enrolment(tb, 1, token)
		for o := range s.offersEach {
			signed[n] = append(signed[n], m.sign(tb, n, o, 1))
		}
	}
	began := time.Now()
	group, ctx := errgroup.WithContext(tb.Context())
	group.SetLimit(atOnce)
	for n, m := range c.members {
		group.Go(func() error {
			if _, err := m.client.Announce(ctx, m.ID, enrolments[n]); err != nil {
				return err
			}
			for o, jws := range signed[n] {
				if _, err := m.client.Publish(ctx, m.ID, offerID(o), jws); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		tb.Fatal(err)
	}
	return c, time.Since(began)
}

func offerID(n int) string { return fmt.Sprintf("offer-%d", n) }

// regions are where offers are.
func regions() []string { return []string{"eu-north", "eu-south", "us-east", "us-west", "ap-south"} }

// sign signs one of a party's offers: with three plans, about 2 KiB as usual offers.
func (m *member) sign(tb testing.TB, n, o int, revision int64) string {
	tb.Helper()
	document := m.Document(tb, offerID(o), revision)
	document.Region = regions()[(n+o)%len(regions())]
	document.Description = strings.Repeat("What people read about this offer. ", 4)
	document.Properties = map[string]string{"certificates": "ISO 27001, C5", "cooling": "free air", "power": "hydro"}
	document.Labels = map[string]string{"example.org/rack": fmt.Sprint("r", n%40), "example.org/tier": "standard"}
	document.Plans = nil
	for i, name := range []string{"small", "medium", "large"} {
		times := int64(1 + i*i)
		resources := offer.Resources{}
		for what, text := range map[string]string{
			"cpu": fmt.Sprint(2 * times), "memory": fmt.Sprint(8*times, "Gi"), "pods": "110", "ephemeral-storage": fmt.Sprint(40*times, "Gi"),
		} {
			q, err := offer.ParseQuantity(text)
			if err != nil {
				tb.Fatal(err)
			}
			resources[what] = q
		}
		amount, err := offer.ParseAmount(fmt.Sprintf("0.%04d", 200*times+int64(n%100)))
		if err != nil {
			tb.Fatal(err)
		}
		document.Plans = append(document.Plans, offer.Plan{
			ID: name, Name: "Plan " + name, Resources: resources, Price: offer.Price{Amount: amount, Currency: "EUR", Period: offer.Hour},
			Available: 5, MinDuration: offer.Duration(time.Hour), MaxDuration: offer.Duration(720 * time.Hour),
		})
	}
	return m.Sign(tb, offer.Type, document)
}

// leaseRounds is how long all renew their leases once, as connectors do: three times in a lease of two minutes.
const leaseRounds = 40 * time.Second

// renew has all parties renew their leases, one after another, until ctx ends. A registry that is away is called again.
func (c *crowd) renew(ctx context.Context) error {
	ticker := time.NewTicker(leaseRounds / time.Duration(len(c.members)))
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		m := c.members[n%len(c.members)]
		_, _ = m.client.Renew(ctx, m.ID) // It is renewed three times before it matters.
	}
}
