// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/trade/connector/clocktest"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/identity"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
)

// TestFindUnlocked has others write the catalog while it is looked through.
func TestFindUnlocked(t *testing.T) {
	api := fake.NewClientBuilder().Build()
	id, err := identity.Load(t.Context(), api, "connector")
	if err != nil {
		t.Fatal(err)
	}
	var m *Catalog
	looks, free := 0, 0
	m, err = New(Config{
		Client: api, Reader: api, Namespace: "connector", Identity: id, Announcement: "a",
		Clock: clocktest.Func(func() time.Time { // Find asks for the time when it looks.
			looks++
			if m.mu.TryLock() {
				free++
				m.mu.Unlock()
			}
			return time.Now()
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Find(offer.Filter{}); err != nil || looks != 1 || free != 1 {
		t.Errorf("of %d looks others could write beside %d; error %v", looks, free, err)
	}
}
