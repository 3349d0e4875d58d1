// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationtest"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// TestSellerNotReachable reserves nothing at a seller whose cluster is not reached, or that says that it is where it has not announced it,
// and signs when it is reached.
func TestSellerNotReachable(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(w *world, s *shop)
		tries  bool
		says   string
		mend   func(w *world, s *shop)
	}{
		"Unreached": {
			func(w *world, _ *shop) {
				w.clusters.unreached = peering.UnreachedError{
					{Endpoint: peering.APIServerEndpoint, At: "https://api.example:6443", Why: "connection refused"},
				}
			}, true, `this cluster does not reach the seller's: the API server at "https://api.example:6443": connection refused`,
			func(w *world, _ *shop) { w.clusters.unreached = nil },
		},
		"OtherHost": {
			func(w *world, s *shop) {
				announce(w, s, registryv1.Cluster{ID: string(s.cluster.ID), Auth: "other.example"})
			}, false, `"auth.example"`,
			func(w *world, s *shop) {
				announce(w, s, registryv1.Cluster{ID: string(s.cluster.ID), Auth: "auth.example"})
			},
		},
		"OtherCluster": {
			func(w *world, s *shop) { announce(w, s, registryv1.Cluster{ID: "b", Auth: "auth.example"}) }, false, "does not announce",
			func(w *world, s *shop) {
				announce(w, s, registryv1.Cluster{ID: string(s.cluster.ID), Auth: "auth.example"})
			},
		},
		"Nowhere": {
			func(w *world, _ *shop) { w.clusters.nowhere = true }, false, "there is no Service liqo-auth",
			func(w *world, _ *shop) { w.clusters.nowhere = false },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, remote())
			w := newWorld(t, s)
			tc.change(w, s)
			w.create("p", s, nil)
			for range 3 {
				w.once("p")
			}
			p := w.get("p")
			if reasonOf(p) != connectorv1alpha1.ReasonNotReachable || !strings.Contains(messageOf(p), tc.says) {
				t.Errorf("%s: %q, want %s: %s", reasonOf(p), messageOf(p), connectorv1alpha1.ReasonNotReachable, tc.says)
			}
			if record, err := s.Get(t.Context(), w.key("p")); record != nil || err != nil {
				t.Errorf("something is reserved: %+v, %v", record, err)
			}
			want := peering.Endpoints{
				Cluster: "a", Auth: "https://auth.example:443", APIServer: "https://api.example:6443", Gateway: "gateway.example:5871",
			}
			if tried := slices.Contains(w.clusters.tried, want); tried != tc.tries || !tc.tries && len(w.clusters.tried) > 0 {
				t.Errorf("tried: %+v", w.clusters.tried)
			}
			tc.mend(w, s)
			w.until("p", connectorv1alpha1.ReasonActive, s)
		})
	}
}

// announce has a registry show another cluster of a shop.
func announce(w *world, s *shop, c registryv1.Cluster) {
	shown := w.parties[s.key.ID()]
	shown.Said.Clusters = []registryv1.Cluster{c}
	w.parties[s.key.ID()] = shown
}

// TestBuyerNotReachable has a seller not sign while it does not reach the buyer: the buyer says so, asks again for as long as it is
// reserved, and begins when it is reached.
func TestBuyerNotReachable(t *testing.T) {
	var unreached atomic.Bool
	var told atomic.Pointer[negotiationv1.Endpoints]
	s := open(t, remote(), func(cfg *negotiation.Config) {
		of, _ := cfg.Reach.(negotiationtest.Reach)
		of.Unreached = func(_ party.ID, at negotiationv1.Endpoints) []string {
			told.Store(&at)
			if unreached.Load() {
				return []string{peering.AuthEndpoint}
			}
			return nil
		}
		cfg.Reach = of
		cfg.Limits.TriesPerMinute, cfg.Limits.TriesAtOnce = 1000, 1000
	})
	w := newWorld(t, s)
	unreached.Store(true)
	w.create("lapsed", s, nil)
	w.until("lapsed", connectorv1alpha1.ReasonNotReachable, s)
	w.wait(11 * time.Minute)
	p := w.until("lapsed", connectorv1alpha1.ReasonExpired, s)
	if !strings.Contains(messageOf(p), "does not reach") {
		t.Errorf("it does not say why nobody has signed: %q", messageOf(p))
	}

	w.create("mended", s, nil)
	p = w.until("mended", connectorv1alpha1.ReasonNotReachable, s)
	if says := "the seller does not reach liqo-auth of cluster here"; !strings.Contains(messageOf(p), says) {
		t.Errorf("%q, want %q", messageOf(p), says)
	}
	if at := told.Load(); at == nil || at.Cluster != "here" || at.Auth != "https://home.example" ||
		at.APIServer != "https://home.example:6443" {
		t.Errorf("the seller was told %+v", at)
	}
	if record, err := s.Get(t.Context(), w.key("mended")); err != nil || record.State != contract.Reserved {
		t.Errorf("%+v, %v", record, err)
	}
	if again := w.once("mended").RequeueAfter; again <= 0 || again > time.Minute ||
		reasonOf(w.get("mended")) != connectorv1alpha1.ReasonNotReachable {
		t.Errorf("it is tried again after %s: %s", again, reasonOf(w.get("mended")))
	}
	unreached.Store(false)
	if p := w.until("mended", connectorv1alpha1.ReasonActive, s); strings.Contains(messageOf(p), "reach") {
		t.Errorf("it goes on to say %q", messageOf(p))
	}
}
