// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
)

// clusters answers with the clusters that the broker knows, in order of name: all of
// them to who may list the Providers, and to others those that provide.
func (a *API) clusters(w http.ResponseWriter, r *http.Request) {
	// Who may ask, and whether as somebody whom nobody knows.
	if !a.cfg.Catalog && !a.cfg.Orchestrator {
		rest.Write(w, rest.Refusal(http.StatusNotFound, messageNoClusters))
		return
	}
	open := anonymous(r) && (a.cfg.AnonymousCatalog || !a.cfg.Aggregator)
	if !open && !a.authorized(w, r, right("list", "providers")) {
		return
	}
	entries, err := a.cfg.Line.Reader(a.cfg.Client, a.cfg.Own.ID).Catalog(r.Context())
	if err != nil {
		a.rest.Refuse(w, r, fmt.Errorf("read the clusters: %w", err))
		return
	}
	// Strangers see who provides, and nothing of who consumes.
	shown := func(*liqo.Peer) bool { return true }
	if open && a.cfg.brokers() {
		if shown, err = a.provides(r.Context()); err != nil {
			a.rest.Refuse(w, r, err)
			return
		}
	}
	public := make([]any, 0, len(entries))
	for i := range entries {
		switch e := &entries[i]; {
		case !shown(&e.Peer), open && e.Provider == nil:
		case open:
			public = append(public, e.Provider)
		default:
			public = append(public, e.Whole)
		}
	}
	writeJSON(w, public)
}

// provides returns what reports whether strangers may know a cluster: it has agreed to
// provide. A consumer has not, also where the broker has a peering back to it.
func (a *API) provides(ctx context.Context) (func(*liqo.Peer) bool, error) {
	var providers v1alpha1.ProviderList
	if err := a.cfg.Client.List(ctx, &providers); err != nil {
		return nil, fmt.Errorf("list the providers: %w", err)
	}
	agreed := map[string]bool{}
	for i := range providers.Items {
		agreed[providers.Items[i].Name] = providers.Items[i].EffectiveScheduling() != v1alpha1.SchedulingDrained
	}
	return func(peer *liqo.Peer) bool {
		undrained, known := agreed[string(peer.ID)]
		return known && peer.Outgoing.Exists && (undrained || !peer.Incoming.Exists)
	}, nil
}
