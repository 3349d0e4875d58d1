// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package shown

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
	"github.com/capacitorset/liqo-broker/pkg/shown/showntest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// relayed is a line of Liqo with which consumers reach all providers through the broker.
type relayed struct{ v09.Line }

func (relayed) DirectPaths() bool { return false }

// TestPaths holds that a tunnel past the broker is the path of pods only with a line of Liqo that has direct paths, and that consumers are
// advised of providers to peer with only then.
func TestPaths(t *testing.T) {
	c := snapshottest.NewClient(t, interceptor.Funcs{}, showntest.World()...)
	paths := func(o *Objects) map[string]string {
		items, err := o.placed(t.Context(), Workloads, time.Now())
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
	for of, want := range map[line.Line]map[string]string{
		v09.Line{}: {string(showntest.Sees.ID): "direct", string(showntest.Blind.ID): "relay"},
		relayed{}:  {string(showntest.Sees.ID): "relay", string(showntest.Blind.ID): "relay"},
	} {
		if diff := cmp.Diff(want, paths(&Objects{Reader: c, Line: of, Own: showntest.Broker})); diff != "" {
			t.Errorf("%T (-want +got):\n%s", of, diff)
		}
	}
	for of, want := range map[line.Line]bool{v09.Line{}: true, relayed{}: false} {
		items, err := (&Objects{Reader: c, Line: of, Own: showntest.Broker}).placed(t.Context(), Advice, time.Now())
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
