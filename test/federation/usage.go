// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/capacitorset/liqo-broker/test/lab/image"
)

// MetricsServer runs a metrics-server on a cluster until the returned function is called. It is no part of the lab, but built by
// `make bin/metrics-server`.
func (f *Federation) MetricsServer(ctx context.Context, c *Cluster) (end func() error, err error) {
	var archive bytes.Buffer
	err = image.WriteArchive(&archive, runtime.GOARCH,
		image.Single("lab.local/metrics-server:1", f.path("bin", "metrics-server"), "/metrics-server"))
	if err != nil {
		return nil, fmt.Errorf("pack a metrics-server, which make bin/metrics-server builds: %w", err)
	}
	if _, err := c.Lab.Load(ctx, &archive, ""); err != nil {
		return nil, err
	}
	return c.serveAPI(ctx, "metrics-server", "kube-system", "metrics-server", "v1beta1.metrics.k8s.io")
}

// MetricAgent runs Liqo's metric agent on a cluster, which the lab leaves out, until the returned function is called.
func (c *Cluster) MetricAgent(ctx context.Context) (end func() error, err error) {
	return c.serveAPI(ctx, "metric-agent", liqoNamespace, "liqo-metric-agent", "v1alpha1.metrics.liqo.io")
}

// serveAPI applies the manifest of a Deployment that serves an API, and waits for both, until the returned function is called.
func (c *Cluster) serveAPI(ctx context.Context, manifest, namespace, deployment, service string) (end func() error, err error) {
	text, err := manifests.ReadFile("manifests/" + manifest + ".yaml")
	if err != nil {
		return nil, err
	}
	end = func() error {
		ctx := context.WithoutCancel(ctx)
		// Kubernetes removes no namespace while an API has nobody who serves it.
		_, err := c.Kubectl(ctx, "delete", "apiservice", service, "--ignore-not-found")
		return errors.Join(err, c.deleteManifests(ctx, string(text)))
	}
	err = c.ApplyManifests(ctx, string(text))
	if err == nil {
		err = c.rollout(ctx, namespace, deployment)
	}
	if err == nil {
		_, err = c.Kubectl(ctx, "wait", "apiservice", service, "--for=condition=Available", "--timeout="+patience.String())
	}
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return end, nil
}
