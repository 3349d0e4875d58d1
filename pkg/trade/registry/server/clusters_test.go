// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// TestClusterHasOneOwner lets the first approved party name a cluster, and no other one until that has left it.
func TestClusterHasOneOwner(t *testing.T) {
	r := run(t, newFileDSN(t), nil)
	first, one := r.member(t, "first")
	second, two := r.member(t, "second")
	announce := func(c *client.Client, p *registrytest.Party, revision int64, clusters ...registryv1.Cluster) error {
		said := registryv1.Announcement{
			Party: p.ID, Revision: revision, Name: p.Name, Endpoint: "https://x.example", Clusters: clusters,
			IssuedAt: time.Now().UTC().Truncate(time.Second),
		}
		_, err := c.Announce(t.Context(), p.ID, registryv1.Enrolment{
			Keys: p.Keys.Chain(), Announcement: p.Sign(t, registryv1.TypeAnnouncement, said),
		})
		return err
	}
	edge := registryv1.Cluster{ID: "edge-id", Auth: "auth.example"}
	if err := announce(one, first, 2, edge); err != nil {
		t.Fatal(err)
	}
	until(t, "the registry knows whose the cluster is", func() bool { return r.parties.owner(edge.ID, "") == first.ID })
	if refused := client.Refused(announce(two, second, 2, edge)); refused == nil || refused.Status != http.StatusConflict ||
		!strings.Contains(refused.Error(), first.ID) {
		t.Errorf("another party names the cluster: %v", refused)
	}
	if _, err := r.store.MarkSilent(t.Context(), time.Now().Add(365*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	until(t, "the registry knows that the first is silent", func() bool { return !r.parties.getParty(first.ID).Alive })
	if refused := client.Refused(announce(two, second, 2, edge)); refused == nil || refused.Status != http.StatusConflict {
		t.Errorf("another party names the cluster of one that is silent: %v", refused)
	}
	if err := announce(one, first, 3, edge, registryv1.Cluster{ID: "other-id"}); err != nil {
		t.Errorf("its owner names it again: %v", err)
	}
	if err := announce(one, first, 4); err != nil {
		t.Fatal(err)
	}
	until(t, "the registry knows that it is nobody's", func() bool { return r.parties.owner(edge.ID, "") == "" })
	if err := announce(two, second, 2, edge); err != nil {
		t.Errorf("after the first has left it: %v", err)
	}
	for name, clusters := range map[string][]registryv1.Cluster{
		"NoID": {{}}, "NoLabel": {{ID: "../x"}}, "Twice": {edge, edge}, "Host": {{ID: "x", Auth: "a\nb"}},
		"LongHost": {{ID: "x", Auth: strings.Repeat("a", 300)}}, "Many": make([]registryv1.Cluster, registryv1.MaxClusters+1),
	} {
		if refused := client.Refused(announce(two, second, 9, clusters...)); refused == nil || refused.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %v", name, refused)
		}
	}
	if _, err := r.store.Revoke(t.Context(), second.ID); err != nil {
		t.Fatal(err)
	}
	until(t, "the registry knows that the second has lost it", func() bool { return r.parties.owner(edge.ID, "") == "" })
	if err := announce(one, first, 5, edge); err != nil {
		t.Errorf("after the second was revoked: %v", err)
	}
}
