// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/transittest"
)

// TestOfPeer asks for all namespaces of a peer, or for some of them, and for none of others.
func TestOfPeer(t *testing.T) {
	w := transittest.New(t)
	c := transittest.Made(&api.Configuration{}, transittest.Tenant("c"), "c", map[string]string{liqo.LabelRemoteClusterID: "c"})
	for name, tc := range map[string]struct {
		options []client.ListOption
		want    []string
	}{
		"All":    {nil, []string{transittest.Tenant("c"), transittest.Twin}},
		"Tenant": {[]client.ListOption{client.HasLabels{liqo.LabelTenantNamespace}}, []string{transittest.Tenant("c")}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range ofPeer(w, v1.LeadsTo, tc.options...)(t.Context(), c) {
				got = append(got, r.Name)
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			if !slices.Equal(got, tc.want) {
				t.Errorf("another network of c asks for %v, want %v", got, tc.want)
			}
		})
	}
}

// TestOfConsumer asks for the consumer in whose namespace something is.
func TestOfConsumer(t *testing.T) {
	w := transittest.New(t)
	twin := &corev1.Namespace{}
	if err := w.Get(t.Context(), client.ObjectKey{Name: transittest.Twin}, twin); err != nil {
		t.Fatal(err)
	}
	tenant := transittest.Made(&corev1.Namespace{}, "", transittest.Tenant("c"), map[string]string{
		liqo.LabelRemoteClusterID: "c", liqo.LabelTenantNamespace: "true",
	})
	foreign := transittest.Endpoints("a")
	foreign.Labels[api.LabelOriginCluster] = "d"
	nowhere := transittest.Endpoints("a")
	nowhere.Namespace = "nowhere"
	inTenant := transittest.Endpoints("a")
	inTenant.Namespace = transittest.Tenant("c")
	for name, tc := range map[string]struct {
		reason string
		object client.Object
		want   []string
	}{
		"Inside":    {"What is in a twin is of its consumer.", transittest.Endpoints("a"), []string{"c"}},
		"Says":      {"Whatever it says.", foreign, []string{"c"}},
		"Twin":      {"A twin is.", twin, []string{"c"}},
		"Tenant":    {"A tenant namespace is none.", tenant, nil},
		"In tenant": {"Nor is what is in one.", inTenant, nil},
		"Nowhere":   {"A namespace may come later.", nowhere, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range ofConsumer(w)(t.Context(), tc.object) {
				got = append(got, r.Name)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%s It asks for %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
