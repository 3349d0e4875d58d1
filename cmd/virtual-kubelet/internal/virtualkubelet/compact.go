// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package virtualkubelet

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// compact returns a configuration for clients of Kubernetes' own kinds, which exchanges them with the API server in the binary
// form that kubelets use. It costs both a fraction of what JSON costs. Custom resources have JSON only: their clients must not
// be made of it.
func compact(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	return config
}
