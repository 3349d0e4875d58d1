// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// OffloadingOf returns the value of what a NamespaceOffloading says.
func OffloadingOf(o *api.NamespaceOffloading) liqo.Offloading {
	selected := liqo.SelectedBy(&o.Spec.ClusterSelector)
	return liqo.Offloading{
		Namespace: o.Namespace, Object: o, Managed: o.Labels[liqo.LabelBrokerManaged] == liqo.BrokerManaged,
		Leaves: o.Spec.PodOffloadingStrategy != api.PodsLocal, Remote: o.Spec.PodOffloadingStrategy == api.PodsRemote,
		Selected: selected, Placing: liqo.NotedPlacing(o, selected), RemoteName: o.Status.RemoteNamespaceName,
		Deleted: !o.DeletionTimestamp.IsZero(), Seen: o.Status.ObservedGeneration == o.Generation,
	}
}

// ForgeOffloading returns the NamespaceOffloading that the broker keeps to send all pods of a namespace of this cluster to others, of which
// it selects none yet.
func ForgeOffloading(namespace string, preferred liqo.Mapping, own cluster.Identity) *api.NamespaceOffloading {
	return &api.NamespaceOffloading{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: liqo.OffloadingName, Labels: map[string]string{liqo.LabelBrokerManaged: liqo.BrokerManaged},
		},
		Spec: api.NamespaceOffloadingSpec{
			NamespaceMappingStrategy: fitting(preferred, namespace, own), PodOffloadingStrategy: api.PodsRemote,
		},
	}
}

// fitting returns how Liqo is to name a namespace of this cluster: as is preferred, if that fits.
func fitting(preferred liqo.Mapping, namespace string, own cluster.Identity) api.MappingStrategy {
	return api.MappingStrategy(liqo.FittingMapping(preferred, namespace, string(own.ID)))
}

// OffloadingTo returns the NamespaceOffloading by which pods of a namespace of this cluster may run here and on one other cluster.
func OffloadingTo(namespace string, own cluster.Identity, to cluster.ID) *api.NamespaceOffloading {
	return &api.NamespaceOffloading{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: liqo.OffloadingName},
		Spec: api.NamespaceOffloadingSpec{
			NamespaceMappingStrategy: fitting(liqo.MappingDefault, namespace, own), PodOffloadingStrategy: api.PodsLocalAndRemote,
			ClusterSelector: liqo.ForgeSelector([]cluster.ID{to}),
		},
	}
}

// Select makes an offloading select clusters, in order, and no others, and notes on which of them new pods are placed.
func Select(o *api.NamespaceOffloading, selected, placing []cluster.ID) {
	o.Spec.ClusterSelector = liqo.ForgeSelector(selected)
	liqo.NotePlacing(o, selected, placing)
}

// ReceptionOf returns what became of the namespace of an offloading on a cluster.
func ReceptionOf(o *api.NamespaceOffloading, id cluster.ID) liqo.Reception {
	return reception(o.Status.RemoteNamespacesConditions[string(id)])
}

// reception returns what conditions say of one cluster. What was left behind when it was taken out says nothing.
func reception(conditions api.RemoteNamespaceConditions) liqo.Reception {
	required := false
	var is liqo.Reception
	for i := range conditions {
		switch c := &conditions[i]; c.Type {
		case api.OffloadingRequired:
			required = c.Status == corev1.ConditionTrue
		case api.RemoteNamespaceReady:
			is.Present = c.Status == corev1.ConditionTrue
			if is.Refused = c.Status == corev1.ConditionFalse && c.Reason == string(api.MappingFailing); is.Refused {
				is.Since = c.LastTransitionTime.Time
			}
		}
	}
	if !required {
		return liqo.Reception{}
	}
	return is
}

// compactOffloading drops what nobody reads of a NamespaceOffloading that the broker keeps. It can have the state of a namespace on a
// thousand clusters.
func compactOffloading(c *liqo.Compactor, o *api.NamespaceOffloading) {
	c.Selector(&o.Spec.ClusterSelector)
	remote := make(map[string]api.RemoteNamespaceConditions, len(o.Status.RemoteNamespacesConditions))
	for name, conditions := range o.Status.RemoteNamespacesConditions {
		if is := reception(conditions); !is.Present && !is.Refused {
			continue
		}
		kept := make(api.RemoteNamespaceConditions, len(conditions))
		for i := range conditions {
			from := &conditions[i]
			kept[i] = api.RemoteNamespaceCondition{Type: from.Type, Status: from.Status, Reason: c.Name(from.Reason)}
			if from.Status == corev1.ConditionFalse {
				kept[i].LastTransitionTime = from.LastTransitionTime
			}
		}
		remote[c.Name(name)] = kept
	}
	o.Status.RemoteNamespacesConditions = remote
}
