// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import "context"

// line1 is Liqo 1.x: a cluster has one name, its ID, and who peers has access to both clusters.
type line1 struct{}

func (line1) install(l Liqo) []string {
	return []string{
		"--cluster-id", l.Name, "--disable-telemetry", "--disable-kernel-version-check", "--disable-api-server-sanity-check",
	}
}

func (line1) values() map[string]any {
	type values = map[string]any
	return values{
		"metricAgent": values{"enabled": false},
		"telemetry":   values{"enabled": false},
		"storage":     values{"enabled": false},
		// liqoctl sets another name than the one that the chart reads.
		"requirements": values{"kernel": values{"enabled": false}},
		"common":       values{"nodeSelector": values{"lab/real": "true"}},
		"networking":   values{"gatewayTemplates": values{"wireguard": values{"implementation": "userspace"}}},
	}
}

func (line1) peer(ctx context.Context, consumer, provider Liqo) error {
	_, err := consumer.liqoctl(ctx, "liqo-peer-"+provider.Name, "peer", "--remote-kubeconfig", provider.Kubeconfig,
		"--gw-server-service-type", "NodePort")
	return err
}

func (line1) unpeer(ctx context.Context, consumer, provider Liqo) error {
	_, err := consumer.liqoctl(ctx, "liqo-unpeer-"+provider.Name, "unpeer", "--remote-kubeconfig", provider.Kubeconfig, "--skip-confirm")
	return err
}
