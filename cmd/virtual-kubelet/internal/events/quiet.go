// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// QuietInTransit returns a broadcaster that broadcasts by another one, but no event of success about an object that another
// cluster reflected here, and that goes on from here: the virtual kubelet of the cluster that it belongs to tells of it there, and
// here the consumer would not be shown it. Failures are told.
func QuietInTransit(broadcaster record.EventBroadcaster) record.EventBroadcaster {
	return quietInTransit{broadcaster}
}

type quietInTransit struct{ record.EventBroadcaster }

// NewRecorder returns a recorder of events.
func (q quietInTransit) NewRecorder(scheme *runtime.Scheme, source corev1.EventSource) record.EventRecorderLogger {
	return quietRecorder{q.EventBroadcaster.NewRecorder(scheme, source)}
}

type quietRecorder struct{ record.EventRecorderLogger }

// WithLogger returns a recorder that is as quiet, and logs with logger.
func (q quietRecorder) WithLogger(logger klog.Logger) record.EventRecorderLogger {
	return quietRecorder{q.EventRecorderLogger.WithLogger(logger)}
}

// Event records an event.
func (q quietRecorder) Event(object runtime.Object, eventType, reason, message string) {
	if isSuccess(eventType, reason) && reflectedHere(object) {
		return
	}
	q.EventRecorderLogger.Event(object, eventType, reason, message)
}

// reflectedHere reports whether another cluster reflected an object here.
func reflectedHere(object runtime.Object) bool {
	accessor, err := meta.Accessor(object)
	return err == nil && accessor.GetLabels()[forge.LiqoOriginClusterIDKey] != ""
}
