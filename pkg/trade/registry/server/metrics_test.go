// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/capacitorset/liqo-broker/test/metrictable"
)

// TestMetricTable compares what a registry measures with the reference.
func TestMetricTable(t *testing.T) {
	r := run(t, newFileDSN(t), nil)
	seller, _ := r.member(t, "seller")
	if s := r.watch(t, seller, nil); s.status != http.StatusOK {
		t.Fatalf("the watch is answered %d", s.status)
	}
	r.sweepOnce(t.Context())
	registered := prometheus.NewPedanticRegistry()
	registered.MustRegister(r.Collectors()...)
	metrictable.Check(t, registered)
}
