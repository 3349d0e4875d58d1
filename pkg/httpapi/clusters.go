// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// clusters answers with the clusters that the broker knows, in order of name.
func (a *API) clusters(w http.ResponseWriter, r *http.Request) {
	if !a.cfg.Catalog && !a.cfg.Orchestrator {
		writeProblem(w, http.StatusNotFound,
			"the list of clusters is not served: the broker runs neither as catalog nor as orchestrator")
		return
	}
	var list liqo.ForeignClusterList
	if err := a.cfg.Client.List(r.Context(), &list); err != nil {
		a.cfg.Log.Error(err, "Cannot list the foreign clusters")
		writeProblem(w, http.StatusInternalServerError, "the clusters cannot be read")
		return
	}
	public := make([]liqo.PublicForeignCluster, 0, len(list.Items))
	for i := range list.Items {
		public = append(public, liqo.Publish(&list.Items[i]))
	}
	slices.SortFunc(public, func(a, b liqo.PublicForeignCluster) int {
		return cmp.Compare(a.Metadata.Name, b.Metadata.Name)
	})
	writeJSON(w, public)
}
