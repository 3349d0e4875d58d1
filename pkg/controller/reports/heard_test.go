// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package reports_test

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/reports"
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

// TestUncached tells the same of an API server, which has no indexes, and fails if that does not answer.
func TestUncached(t *testing.T) {
	w := newWorld(t)
	var broken client.ObjectList
	server := interceptor.NewClient(w.WithWatch, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			var chosen client.ListOptions
			if chosen.ApplyOptions(options); chosen.FieldSelector != nil || reflect.TypeOf(list) == reflect.TypeOf(broken) {
				return errors.New("not answered")
			}
			return c.List(ctx, list, options...)
		},
	})
	consumers := []v1alpha1.Consumer{{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, {ObjectMeta: metav1.ObjectMeta{Name: "stranger"}}}
	same := func(reason string) {
		t.Helper()
		want, err := w.reports.Heard(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		all, err := reports.Uncached(t.Context(), server, transittest.Own, w.now, consumers)
		got := all["c"]
		if err != nil || got.Asked != want.Asked || !maps.Equal(got.Granted, want.Granted) || got.Unreadable != want.Unreadable ||
			!got.Told.Equal(want.Told) || !maps.Equal(got.Acknowledged, want.Acknowledged) || want.Asked && !got.Now.Equal(want.Now) {
			t.Errorf("%s It is %+v, %v, want %+v", reason, got, err, want)
		}
		if s := all["stranger"]; !s.Told.IsZero() || s.Knows("p") {
			t.Errorf("%s Of a stranger it is %+v", reason, s)
		}
	}
	same("Nothing is told.")
	w.write("c", "{")
	same("It cannot be read.")
	w.report("c", w.now.Add(-time.Minute), map[string]netip.Prefix{"a": netip.MustParsePrefix("10.69.0.0/16")})
	same("Something is told.")
	change(w, &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, func(c *v1alpha1.Consumer) {
		c.Spec.Views = v1alpha1.ViewsUnchecked
		consumers[0] = *c
	})
	same("Nothing need be told.")
	for _, broken = range []client.ObjectList{&v1alpha1.ProviderList{}, &api.ConfigurationList{}, &api.ForeignClusterList{}} {
		if _, err := reports.Uncached(t.Context(), server, transittest.Own, w.now, consumers); err == nil {
			t.Errorf("without %T it answers", broken)
		}
	}
}
