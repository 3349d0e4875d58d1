// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/percentile"
	"github.com/capacitorset/liqo-broker/test/walk"
)

const (
	// grantChanges is how often each kind of change is made; with -short it is made twice.
	grantChanges = 15
	// goalGrant is within which time all but one in a hundred changes are to be at the consumer's node.
	goalGrant = 3 * time.Second
)

// TestGrantsReachNodes changes what the broker offers its consumer, by the share of the consumer and by a provider that comes and goes, and
// prints how long it takes until the consumer's node has what is offered, with each station of the way, as a page of Markdown, and into the
// file that LIQO_BROKER_GRANTS_REPORT names. With Liqo 1.x it fails where the goal is missed.
func TestGrantsReachNodes(t *testing.T) {
	start(t, v1alpha1.ModeAggregated)
	eventually(t, 2*time.Minute, fed.CheckOffer)
	watch := fed.WatchGrant(t.Context())
	t.Cleanup(watch.Stop)
	changes := grantChanges
	if testing.Short() {
		changes = 2
	}
	report := &strings.Builder{}
	fmt.Fprintf(report, "With Liqo %s, %d changes of each kind:\n", fed.Broker.Line.Name(), changes)
	var missed []string
	for _, kind := range []struct {
		name string
		to   func(ctx context.Context, less bool) error
	}{
		{"the share of the consumer is 50 %, or 100 %", func(ctx context.Context, less bool) error {
			share := int32(100)
			if less {
				share = 50
			}
			return setShare(ctx, share)
		}},
		{"a provider is drained, or active", func(ctx context.Context, less bool) error {
			if less {
				return setScheduling(ctx, fed.ProviderA, v1alpha1.SchedulingDrained)
			}
			return setScheduling(ctx, fed.ProviderA, v1alpha1.SchedulingActive)
		}},
	} {
		walk.AtEnd(t, func(ctx context.Context) error { return kind.to(ctx, false) })
		stages, replaced := percentile.Stages{Names: watch.Stations()}, 0
		for i := range changes {
			took, again := timeGrant(t, watch, kind.to, i%2 == 0)
			if again {
				replaced++
			}
			t.Logf("%s, less: %t, a virtual kubelet was replaced: %t: %v", kind.name, i%2 == 0, again, took)
			stages.Add(took)
		}
		fmt.Fprintf(report, "\n%s; meanwhile a virtual kubelet was replaced: %d times\n\n%s", kind.name, replaced, &stages)
		if whole := stages.Whole(99); whole > goalGrant {
			missed = append(missed, fmt.Sprintf("%s: %.1f s for the slowest hundredth, want at most %s", kind.name, whole.Seconds(), goalGrant))
		}
	}
	publish(t, "LIQO_BROKER_GRANTS_REPORT", report.String(), missed)
}

// timeGrant makes one change when nothing changes any more, and returns how long it takes to each station, and whether another virtual
// kubelet shows the broker since.
func timeGrant(
	t *testing.T, watch *federation.GrantWatch, change func(ctx context.Context, less bool) error, less bool,
) (took []time.Duration, replaced bool) {
	t.Helper()
	eventually(t, 3*time.Minute, nothingChanges)
	before, err := watch.Settled(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kubelets := kubeletsForBroker(t)
	changed := time.Now()
	if err := change(t.Context(), less); err != nil {
		t.Fatal(err)
	}
	if took, err = watch.Took(t.Context(), changed, before, less); err != nil {
		t.Fatal(err)
	}
	if took[len(took)-1] > goalGrant {
		logKubelets(t, changed)
	}
	return took, !slices.Equal(kubelets, kubeletsForBroker(t))
}

// nothingChanges fails while a virtual kubelet of the consumer is being replaced, or is going to be because of other views.
func nothingChanges(ctx context.Context) error {
	if err := fed.ViewsAcknowledged(ctx); err != nil {
		return err
	}
	pods, err := fed.Consumer.VirtualKubelets(ctx, fed.Broker)
	if err != nil {
		return err
	}
	if len(pods) != 1 {
		return fmt.Errorf("the consumer has %d virtual kubelets for the broker, want 1", len(pods))
	}
	return fed.Consumer.NodesReady(ctx)
}

// kubeletsForBroker returns the names of the virtual kubelets by which the consumer shows the broker.
func kubeletsForBroker(t *testing.T) []string {
	t.Helper()
	pods, err := fed.Consumer.VirtualKubelets(t.Context(), fed.Broker)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range pods {
		names = append(names, pods[i].Name)
	}
	slices.Sort(names)
	return names
}

// logKubelets logs what the virtual kubelets of the broker have said since a time of what keeps them from writing their node: one that
// waits for its predecessor's lease, or whose pings fail.
func logKubelets(t *testing.T, since time.Time) {
	t.Helper()
	pods, err := fed.Consumer.VirtualKubelets(t.Context(), fed.Broker)
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods {
		said, err := fed.Consumer.Kubectl(t.Context(), "logs", "--namespace="+pods[i].Namespace, pods[i].Name,
			"--since="+time.Since(since).Round(time.Second).String())
		if err != nil {
			t.Logf("virtual kubelet %s: %v", pods[i].Name, err) // It may be gone.
			continue
		}
		for line := range strings.Lines(said) {
			if strings.Contains(line, "ping") || strings.Contains(line, "eader election") {
				t.Logf("virtual kubelet %s: %s", pods[i].Name, strings.TrimSpace(line))
			}
		}
	}
}

// setShare gives the consumer so many percent of what is free.
func setShare(ctx context.Context, percent int32) error {
	consumer := &v1alpha1.Consumer{}
	if err := fed.Broker.Get(ctx, client.ObjectKey{Name: string(fed.Consumer.ID)}, consumer); err != nil {
		return err
	}
	before := consumer.DeepCopy()
	consumer.Spec.Capacity.SharePercent = &percent
	return fed.Broker.Patch(ctx, consumer, client.MergeFrom(before))
}
