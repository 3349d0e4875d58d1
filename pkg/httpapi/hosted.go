// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
)

// pagePath is below what the page is. Its data is that of version 1, for who has a token.
const pagePath = "/ui/"

// page serves the page. Who opens it is about to give it a token, so that it is neither sent in clear nor under a name that is not the
// daemon's.
func (a *API) page() http.Handler {
	files := http.StripPrefix(strings.TrimSuffix(pagePath, "/"), a.cfg.Page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.TLS == nil:
			rest.Write(w, rest.Refusal(http.StatusForbidden, messagePageTLS))
		case a.cfg.Hosts != nil && !isCalled(a.cfg.Hosts, hostOf(r)):
			rest.Write(w, rest.Refusal(http.StatusMisdirectedRequest, messageHost))
		default:
			files.ServeHTTP(w, r)
		}
	})
}

// hostOf returns by what name or address a request calls, without the port.
func hostOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// isCalled reports whether a host is one of some names, of which one that begins with *. stands for all with another first part.
func isCalled(names []string, host string) bool {
	_, parent, _ := strings.Cut(host, ".")
	return slices.Contains(names, host) || parent != "" && slices.Contains(names, "*."+parent)
}
