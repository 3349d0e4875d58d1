// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"slices"
	"testing"

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
