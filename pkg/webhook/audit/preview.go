// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

const (
	// maxForeseenPods and maxForeseenNamespaces are how much of consumers may be on a provider of which a drain is foreseen in a warning. A
	// namespace that uses 300 providers takes 5 ms.
	maxForeseenPods       = 250
	maxForeseenNamespaces = 100
	// foresightTimeout bounds how long that takes: there is to be time left of previewTimeout.
	foresightTimeout = 500 * time.Millisecond
)

// Foresight says in a sentence what becomes of the pods on a provider that is drained; nothing if that is not known. It ends soon after its
// context does, changes nothing, and is called once at a time.
type Foresight func(ctx context.Context, provider cluster.ID) (string, error)

// Foretell returns what tells [Closing] what becomes of the pods of consumers on a provider: of one that is drained what foresee says. If
// that takes too long or fails, if somebody else is being told at the moment, or if too much is on the provider, it says how many pods are
// there, and when no other provider is ready. So it does without foresee, too. It reads from a cache, where pods are found by their nodes.
func Foretell(objects client.Reader, r *snapshot.Reader, foresee Foresight) func(context.Context, *v1alpha1.Provider) (string, error) {
	t := &teller{counter: counter{objects, r}, foresee: foresee}
	return t.tell
}

// teller says what becomes of pods. It may be used concurrently.
type teller struct {
	counter

	foresee Foresight
	mu      sync.Mutex // Is held as long as somebody foresees.
}

func (t *teller) tell(ctx context.Context, p *v1alpha1.Provider) (string, error) {
	there, err := t.on(ctx, cluster.ID(p.Name))
	if err != nil || there.pods == 0 {
		return "", err
	}
	if p.EffectiveScheduling() == v1alpha1.SchedulingDrained {
		if foreseen := t.foreseen(ctx, cluster.ID(p.Name), there); foreseen != "" {
			return foreseen, nil
		}
	}
	return t.counted(ctx, p, there)
}

// foreseen returns what a drain leads to; nothing if that cannot be found out within bounds.
func (t *teller) foreseen(ctx context.Context, provider cluster.ID, there count) (sentence string) {
	if t.foresee == nil || there.pods > maxForeseenPods || there.namespaces > maxForeseenNamespaces || !t.mu.TryLock() {
		return ""
	}
	defer t.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, foresightTimeout)
	defer cancel()
	log := ctrl.LoggerFrom(ctx).WithValues("provider", provider)
	defer func() {
		if failed := recover(); failed != nil {
			log.Error(fmt.Errorf("%v", failed), "Cannot foresee what a drain leads to", "stack", string(debug.Stack()))
			sentence = ""
		}
	}()
	sentence, err := t.foresee(ctx, provider)
	switch {
	case err == nil:
		return sentence
	case ctx.Err() != nil:
		log.V(1).Info("A drain is not foreseen in time")
	default:
		log.Error(err, "Cannot foresee what a drain leads to")
	}
	return ""
}

// counter counts what is on providers.
type counter struct {
	objects client.Reader
	reader  *snapshot.Reader
}

// counted returns what is known of a provider that is closed without any plan.
func (c counter) counted(ctx context.Context, p *v1alpha1.Provider, there count) (string, error) {
	has := fmt.Sprintf("Provider %s has %s of %s.", p.Name, several(there.pods, "pod"), several(there.consumers, "consumer"))
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

// count is how much of consumers is on a provider.
type count struct{ pods, namespaces, consumers int }

// on counts what consumers have on a provider.
func (c counter) on(ctx context.Context, id cluster.ID) (there count, err error) {
	peer, err := c.reader.Peer(ctx, id)
	if err != nil {
		return count{}, err
	}
	nodes, err := c.reader.NodesOf(ctx, id, peer)
	if err != nil {
		return count{}, err
	}
	// How many pods each namespace has there.
	inNamespace := map[string]int{}
	for i := range nodes {
		var on corev1.PodList
		there := client.MatchingFields{snapshot.IndexPodNode: nodes[i].Name}
		if err := c.objects.List(ctx, &on, there, client.UnsafeDisableDeepCopy); err != nil {
			return count{}, fmt.Errorf("list the pods of node %s: %w", nodes[i].Name, err)
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
			return count{}, fmt.Errorf("get namespace %s: %w", name, err)
		}
		if consumer, twin := liqo.TwinOf(&ns); twin {
			of[consumer] = true
			there.pods += n
			there.namespaces++
		}
	}
	there.consumers = len(of)
	return there, nil
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
