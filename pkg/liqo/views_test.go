// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo_test

import (
	"fmt"
	"maps"
	"net/netip"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/views"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

func TestViews(t *testing.T) {
	all := map[string]netip.Prefix{"n1": netip.MustParsePrefix("10.69.0.0/16"), "provider-a": netip.MustParsePrefix("10.65.0.0/16")}
	labels := liqo.LabelViews(map[string]string{liqo.LabelProvider: "a"}, all)
	want := map[string]string{
		liqo.LabelProvider: "a", "view.brokering.liqo.io/n1": "10.69.0.0_16", "view.brokering.liqo.io/provider-a": "10.65.0.0_16",
	}
	if !maps.Equal(labels, want) {
		t.Errorf("labels = %v, want %v", labels, want)
	}
	for name, value := range labels {
		if wrong := append(validation.IsQualifiedName(name), validation.IsValidLabelValue(value)...); len(wrong) > 0 {
			t.Errorf("label %s=%s: %v", name, value, wrong)
		}
	}
	if told, unreadable := liqo.ViewsOf(labels); !maps.Equal(told, all) || len(unreadable) > 0 {
		t.Errorf("told %v, unreadable %v", told, unreadable)
	}
	if liqo.LabelViews(nil, nil) != nil {
		t.Error("nothing is something")
	}
}

// TestUnreadableViews leaves out what cannot be read, and takes no other away for it.
func TestUnreadableViews(t *testing.T) {
	labels := map[string]string{
		"view.brokering.liqo.io/good": "10.69.1.2_16", "view.brokering.liqo.io/bad": "10.69.0.0", "view.brokering.liqo.io/a/b": "10.65.0.0_16",
		"view.brokering.liqo.io/": "10.64.0.0_16", "liqo.io/type": "virtual-node",
	}
	told, unreadable := liqo.ViewsOf(labels)
	if !maps.Equal(told, map[string]netip.Prefix{"good": netip.MustParsePrefix("10.69.0.0/16")}) || len(unreadable) != 3 {
		t.Errorf("told %v, unreadable %v", told, unreadable)
	}
	for i := range 10 * views.MaxViews {
		labels[fmt.Sprint("view.brokering.liqo.io/", i)] = "10.0.0.0_16"
	}
	if told, unreadable = liqo.ViewsOf(labels); len(told)+len(unreadable) > 2*views.MaxViews {
		t.Errorf("%d are told and %d unreadable", len(told), len(unreadable))
	}
}

// TestNodes holds that what is told of nodes is read again, whatever else labels tell.
func TestNodes(t *testing.T) {
	all := map[string]cluster.ID{"liqo-a-abcdefghijklmnop": "a", "liqo-b-abcdefghijklmnop": "b"}
	labels := liqo.LabelNodes(map[string]string{liqo.LabelProvider: "a", "view.brokering.liqo.io/n1": "10.69.0.0_16"}, all)
	if len(labels) != 4 || labels["node.brokering.liqo.io/liqo-a-abcdefghijklmnop"] != "a" {
		t.Errorf("labels = %v", labels)
	}
	if got := liqo.NodesOf(labels); !maps.Equal(got, all) {
		t.Errorf("NodesOf() = %v, want %v", got, all)
	}
	for label, want := range map[string]bool{
		"node.brokering.liqo.io/x": true, "view.brokering.liqo.io/x": true, liqo.LabelProvider: false, "liqo.io/type": false,
	} {
		if liqo.IsTold(label) != want {
			t.Errorf("IsTold(%s) = %t", label, !want)
		}
	}
}
