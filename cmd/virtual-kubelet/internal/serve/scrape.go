// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// scrapePath is where Liqo's metric agent at the foreign cluster serves the
// metrics of the pods that this cluster offloaded
// (liqo/deployments/liqo/templates/liqo-metric-agent-apiservice.yaml@v0.9.4).
const scrapePath = "/apis/metrics.liqo.io/v1alpha1/scrape"

// scrape answers a request for metrics with those of the foreign cluster, so
// that a virtual node is scraped like any other. What pods use is told of those
// too that the foreign cluster runs on another one. Whatever the path, nothing
// is passed on that is about pods of other nodes, or that is not understood.
func scrape(remote rest.Interface, homeCluster string, used *usage) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		result := remote.Get().AbsPath(scrapePath, homeCluster, r.URL.Path).Do(r.Context())
		var code int
		result.StatusCode(&code)
		body, err := result.Raw()
		if err != nil {
			body = nil
		}
		// What of it is about pods of this node.
		var missing, unreadable error
		if r.URL.Path == usagePath {
			body, missing, unreadable = used.complete(r.Context(), body)
			if missing != nil {
				klog.FromContext(r.Context()).V(1).Info("Nobody knows what some pods use", "reason", missing.Error())
			}
			if unreadable == nil && len(body) > 0 {
				code, err = http.StatusOK, nil
			}
		} else {
			body, unreadable = used.own(r.Context(), body)
		}
		if err != nil || unreadable != nil {
			err = errors.Join(err, missing, unreadable)
			http.Error(w, "the foreign cluster returned no metrics: "+err.Error(), http.StatusBadGateway)
			return
		}
		// Whatever a foreign cluster sends, it is metrics and no page.
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(code)
		if _, err := w.Write(body); err != nil { //nolint:gosec // The type above keeps a browser from reading it as a page.
			klog.FromContext(r.Context()).V(1).Info("The client of the metrics disconnected", "reason", err.Error())
		}
	})
}
