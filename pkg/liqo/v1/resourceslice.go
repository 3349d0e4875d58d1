// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// Grant is what one cluster asks of another by a ResourceSlice, and what was decided of it. It shares memory with the object, and is not
// to be changed.
type Grant struct {
	// Class is who decides.
	Class string
	// Requested is what is asked for, and Granted what the provider has written; nobody measures that it has it.
	Requested, Granted corev1.ResourceList
	// Authentication is what was decided of the request for a certificate, and Resources of that for resources.
	Authentication, Resources Decision
}

// Decision is what was decided of a request; the zero Decision is none yet.
type Decision struct {
	// Accepted and Denied are both false until somebody has decided.
	Accepted, Denied bool
	// Reason and Message are why, for programs and for people.
	Reason, Message string
}

// InForce reports whether what is granted may be used: Liqo makes a virtual node of nothing else.
func (g *Grant) InForce() bool { return g.Authentication.Accepted && g.Resources.Accepted }

// GrantOf returns what a ResourceSlice asks for, and what was decided of it.
func GrantOf(s *api.ResourceSlice) Grant {
	return Grant{
		Class: s.Spec.Class, Requested: s.Spec.Resources, Granted: s.Status.Resources,
		Authentication: decision(s, api.SliceAuthentication), Resources: decision(s, api.SliceResources),
	}
}

func decision(s *api.ResourceSlice, of api.SliceConditionType) Decision {
	for i := range s.Status.Conditions {
		if c := &s.Status.Conditions[i]; c.Type == of {
			return Decision{Accepted: c.Status == api.SliceAccepted, Denied: c.Status == api.SliceDenied, Reason: c.Reason, Message: c.Message}
		}
	}
	return Decision{}
}

// FromConsumer reports whether a ResourceSlice is one that a consumer has put here; others are what this cluster asks of a provider.
func FromConsumer(s *api.ResourceSlice) bool {
	return s.Labels[liqo.LabelReplicated] == liqo.ReplicationValue
}

// OfferOf returns the value of what a ResourceSlice grants: by the peer if this cluster asks, and by this cluster if a consumer does.
func OfferOf(s *api.ResourceSlice) liqo.Offer {
	grant, ending := GrantOf(s), !s.DeletionTimestamp.IsZero()
	var denied, deniedFor string
	if of := grant.Resources; of.Denied {
		denied, deniedFor = fmt.Sprintf("%s (%s)", of.Message, of.Reason), of.Reason
	}
	return liqo.Offer{
		Tenant: s.Namespace, Name: s.Name, FromPeer: !FromConsumer(s), Node: nodeName(s), Resources: grant.Granted,
		Accepted: grant.InForce() && !ending, Denied: denied, DeniedFor: deniedFor, Ending: ending, Deleted: ending,
		Unreadable: lenient.Unreadable(s),
	}
}

// nodeName returns the name of the virtual node of a ResourceSlice: its own. It is empty for one of this cluster of which Liqo makes none
// (virtualnodecreator_controller.go in liqo/pkg/liqo-controller-manager/virtualnodecreator-controller@v1.2.0), and for one of a consumer
// whose node is not of a single provider: whatever that is called, it stands for this cluster.
func nodeName(s *api.ResourceSlice) string {
	var named bool
	if FromConsumer(s) {
		_, ofProvider := nodename.MarkOf(s.Name)
		named = ofProvider && s.Spec.Class == api.SliceClassBroker && decision(s, api.SliceResources).Accepted
	} else {
		wanted := s.Annotations[api.AnnotationCreateNode]
		named = wanted != "" && !strings.EqualFold(wanted, "false")
	}
	if !named {
		return ""
	}
	return s.Name
}

// CheckSlice returns what a ResourceSlice says that cannot be, given the peer in whose tenant namespace it is, and what this cluster is
// called: nobody else can write there.
func CheckSlice(s *api.ResourceSlice, peer, own cluster.ID) error {
	consumer, provider := own, peer
	if FromConsumer(s) {
		consumer, provider = peer, own
		if origin := s.Labels[liqo.LabelOrigin]; origin != string(peer) {
			return fmt.Errorf("label %s is %q, in the tenant namespace of %q", liqo.LabelOrigin, origin, peer)
		}
	}
	for _, of := range []struct {
		field string
		says  *string
		want  cluster.ID
	}{
		{"spec.consumerClusterID", s.Spec.ConsumerClusterID, consumer}, {"spec.providerClusterID", s.Spec.ProviderClusterID, provider},
	} {
		if of.says == nil || *of.says != string(of.want) {
			return fmt.Errorf("%s is %q, in the tenant namespace of %q: want %q", of.field, value(of.says), peer, of.want)
		}
	}
	return nil
}

func value(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
