// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"testing"

	tenantnamespace "github.com/liqotech/liqo/pkg/tenantNamespace"
)

// TestTenantNamePrefix compares our constant with Liqo's, whose package is too large for all programs to be made of it.
func TestTenantNamePrefix(t *testing.T) {
	if tenantNamePrefix != tenantnamespace.NamePrefix {
		t.Errorf("tenant namespaces begin with %q, want %q", tenantNamePrefix, tenantnamespace.NamePrefix)
	}
}
