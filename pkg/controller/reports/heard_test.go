// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package reports_test

import (
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/transittest"
)

// telling returns a ResourceSlice of consumer c that tells it a view.
func telling(name, class, view, prefix string) *api.ResourceSlice {
	s := &api.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: transittest.Tenant("c"), Name: name, Labels: map[string]string{
		liqo.LabelReplicated: "true", liqo.LabelOrigin: "c", liqo.LabelRemoteClusterID: "c",
	}}}
	consumer, own := "c", string(transittest.Own)
	s.Spec.Class, s.Spec.ConsumerClusterID, s.Spec.ProviderClusterID = class, &consumer, &own
	s.Status.NodeLabels = liqo.LabelViews(nil, map[string]netip.Prefix{view: netip.MustParsePrefix(prefix)})
	return s
}

// TestHeard tells what an agent has told, beside what the consumer's ResourceSlices tell it.
func TestHeard(t *testing.T) {
	const one, other, third = "0123456789abcdef0123", "1123456789abcdef0123", "2123456789abcdef0123"
	w := newWorld(t,
		telling("a", api.SliceClassBroker, one, "10.69.0.0/16"), telling("b", api.SliceClassBroker, other, "10.65.0.0/16"),
		telling("liqos", "default", third, "10.66.0.0/16"))
	heard := func() grant.Heard {
		t.Helper()
		h, err := w.reports.Heard(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	want := map[string]netip.Prefix{one: netip.MustParsePrefix("10.69.0.0/16"), other: netip.MustParsePrefix("10.65.0.0/16")}
	if h := heard(); !h.Asked || !maps.Equal(h.ToldViews, want) || h.Unreadable != "" || !h.Told.IsZero() {
		t.Errorf("before anything is told: %+v", h)
	}
	w.write("c", "{")
	if h := heard(); !strings.Contains(h.Unreadable, "read the report") {
		t.Errorf("of what cannot be read: %+v", h)
	}
	w.report("c", w.now.Add(-time.Minute), map[string]netip.Prefix{one: want[one]})
	h := heard()
	if agent, _ := h.Agent(); agent != grant.AgentBehind || h.Behind() != 1 || h.Unreadable != "" {
		t.Errorf("one view is not acknowledged: %+v", h)
	}
	change(w, &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, func(c *v1alpha1.Consumer) {
		c.Spec.Views = v1alpha1.ViewsUnchecked
	})
	if h := heard(); h.Asked || h.Unreadable != "" || len(h.ToldViews) != 0 {
		t.Errorf("of one that need not tell anything: %+v", h)
	}
	if h, err := w.reports.Heard(t.Context(), "stranger"); err != nil || len(h.ToldViews) > 0 || !h.Told.IsZero() {
		t.Errorf("of a stranger: %+v, %v", h, err)
	}
}
