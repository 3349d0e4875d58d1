// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/capacitorset/liqo-broker/pkg/core/views"
)

// PrefixView begins the labels by which a broker tells a consumer under which prefixes it sees the pods of providers: a key follows, and
// the value is the prefix with an underscore for the slash, which no value of a label has.
const (
	PrefixView = "view.brokering.liqo.io/"
	slashView  = "_"
)

// LabelViews returns labels that tell views by their keys, beside others.
func LabelViews(others map[string]string, all map[string]netip.Prefix) map[string]string {
	if len(all) == 0 {
		return others
	}
	labels := make(map[string]string, len(others)+len(all))
	maps.Copy(labels, others)
	for key, prefix := range all {
		labels[PrefixView+key] = strings.Replace(prefix.String(), "/", slashView, 1)
	}
	return labels
}

// ViewsOf returns the views that labels tell, by their keys, and why others cannot be read. More than can be listed are not looked at.
func ViewsOf(labels map[string]string) (told map[string]netip.Prefix, unreadable map[string]string) {
	told, unreadable = map[string]netip.Prefix{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		key, is := strings.CutPrefix(name, PrefixView)
		if !is || len(told)+len(unreadable) == 2*views.MaxViews {
			continue
		}
		if err := views.CheckKey(key); err != nil {
			unreadable[key] = err.Error()
			continue
		}
		prefix, err := netip.ParsePrefix(strings.Replace(labels[name], slashView, "/", 1))
		if err != nil {
			unreadable[key] = fmt.Sprintf("%.64q is no prefix", labels[name])
			continue
		}
		told[key] = prefix.Masked()
	}
	return told, unreadable
}
