// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"strings"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

// What is answered per second, and at once: to each for whom callers count, and to all who
// are not known.
const (
	perSecondEach, atOnceEach = 10, 40
	perSecondAll, atOnceAll   = 100, 200
	// maxCallers bounds those that are remembered; who does not call is forgotten when it
	// might call as often as a new one.
	maxCallers   = 4096
	rememberedAs = atOnceEach / perSecondEach * time.Second
	// Files of the page are in memory, and the same for all. Many screens behind one address may open it at once, each with half a dozen
	// of them.
	perSecondFiles, atOnceFiles       = 50, 400
	perSecondAllFiles, atOnceAllFiles = 200, 1000
)

// paced passes on no more requests than each may make, and all who are not known.
func (a *API) paced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.allow(r) {
			rest.Write(w, rest.TooMany())
			return
		}
		next.ServeHTTP(w, r)
	})
}

// allow takes a request into account. A caller that is known counts for itself, wherever
// it calls from, so that strangers take nothing from it. Of strangers, the limit of all is
// asked last, so that what a single one has too much takes nothing from the others. Files of the page take nothing from what else is
// asked for.
func (a *API) allow(r *http.Request) bool {
	if a.cfg.Page != nil && strings.HasPrefix(r.URL.Path, pagePath) {
		from := source.AddressOfRequest(r)
		return from.IsValid() && a.eachFile.Of(a.cfg.Source(from)).Allow() && a.allFiles.Allow()
	}
	if caller, ok := a.known(r); ok {
		return a.each.Of(caller).Allow()
	}
	from := source.AddressOfRequest(r)
	return from.IsValid() && a.each.Of(a.cfg.Source(from)).Allow() && a.all.Allow()
}
