// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/views"
)

// prefixView begins the labels by which a broker tells a consumer under which prefixes it sees the pods of providers: a key follows, and
// the value is the prefix with an underscore for the slash, which no value of a label has.
const (
	prefixView = "view.brokering.liqo.io/"
	slashView  = "_"
)

// prefixNode begins the labels by which a broker tells a consumer which nodes of single providers it is to have: the name of a node
// follows, and the value is the provider.
const prefixNode = "node.brokering.liqo.io/"

// IsTold reports whether a label is one by which a broker tells the agent of a consumer something, and which says nothing of a node.
func IsTold(label string) bool {
	return strings.HasPrefix(label, prefixView) || strings.HasPrefix(label, prefixNode)
}

// LabelViews returns labels that tell views by their keys, beside others.
func LabelViews(others map[string]string, all map[string]netip.Prefix) map[string]string {
	return labelAll(others, prefixView, all, func(prefix netip.Prefix) string { return strings.Replace(prefix.String(), "/", slashView, 1) })
}

// LabelNodes returns labels that tell of nodes of single providers, by their names, beside others.
func LabelNodes(others map[string]string, all map[string]cluster.ID) map[string]string {
	return labelAll(others, prefixNode, all, func(provider cluster.ID) string { return string(provider) })
}

// labelAll returns labels that begin with a prefix and have values, beside others, which it does not change.
func labelAll[T any](others map[string]string, prefix string, all map[string]T, text func(T) string) map[string]string {
	if len(all) == 0 {
		return others
	}
	labels := make(map[string]string, len(others)+len(all))
	maps.Copy(labels, others)
	for key, value := range all {
		labels[prefix+key] = text(value)
	}
	return labels
}

// NodesOf returns the nodes of single providers of which labels tell, by their names, as whoever has written them likes.
func NodesOf(labels map[string]string) map[string]cluster.ID {
	told := map[string]cluster.ID{}
	for label, value := range labels {
		if name, is := strings.CutPrefix(label, prefixNode); is {
			told[name] = cluster.ID(value)
		}
	}
	return told
}

// ViewsOf returns the views that labels tell, by their keys, and why others cannot be read. More than can be listed are not looked at.
func ViewsOf(labels map[string]string) (told map[string]netip.Prefix, unreadable map[string]string) {
	told, unreadable = map[string]netip.Prefix{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		key, is := strings.CutPrefix(name, prefixView)
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
