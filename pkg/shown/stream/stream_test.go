// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
	"github.com/capacitorset/liqo-broker/pkg/shown/showntest"
)

// TestConsumersLearnNothingOfOthers has what a consumer may not see change: it is told nothing, and no number that grows with it.
func TestConsumersLearnNothingOfOthers(t *testing.T) {
	out := &writer{who: Watcher{Consumer: string(showntest.Sees.ID), Hides: true}, sent: map[string]string{}}
	of := func(consumer cluster.ID, pod, address string) feed.Item {
		return feed.Item{Key: pod, Consumer: string(consumer), Value: apiv1.Workload{Pod: pod, Address: address}}
	}
	out.item("epoch.1.scope", feed.Kind("workloads"), of(showntest.Sees.ID, "own", "10.0.0.1"), false)
	first := string(out.buffer)
	if !strings.Contains(first, `"pod":"own"`) || strings.Contains(first, "id: ") || strings.Contains(first, "10.0.0.1") {
		t.Errorf("the first event is %q", first)
	}
	out.item("epoch.2.scope", feed.Kind("workloads"), of(showntest.Sees.ID, "own", "10.0.0.2"), false)
	out.item("epoch.3.scope", feed.Kind("workloads"), of("other", "foreign", "10.0.0.3"), false)
	if more := string(out.buffer)[len(first):]; more != "" {
		t.Errorf("it learns of what it may not see: %q", more)
	}
	out.item("epoch.4.scope", feed.Kind("workloads"), of(showntest.Sees.ID, "own", ""), true)
	out.item("epoch.5.scope", feed.Kind("workloads"), of(showntest.Sees.ID, "own", ""), false)
	if more := string(out.buffer)[len(first):]; strings.Count(more, "event: ") != 2 {
		t.Errorf("it went and came back: %q", more)
	}
}
