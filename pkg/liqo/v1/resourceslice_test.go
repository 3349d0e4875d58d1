// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// slice returns a ResourceSlice that this cluster, called own, makes to the provider p, with conditions.
func slice(authentication, resources api.SliceConditionStatus) *api.ResourceSlice {
	own, p := "own", "p"
	s := &api.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-p", Name: "big", Annotations: map[string]string{api.AnnotationCreateNode: "true"}},
		Spec: api.ResourceSliceSpec{
			ConsumerClusterID: &own, ProviderClusterID: &p, Class: "liqo-broker",
			Resources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
		},
		Status: api.ResourceSliceStatus{Resources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}},
	}
	if authentication != "" {
		s.Status.Conditions = append(s.Status.Conditions, api.ResourceSliceCondition{Type: api.SliceAuthentication, Status: authentication})
	}
	if resources != "" {
		s.Status.Conditions = append(s.Status.Conditions, api.ResourceSliceCondition{
			Type: api.SliceResources, Status: resources, Reason: "Because", Message: "of this",
		})
	}
	return s
}

// fromConsumer makes a ResourceSlice of this cluster one that the consumer c has put here.
func fromConsumer(s *api.ResourceSlice) *api.ResourceSlice {
	own, c := "own", "c"
	s.Labels = map[string]string{liqo.LabelReplicated: "true", liqo.LabelOrigin: c, liqo.LabelDestination: own}
	s.Annotations, s.Namespace, s.Spec.ConsumerClusterID, s.Spec.ProviderClusterID = nil, "tenant-c", &c, &own
	return s
}

func TestGrant(t *testing.T) {
	accepted, why := Decision{Accepted: true}, Decision{Accepted: true, Reason: "Because", Message: "of this"}
	cases := map[string]struct {
		reason         string
		slice          *api.ResourceSlice
		authentication Decision
		resources      Decision
		inForce        bool
	}{
		"InForce":    {"Both are accepted.", slice(api.SliceAccepted, api.SliceAccepted), accepted, why, true},
		"Undecided":  {"Nobody has answered.", slice("", ""), Decision{}, Decision{}, false},
		"FirstPhase": {"There is a certificate, and no resources yet.", slice(api.SliceAccepted, ""), accepted, Decision{}, false},
		"Denied": {
			"The resources are denied.", slice(api.SliceAccepted, api.SliceDenied), accepted,
			Decision{Denied: true, Reason: "Because", Message: "of this"}, false,
		},
		"NoCertificate": {"Nobody could use the resources.", slice(api.SliceDenied, api.SliceAccepted), Decision{Denied: true}, why, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := Grant{
				Class: "liqo-broker", Requested: tc.slice.Spec.Resources, Granted: tc.slice.Status.Resources,
				Authentication: tc.authentication, Resources: tc.resources,
			}
			got := GrantOf(tc.slice)
			if diff := cmp.Diff(want, got); diff != "" || got.InForce() != tc.inForce {
				t.Errorf("%s\nGrantOf(): in force %t, -want +got\n%s", tc.reason, got.InForce(), diff)
			}
		})
	}
}

func TestOffer(t *testing.T) {
	change := func(s *api.ResourceSlice, by func(*api.ResourceSlice)) *api.ResourceSlice { by(s); return s }
	ofProvider := nodename.Name("own", Identity("p"))
	called := func(s *api.ResourceSlice) *api.ResourceSlice {
		fromConsumer(s).Name = ofProvider
		return s
	}
	two := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	offer := func(accepted, ending bool, node string) liqo.Offer {
		return liqo.Offer{
			Tenant: "tenant-p", Name: "big", FromPeer: true, Node: node, Resources: two, Accepted: accepted, Ending: ending, Deleted: ending,
		}
	}
	cases := map[string]struct {
		reason string
		slice  *api.ResourceSlice
		want   liqo.Offer
	}{
		"Accepted": {"The provider grants it.", slice(api.SliceAccepted, api.SliceAccepted), offer(true, false, "big")},
		"Pending":  {"Half of it is not decided.", slice(api.SliceAccepted, ""), offer(false, false, "big")},
		"Ending": {
			"It is being deleted.", change(slice(api.SliceAccepted, api.SliceAccepted), func(s *api.ResourceSlice) {
				s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			}), offer(false, true, "big"),
		},
		"WithoutNode": {
			"Liqo makes no virtual node of it.", change(slice(api.SliceAccepted, api.SliceAccepted), func(s *api.ResourceSlice) {
				s.Annotations[api.AnnotationCreateNode] = "False"
			}), offer(true, false, ""),
		},
		"Silent": {
			"Nobody asks for a virtual node.", change(slice(api.SliceAccepted, api.SliceAccepted), func(s *api.ResourceSlice) {
				s.Annotations = nil
			}), offer(true, false, ""),
		},
		"ToConsumer": {
			"This cluster grants it.", fromConsumer(slice(api.SliceAccepted, api.SliceAccepted)),
			liqo.Offer{Tenant: "tenant-c", Name: "big", Resources: two, Accepted: true},
		},
		"ForOneProvider": {
			"It has the name of a node of one provider.", called(slice(api.SliceAccepted, api.SliceAccepted)),
			liqo.Offer{Tenant: "tenant-c", Name: ofProvider, Node: ofProvider, Resources: two, Accepted: true},
		},
		"NotYetForOne": {
			"There is no such node yet.", called(slice(api.SliceAccepted, api.SliceDenied)),
			liqo.Offer{Tenant: "tenant-c", Name: ofProvider, Resources: two, Denied: "of this (Because)", DeniedFor: "Because"},
		},
		"ForOneOfLiqo": {
			"A broker does not answer it.", change(called(slice(api.SliceAccepted, api.SliceAccepted)), func(s *api.ResourceSlice) {
				s.Spec.Class = api.SliceClassDefault
			}), liqo.Offer{Tenant: "tenant-c", Name: ofProvider, Resources: two, Accepted: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, OfferOf(tc.slice)); diff != "" {
				t.Errorf("%s\nOfferOf(): -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCheckSlice(t *testing.T) {
	other := "other"
	cases := map[string]struct {
		reason string
		slice  *api.ResourceSlice
		peer   cluster.ID
		change func(*api.ResourceSlice)
		want   string
	}{
		"Own":      {"This cluster asks p.", slice("", ""), "p", func(*api.ResourceSlice) {}, ""},
		"Consumer": {"c asks this cluster.", fromConsumer(slice("", "")), "c", func(*api.ResourceSlice) {}, ""},
		"Origin": {"A label names another one.", fromConsumer(slice("", "")), "c", func(s *api.ResourceSlice) {
			s.Labels[liqo.LabelOrigin] = other
		}, `label liqo.io/originID is "other"`},
		"ForAnother": {"c asks in the name of another one.", fromConsumer(slice("", "")), "c", func(s *api.ResourceSlice) {
			s.Spec.ConsumerClusterID = &other
		}, `spec.consumerClusterID is "other"`},
		"AtAnother": {"c asks another one.", fromConsumer(slice("", "")), "c", func(s *api.ResourceSlice) {
			s.Spec.ProviderClusterID = &other
		}, `spec.providerClusterID is "other"`},
		"AsIfOurs": {"c leaves out that it has put it here.", fromConsumer(slice("", "")), "c", func(s *api.ResourceSlice) {
			s.Labels = nil
		}, `spec.consumerClusterID is "c"`},
		"Nobody": {"It does not say who is asked.", slice("", ""), "p", func(s *api.ResourceSlice) {
			s.Spec.ProviderClusterID = nil
		}, `spec.providerClusterID is "", in the tenant namespace of "p": want "p"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.change(tc.slice)
			err := CheckSlice(tc.slice, tc.peer, "own")
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nCheckSlice() = %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
