// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package lenient

import (
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
)

// Answer repairs one answer of an API server.
func Answer(scheme *runtime.Scheme, body []byte) []byte {
	return newRepairer(scheme, logr.Discard()).answer(body)
}
