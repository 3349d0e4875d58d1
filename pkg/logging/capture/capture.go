// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capture sends what libraries log to the one logger of a program. It does not know how that is made: a program without
// Kubernetes makes one, and links none of these libraries.
package capture

import (
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Libraries makes log the destination of what controller-runtime, client-go and Liqo's packages log. It is called once, by main.
func Libraries(log logr.Logger) {
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("klog"))
}
