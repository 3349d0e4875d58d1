// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"maps"
	"slices"
	"strings"

	discoveryv1alpha1 "github.com/liqotech/liqo/apis/discovery/v1alpha1"
	"github.com/liqotech/liqo/pkg/discovery"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
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

// PublicMetadata is what may be shown of the metadata: of the labels those by which
// Liqo tells how a cluster was found. Annotations may hold anything and are left out.
type PublicMetadata struct {
	Name              string            `json:"name"`
	Labels            map[string]string `json:"labels,omitempty"`
	CreationTimestamp metav1.Time       `json:"creationTimestamp"`
}

// PublicSpec is what may be shown of the spec.
type PublicSpec struct {
	ClusterIdentity        discoveryv1alpha1.ClusterIdentity    `json:"clusterIdentity"`
	PeeringType            discoveryv1alpha1.PeeringType        `json:"peeringType,omitempty"`
	OutgoingPeeringEnabled discoveryv1alpha1.PeeringEnabledType `json:"outgoingPeeringEnabled"`
	IncomingPeeringEnabled discoveryv1alpha1.PeeringEnabledType `json:"incomingPeeringEnabled"`
	ForeignAuthURL         string                               `json:"foreignAuthUrl"`
	InsecureSkipTLSVerify  bool                                 `json:"insecureSkipTLSVerify"`
	TTL                    int                                  `json:"ttl,omitempty"`
}

// PublicStatus is what may be shown of the status.
type PublicStatus struct {
	PeeringConditions []PublicCondition `json:"peeringConditions,omitempty"`
}

// PublicCondition is what may be shown of a condition. Its message may quote an
// error of any kind and is left out.
type PublicCondition struct {
	Type               discoveryv1alpha1.PeeringConditionType       `json:"type"`
	Status             discoveryv1alpha1.PeeringConditionStatusType `json:"status"`
	Reason             string                                       `json:"reason,omitempty"`
	LastTransitionTime metav1.Time                                  `json:"lastTransitionTime"`
}

// Publish returns what a catalog may show of a foreign cluster.
func Publish(fc *ForeignCluster) PublicForeignCluster {
	public := PublicForeignCluster{
		TypeMeta: metav1.TypeMeta{Kind: "ForeignCluster", APIVersion: discoveryv1alpha1.GroupVersion.String()},
		Metadata: PublicMetadata{Name: fc.Name, Labels: publicLabels(fc.Labels), CreationTimestamp: fc.CreationTimestamp},
		Spec: PublicSpec{
			ClusterIdentity:        fc.Spec.ClusterIdentity,
			PeeringType:            fc.Spec.PeeringType,
			OutgoingPeeringEnabled: fc.Spec.OutgoingPeeringEnabled,
			IncomingPeeringEnabled: fc.Spec.IncomingPeeringEnabled,
			ForeignAuthURL:         liqo.PublicURL(fc.Spec.ForeignAuthURL),
			InsecureSkipTLSVerify:  fc.Spec.InsecureSkipTLSVerify == nil || *fc.Spec.InsecureSkipTLSVerify,
			TTL:                    fc.Spec.TTL,
		},
	}
	for _, c := range fc.Status.PeeringConditions {
		public.Status.PeeringConditions = append(public.Status.PeeringConditions, PublicCondition{
			Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return public
}

// AsProvider returns what may be shown to those who may know only that the cluster
// provides: not whether it consumes as well, nor whether somebody lets it, nor that it came to consume. They see what Liqo has of a
// cluster that does none of that.
func (p PublicForeignCluster) AsProvider() PublicForeignCluster {
	if p.Metadata.Labels[discovery.DiscoveryTypeLabel] == string(discovery.IncomingPeeringDiscovery) {
		p.Metadata.Labels = maps.Clone(p.Metadata.Labels)
		delete(p.Metadata.Labels, discovery.DiscoveryTypeLabel)
	}
	p.Spec.IncomingPeeringEnabled = discoveryv1alpha1.PeeringEnabledAuto
	p.Status.PeeringConditions = slices.DeleteFunc(slices.Clone(p.Status.PeeringConditions), func(c PublicCondition) bool {
		return c.Type == discoveryv1alpha1.IncomingPeeringCondition
	})
	return p
}

// publicLabels returns the labels of Liqo's discovery.
func publicLabels(all map[string]string) map[string]string {
	public := map[string]string{}
	for key, value := range all {
		if strings.HasPrefix(key, discoveryv1alpha1.GroupVersion.Group+"/") {
			public[key] = value
		}
	}
	return public
}
