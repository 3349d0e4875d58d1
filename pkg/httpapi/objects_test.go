// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/httpapi/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/httpapi/feed"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// relayed is a line of Liqo with which consumers reach all providers through the broker.
type relayed struct{ v09.Line }

func (relayed) DirectPaths() bool { return false }

// TestPaths holds that a tunnel past the broker is the path of pods only with a line of Liqo that has direct paths, and that consumers are
// advised of providers to peer with only then.
func TestPaths(t *testing.T) {
	c := snapshottest.NewClient(t, interceptor.Funcs{}, world()...)
	paths := func(o *objects) map[string]string {
		items, err := o.placed(t.Context(), workloads, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, item := range items {
			if w, is := item.Value.(apiv1.Workload); is {
				all[w.Consumer.ID] = w.Path
			}
		}
		return all
	}
	if got := paths(&objects{reader: c, line: v09.Line{}, own: broker}); got[string(sees.ID)] != "direct" || got[string(blind.ID)] != "relay" {
		t.Errorf("with direct paths: %v", got)
	}
	if got := paths(&objects{reader: c, line: relayed{}, own: broker}); got[string(sees.ID)] != "relay" || got[string(blind.ID)] != "relay" {
		t.Errorf("without: %v", got)
	}
	for of, want := range map[line.Line]bool{v09.Line{}: true, relayed{}: false} {
		items, err := (&objects{reader: c, line: of, own: broker}).placed(t.Context(), advice, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		advised := slices.ContainsFunc(items, func(item feed.Item) bool {
			a, is := item.Value.(apiv1.Advice)
			return is && len(a.Peers) > 0
		})
		if advised != want {
			t.Errorf("%T: consumers are advised of providers: %t, want %t", of, advised, want)
		}
	}
}
