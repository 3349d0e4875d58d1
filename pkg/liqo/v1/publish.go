// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// PublicForeignCluster is what a catalog may show of a foreign cluster. It has
// the shape of a ForeignCluster and only fields that are listed here, so that a
// field that a later Liqo adds is not shown by accident.
type PublicForeignCluster struct {
	metav1.TypeMeta `json:",inline"`

	Metadata PublicMetadata `json:"metadata"`
	Spec     PublicSpec     `json:"spec"`
	Status   PublicStatus   `json:"status"`
}

// PublicMetadata is what may be shown of the metadata: of the labels that with the ID. Annotations may hold anything and are left out.
type PublicMetadata struct {
	Name              string            `json:"name"`
	Labels            map[string]string `json:"labels,omitempty"`
	CreationTimestamp metav1.Time       `json:"creationTimestamp"`
}

// PublicSpec is what may be shown of the spec.
type PublicSpec struct {
	ClusterID string `json:"clusterID"`
}

// PublicStatus is what may be shown of the status: no proxies, and no namespaces.
type PublicStatus struct {
	Role         api.Role      `json:"role"`
	APIServerURL string        `json:"apiServerUrl,omitempty"`
	Modules      PublicModules `json:"modules"`
}

// PublicModules is what may be shown of the parts of Liqo.
type PublicModules struct {
	Networking     PublicModule `json:"networking"`
	Authentication PublicModule `json:"authentication"`
	Offloading     PublicModule `json:"offloading"`
}

// PublicModule is what may be shown of one part.
type PublicModule struct {
	Enabled    bool              `json:"enabled"`
	Conditions []PublicCondition `json:"conditions,omitempty"`
}

// PublicCondition is what may be shown of a condition. Its message may quote an
// error of any kind and is left out.
type PublicCondition struct {
	Type               api.ConditionType   `json:"type"`
	Status             api.ConditionStatus `json:"status"`
	Reason             string              `json:"reason,omitempty"`
	LastTransitionTime metav1.Time         `json:"lastTransitionTime"`
}

// Publish returns what a catalog may show of a foreign cluster.
func Publish(fc *api.ForeignCluster) PublicForeignCluster {
	labels := map[string]string{}
	if id, has := fc.Labels[liqo.LabelRemoteClusterID]; has {
		labels[liqo.LabelRemoteClusterID] = id
	}
	modules := &fc.Status.Modules
	return PublicForeignCluster{
		TypeMeta: metav1.TypeMeta{Kind: api.ForeignClusterKind, APIVersion: api.CoreGroup + "/" + api.Beta},
		Metadata: PublicMetadata{Name: fc.Name, Labels: labels, CreationTimestamp: fc.CreationTimestamp},
		Spec:     PublicSpec{ClusterID: fc.Spec.ClusterID},
		Status: PublicStatus{
			Role: fc.Status.Role, APIServerURL: liqo.PublicURL(fc.Status.APIServerURL),
			Modules: PublicModules{
				Networking: publicModule(&modules.Networking), Authentication: publicModule(&modules.Authentication),
				Offloading: publicModule(&modules.Offloading),
			},
		},
	}
}

func publicModule(m *api.Module) PublicModule {
	public := PublicModule{Enabled: m.Enabled}
	for _, c := range m.Conditions {
		public.Conditions = append(public.Conditions, PublicCondition{
			Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return public
}

// AsProvider returns what may be shown to those who may know only that the cluster
// provides: not whether it consumes as well, nor who came to whom.
func (p PublicForeignCluster) AsProvider() PublicForeignCluster {
	p.Status.Role = api.RoleProvider
	modules := &p.Status.Modules
	for m, about := range map[*PublicModule]api.ConditionType{
		&modules.Networking: api.NetworkConnectionStatus, &modules.Authentication: api.AuthIdentityControlPlaneStatus,
	} {
		m.Conditions = slices.DeleteFunc(slices.Clone(m.Conditions), func(c PublicCondition) bool { return c.Type != about })
	}
	return p
}
