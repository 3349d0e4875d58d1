// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/watch"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/report"
)

// Changed lets pass what happens to reports, and nothing that happens to other ConfigMaps, or to what is not the report in one.
func Changed() predicate.Predicate {
	return predicate.And(
		predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == report.Name }),
		predicate.Funcs{UpdateFunc: watch.Changed(func(before, after *corev1.ConfigMap) bool {
			return before.Data[report.Key] != after.Data[report.Key]
		})},
	)
}

// ViewsChanged lets pass what of reports changes which providers a consumer reaches: other views, and the first sign of life after a
// silence that was too long. An agent writes each minute, and a consumer may have a thousand namespaces. That a silence begins no event
// tells: [grant.Views.Turns] does.
func ViewsChanged(now clock.PassiveClock) predicate.Predicate {
	return predicate.And(Changed(), predicate.Funcs{UpdateFunc: watch.Changed(func(before, after *corev1.ConfigMap) bool {
		was, is := toldIn(before, now), toldIn(after, now)
		return was.IsFresh() != is.IsFresh() || !maps.Equal(was.Acknowledged, is.Acknowledged)
	})})
}

// toldIn returns what a report tells at this moment; nothing if it cannot be read.
func toldIn(cm *corev1.ConfigMap, now clock.PassiveClock) grant.Views {
	told, _ := report.Parse(cm.Data[report.Key])
	return grant.Views{Asked: true, Acknowledged: told.Views, Told: told.At, Now: now.Now()}
}

// gone lets pass that something is gone.
func gone() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	}
}

// SeenChanged lets pass what makes this cluster see the pods of a peer under another prefix, and what is gone; what is new is seen later.
func SeenChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: watch.Changed(v1.PodsChanged),
	}
}

// GrantedChanged lets pass the updates of a Provider by which consumers are to reach it, or not any more. Its coming and going is for who
// counts what it has.
func GrantedChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: watch.Changed(func(before, after *v1alpha1.Provider) bool { return isReached(before) != isReached(after) }),
	}
}

// isReached reports whether consumers are to reach a provider, if it is seen here. They are to reach full and cordoned ones, too, and one
// that is drained until no pod is there: a view that comes and goes would have virtual kubelets replaced, and the way to what runs closed.
func isReached(p *v1alpha1.Provider) bool { return p.Status.ObservedGeneration != 0 && p.MayHavePods() }
