// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/httpapi/apiv1"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// unasked is a line of Liqo that runs pods by its own virtual kubelets.
type unasked struct{ v09.Line }

func (unasked) HasPlugin() bool { return false }

// TestPaths holds that a tunnel past the broker is the path of pods only where the virtual kubelet is of this project.
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
		t.Errorf("with our virtual kubelet: %v", got)
	}
	if got := paths(&objects{reader: c, line: unasked{}, own: broker}); got[string(sees.ID)] != "relay" || got[string(blind.ID)] != "relay" {
		t.Errorf("with Liqo's own: %v", got)
	}
}
