// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package early

import (
	"context"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/lab/topology"
)

// fed has one cluster.
var fed *federation.Federation

func TestMain(m *testing.M) {
	os.Exit(federation.Suite{
		Name: "early", Liqo: "0.9", Up: []string{"--topology", "strangers", "--clusters", topology.ProviderA, "--without-liqo"},
		Run: func(ctx context.Context, root string, _ bool) (int, error) { return run(ctx, m, root) },
	}.Main())
}

// run runs the tests on a cluster without Liqo.
func run(ctx context.Context, m *testing.M, root string) (int, error) {
	l, err := federation.OpenLab()
	if err != nil {
		return 1, err
	}
	if fed, err = federation.Alone(l, root, topology.ProviderA); err != nil {
		return 1, err
	}
	err = fed.ProviderA.Get(ctx, client.ObjectKey{Name: "liqo"}, &corev1.Namespace{})
	switch {
	case err == nil:
		return 1, fmt.Errorf("on %s of the lab that is up Liqo is, or was: bin/lab down removes it", topology.ProviderA)
	case client.IgnoreNotFound(err) != nil:
		return 1, err
	}
	return m.Run(), nil
}
