// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/go-logr/logr"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// road is a peering.Reach that dials nobody.
type road struct {
	tried int
	err   error
}

func (*road) Own(context.Context) (peering.Endpoints, error) {
	return peering.Endpoints{Cluster: "own", Auth: "https://192.0.2.7"}, errors.New("there is no gateway")
}

func (r *road) Try(context.Context, peering.Endpoints) error {
	r.tried++
	return r.err
}

// announced is what registries show of one party.
type announced map[party.ID]registryclient.Party

func (s announced) Party(id party.ID) (registryclient.Party, bool) {
	p, is := s[id]
	return p, is
}

func (announced) Owns(party.ID, cluster.ID) bool { return true }

// TestBuyers tries buyers at the host that they have announced, and at no other, and tells of what came of it only what is not reached.
func TestBuyers(t *testing.T) {
	clusters := []registryv1.Cluster{{ID: "edge", Auth: "AUTH.edge.example"}, {ID: "second"}}
	known := announced{"buyer": {Said: registryv1.Announcement{Endpoint: "https://edge.example:30446", Clusters: clusters}}}
	secret := peering.UnreachedError{{Endpoint: peering.APIServerEndpoint, At: "https://192.0.2.1", Why: "cluster \"secret\" answers"}}
	failed := errors.New("no time")
	for name, tc := range map[string]struct {
		buyer         party.ID
		cluster, auth string
		err           error
		tried         int
		want          []string
		fails         error
	}{
		"Announced":   {"buyer", "edge", "https://auth.edge.example:30443", nil, 1, nil, nil},
		"Endpoint":    {"buyer", "second", "https://edge.example:30443", nil, 1, nil, nil},
		"OtherHost":   {"buyer", "edge", "https://edge.example:30443", nil, 0, []string{peering.AuthEndpoint}, nil},
		"NoHost":      {"buyer", "edge", "", nil, 0, []string{peering.AuthEndpoint}, nil},
		"NotShown":    {"forgotten", "edge", "https://anywhere.example", nil, 1, nil, nil},
		"Unreached":   {"buyer", "edge", "https://auth.edge.example", secret, 1, []string{peering.APIServerEndpoint}, nil},
		"CannotBeHad": {"buyer", "edge", "https://auth.edge.example", failed, 1, nil, failed},
	} {
		t.Run(name, func(t *testing.T) {
			r := &road{err: tc.err}
			got, err := buyers{r, known, logr.Discard()}.Try(t.Context(), tc.buyer,
				negotiationv1.Endpoints{Cluster: tc.cluster, Auth: tc.auth, APIServer: "https://api.edge.example"})
			if r.tried != tc.tried || !slices.Equal(got, tc.want) || !errors.Is(err, tc.fails) {
				t.Errorf("tried %d times, %q, %v; want %d, %q, %v", r.tried, got, err, tc.tried, tc.want, tc.fails)
			}
		})
	}
	if at := (buyers{&road{}, known, logr.Discard()}).Own(t.Context()); at.Cluster != "own" || at.Auth != "https://192.0.2.7" {
		t.Errorf("what is known is not told: %+v", at)
	}
}
