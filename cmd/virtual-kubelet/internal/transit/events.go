// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"context"

	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
)

// reasonScheduled is the reason of the event that tells to which node a scheduler bound a pod
// (k8s.io/kubernetes/pkg/scheduler/schedule_one.go@v1.34).
const reasonScheduled = "Scheduled"

// ToldReasons returns the reasons of the events of this package that are for the cluster that a
// pod or an endpoint came from. They name no cluster.
func ToldReasons() []string { return []string{ReasonNoAPIServer, ReasonTooMany} }

// transitEvents is a reflector of events that leaves out to which node of the foreign cluster a pod in transit was bound. This cluster
// says already to which cluster it went; the node in there is none that its consumer knows or can do anything about. Why a pod cannot be
// bound is told.
type transitEvents struct{ manager.Reflector }

// NewEvents returns a reflector of events that reflects as another one does, but not to which node
// of the foreign cluster a pod in transit was bound.
func NewEvents(reflector manager.Reflector) manager.Reflector { return transitEvents{reflector} }

// StartNamespace begins the reflection of a namespace.
func (t transitEvents) StartNamespace(opts *options.NamespacedOpts) {
	pods := opts.LocalFactory.Core().V1().Pods().Lister().Pods(opts.LocalNamespace)
	opts.LocalClient = transitEventClient{opts.LocalClient, pods}
	t.Reflector.StartNamespace(opts)
}

type transitEventClient struct {
	kubernetes.Interface
	pods corev1listers.PodNamespaceLister
}

// CoreV1 returns the client of the group that has events.
func (c transitEventClient) CoreV1() typedcorev1.CoreV1Interface {
	return transitEventCore{c.Interface.CoreV1(), c.pods}
}

type transitEventCore struct {
	typedcorev1.CoreV1Interface
	pods corev1listers.PodNamespaceLister
}

func (c transitEventCore) Events(namespace string) typedcorev1.EventInterface {
	return transitEventWriter{c.CoreV1Interface.Events(namespace), c.pods}
}

type transitEventWriter struct {
	typedcorev1.EventInterface
	pods corev1listers.PodNamespaceLister
}

// Create writes an event. One that is left out is answered as if it were written: nobody asks for it again.
func (w transitEventWriter) Create(ctx context.Context, event *corev1.Event, opts metav1.CreateOptions) (*corev1.Event, error) {
	if event.Type == corev1.EventTypeNormal && event.Reason == reasonScheduled && w.inTransit(&event.InvolvedObject) {
		return event, nil
	}
	return w.EventInterface.Create(ctx, event, opts)
}

// inTransit reports whether an object is a pod that came from another cluster.
func (w transitEventWriter) inTransit(object *corev1.ObjectReference) bool {
	if object.Kind != "Pod" {
		return false
	}
	pod, err := w.pods.Get(object.Name)
	if err != nil {
		return false
	}
	_, ok := inTransit(pod)
	return ok
}
