// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package walk has what is the same in all journeys on a federation, whatever they are about: what they take back in the end, and how they
// follow a page. It knows nothing of brokers, nor of the trade.
package walk

import (
	"context"
	"sync"
	"testing"

	"github.com/capacitorset/liqo-broker/test/federation"
)

// AtEnd does something when the test ends, which fails if that does. What is to be done last is said first.
func AtEnd(t *testing.T, do func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		if err := do(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// KubectlAtEnd runs kubectl on a cluster when the test ends.
func KubectlAtEnd(t *testing.T, c *federation.Cluster, args ...string) {
	t.Helper()
	AtEnd(t, func(ctx context.Context) error {
		_, err := c.Kubectl(ctx, args...)
		return err
	})
}

// UntilEnd begins something that lasts until the returned function is called or the test ends, which fails if either does.
func UntilEnd(t *testing.T, begin func(context.Context) (end func() error, err error)) (end func()) {
	t.Helper()
	lasts, err := begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		if err := lasts(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return end
}
