// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
	"github.com/capacitorset/liqo-broker/test/watches"
)

// TestSetup has what is counted know a change of a consumer only when the consumer was looked at for it: the look a moment later sees it.
func TestSetup(t *testing.T) {
	is := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(consumer.ID)}}
	c := snapshottest.NewClient(t, interceptor.Funcs{}, liqotest.ForeignCluster(consumer, false, true), is)
	reader := snapshottest.Reader(c, "")
	counted := snapshot.NewCapacityCache(reader)
	if _, err := counted.Capacity(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), provider("id-a", "2", v1alpha1.SchedulingActive)); err != nil {
		t.Fatal(err)
	}
	happened := watches.Start(t, c.Scheme(), func(mgr ctrl.Manager) error {
		return Setup(mgr, Config{
			Client: c, Reader: reader, Modes: Modes{Orchestrator: true},
			Capacity: func(ctx context.Context) (*capacity.Snapshot, error) {
				defer counted.Changed()
				return counted.Capacity(ctx)
			},
		})
	}, is, is)
	happened.Happens(is, watches.Changed(is, func(c *v1alpha1.Consumer) { c.Generation = 2 }))
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(is), is); err != nil {
			t.Fatal(err)
		}
		if is.Status.Offered.Cpu().String() == "2" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it is offered %s CPU, and Ready says %v", is.Status.Offered.Cpu(), is.Status.Conditions)
		}
	}
}
