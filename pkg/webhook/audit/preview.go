// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// Count returns what tells [Closing] how many pods of consumers are on the provider, and when no other provider is ready. It reads from a
// cache, where pods are found by their nodes.
func Count(objects client.Reader, r *snapshot.Reader) func(context.Context, *v1alpha1.Provider) (string, error) {
	c := counter{objects, r}
	return c.preview
}

type counter struct {
	objects client.Reader
	reader  *snapshot.Reader
}

func (c counter) preview(ctx context.Context, p *v1alpha1.Provider) (string, error) {
	pods, consumers, err := c.podsOn(ctx, cluster.ID(p.Name))
	if err != nil || pods == 0 {
		return "", err
	}
	has := fmt.Sprintf("Provider %s has %s of %s.", p.Name, several(pods, "pod"), several(consumers, "consumer"))
	if p.EffectiveScheduling() != v1alpha1.SchedulingDrained {
		return has + " What is there stays, and nothing new comes.", nil
	}
	switch ready, err := c.otherReady(ctx, p.Name); {
	case err != nil:
		return "", err
	case ready:
		return has + " They leave, as far as other providers can take them.", nil
	default:
		return has + " No other provider is ready, so that none can take them.", nil
	}
}

// podsOn counts the pods of consumers on a provider, and the consumers.
func (c counter) podsOn(ctx context.Context, id cluster.ID) (pods, consumers int, err error) {
	peer, err := c.reader.Peer(ctx, id)
	if err != nil {
		return 0, 0, err
	}
	nodes, err := c.reader.NodesOf(ctx, id, peer)
	if err != nil {
		return 0, 0, err
	}
	// How many pods each namespace has there.
	inNamespace := map[string]int{}
	for i := range nodes {
		var on corev1.PodList
		there := client.MatchingFields{snapshot.IndexPodNode: nodes[i].Name}
		if err := c.objects.List(ctx, &on, there, client.UnsafeDisableDeepCopy); err != nil {
			return 0, 0, fmt.Errorf("list the pods of node %s: %w", nodes[i].Name, err)
		}
		for j := range on.Items {
			if nodes[i].Own && capacity.Counts(&on.Items[j]) {
				inNamespace[on.Items[j].Namespace]++
			}
		}
	}
	// Whose the namespaces are. What is in others is the broker's own.
	of := map[cluster.ID]bool{}
	for name, n := range inNamespace {
		var ns corev1.Namespace
		if err := c.objects.Get(ctx, client.ObjectKey{Name: name}, &ns); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return 0, 0, fmt.Errorf("get namespace %s: %w", name, err)
		}
		if consumer, twin := liqo.TwinOf(&ns); twin {
			of[consumer] = true
			pods += n
		}
	}
	return pods, len(of), nil
}

// otherReady reports whether another provider can be used.
func (c counter) otherReady(ctx context.Context, than string) (bool, error) {
	var all v1alpha1.ProviderList
	if err := c.objects.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list providers: %w", err)
	}
	for i := range all.Items {
		p := &all.Items[i]
		if p.Name != than && p.EffectiveScheduling() == v1alpha1.SchedulingActive &&
			meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) {
			return true, nil
		}
	}
	return false, nil
}

// several is a number of things.
func several(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
