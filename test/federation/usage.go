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
	text, err := manifests.ReadFile("manifests/metrics-server.yaml")
	if err != nil {
		return nil, err
	}
	const service = "v1beta1.metrics.k8s.io"
	end = func() error {
		ctx := context.WithoutCancel(ctx)
		// Kubernetes removes no namespace while an API has nobody who serves it.
		_, err := c.Kubectl(ctx, "delete", "apiservice", service, "--ignore-not-found")
		return errors.Join(err, c.deleteManifests(ctx, string(text)))
	}
	err = c.ApplyManifests(ctx, string(text))
	if err == nil {
		err = c.rollout(ctx, "kube-system", "metrics-server")
	}
	if err == nil {
		_, err = c.Kubectl(ctx, "wait", "apiservice", service, "--for=condition=Available", "--timeout="+patience.String())
	}
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return end, nil
}
