// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package together

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/consumer"
	"github.com/capacitorset/liqo-broker/pkg/controller/giveback"
	"github.com/capacitorset/liqo-broker/pkg/controller/placementpolicy"
	"github.com/capacitorset/liqo-broker/pkg/controller/provider"
	"github.com/capacitorset/liqo-broker/pkg/controller/quota"
	"github.com/capacitorset/liqo-broker/pkg/controller/twin"
	"github.com/capacitorset/liqo-broker/pkg/controller/twin/planning"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"

	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
	"github.com/capacitorset/liqo-broker/test/worlds/apiserver"
)

// errKilled is what a controller sees whose process is gone.
var errKilled = errors.New("the process is killed")

// giveBackAfter is the broker's own default.
const giveBackAfter = 2 * time.Minute

// process is one replica of the broker, with all that it has in memory.
type process struct {
	world       *world
	name        string
	controllers map[string]*controller
	// left is how many writes it has still to live.
	left int
	dead bool
}

// controller is one of its controllers, which has a cache of its own.
type controller struct {
	reconcile.Reconciler

	name  string
	cache *apiserver.Cache
}

// newProcess starts a replica, which has read everything.
func (w *world) newProcess() *process {
	w.processes++
	p := &process{world: w, name: fmt.Sprint("replica-", w.processes), controllers: map[string]*controller{}, left: w.r.IntN(80)}
	with := func(name string, made func(c client.Client, r *snapshot.Reader) reconcile.Reconciler) {
		own := &controller{name: name, cache: apiserver.NewCache(w.server, false)}
		c := &brokerClient{cache: own.cache, scheme: w.scheme, process: p, controller: own}
		own.Reconciler = made(c, snapshottest.Reader(c, broker.ID))
		p.controllers[name] = own
	}
	recorder := &record.FakeRecorder{}
	planner := planning.NewPlanner(recorder, clock.RealClock{}, nil)
	with("provider", func(c client.Client, r *snapshot.Reader) reconcile.Reconciler {
		return provider.New(provider.Config{Client: c, Reader: r, Clock: clock.RealClock{}, Plans: planner})
	})
	with("consumer", func(c client.Client, r *snapshot.Reader) reconcile.Reconciler {
		return consumer.New(consumer.Config{
			Client: c, Reader: r, Capacity: r.Capacity, Modes: consumer.Modes{Orchestrator: true, Aggregator: true},
		})
	})
	with("policy", func(c client.Client, r *snapshot.Reader) reconcile.Reconciler {
		return placementpolicy.New(placementpolicy.Config{Client: c, Reader: r, Recorder: recorder, Clock: clock.RealClock{}})
	})
	with("quota", func(c client.Client, _ *snapshot.Reader) reconcile.Reconciler {
		return quota.New(quota.Config{Client: c, Bounds: quota.DefaultBounds(v09.Line{})})
	})
	with("giveback", func(c client.Client, r *snapshot.Reader) reconcile.Reconciler {
		return giveback.New(giveback.Config{
			Client: c, Recorder: recorder, Reader: r, After: giveBackAfter,
			Given: prometheus.NewCounterVec(prometheus.CounterOpts{}, []string{"consumer"}), Clock: clock.RealClock{},
		})
	})
	with("twin", func(c client.Client, r *snapshot.Reader) reconcile.Reconciler {
		return twin.New(twin.Config{
			Client: c, Live: live{c.(*brokerClient)}, Reader: r, Recorder: recorder, Planner: planner, Own: broker, Mapping: "DefaultName",
			Metrics: twin.NewMetrics(prometheus.NewHistogram(prometheus.HistogramOpts{})), Clock: clock.RealClock{},
		})
	})
	return p
}

// reconcile lets a controller look at an object. It fails if the controller panics, or has trouble that is not of this world.
func (p *process) reconcile(name string, key client.ObjectKey) {
	w := p.world
	w.t.Helper()
	defer func() {
		if r := recover(); r != nil {
			w.failf("%s of %s panics at %s: %v\n%s", name, p.name, key, r, debug.Stack())
		}
	}()
	if p.dead {
		return
	}
	_, err := p.controllers[name].Reconcile(w.t.Context(), ctrl.Request{NamespacedName: key})
	stale := apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err)
	if err != nil && !stale && !errors.Is(err, errKilled) {
		w.failf("%s of %s at %s: %v", name, p.name, key, err)
	}
}

// brokerClient is how a controller reads and writes: what it reads is old, and its process may die at any write.
type brokerClient struct {
	client.Client // None: a method that is missing here panics.
	cache         *apiserver.Cache

	scheme     *runtime.Scheme
	process    *process
	controller *controller
}

// live reads from the API server.
type live struct{ *brokerClient }

func (l live) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	l.process.world.meanwhile(l.process)
	return l.process.world.live.Get(ctx, key, o, options...)
}

func (l live) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	l.process.world.meanwhile(l.process)
	return l.process.world.live.List(ctx, list, options...)
}

// write does a write. What the process does not live to see may have been done or not.
func (c *brokerClient) write(do func() error) error {
	w := c.process.world
	w.meanwhile(c.process)
	if c.process.dead {
		return errKilled
	}
	if c.process.left--; c.process.left > 0 || w.mended {
		return do()
	}
	c.process.dead = true
	w.notef("%s dies in %s", c.process.name, c.controller.name)
	if w.r.IntN(2) == 0 {
		_ = do() // Nobody is left to read the answer.
	}
	return errKilled
}

// changed lets a write be judged that was one.
func (c *brokerClient) changed(o client.Object, err error) error {
	if err == nil {
		c.process.world.wrote(c, o)
	}
	return err
}

func (c *brokerClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	return c.cache.Get(ctx, key, o, options...)
}

func (c *brokerClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.cache.List(ctx, list, options...)
}

func (c *brokerClient) Scheme() *runtime.Scheme { return c.scheme }

func (c *brokerClient) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	return c.write(func() error { return c.changed(o, c.process.world.server.Create(o)) })
}

func (c *brokerClient) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	return c.write(func() error { return c.changed(o, c.process.world.server.Update(o, false)) })
}

func (c *brokerClient) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return c.write(func() error { return c.changed(o, c.process.world.server.Patch(o, patch, false)) })
}

func (c *brokerClient) Delete(_ context.Context, o client.Object, options ...client.DeleteOption) error {
	how := (&client.DeleteOptions{}).ApplyOptions(options)
	if _, is := o.(*v1alpha1.PlacementDecision); is {
		return c.write(func() error { return c.process.world.server.Delete(o, false, how) })
	}
	return c.write(func() error {
		w := c.process.world
		is, _ := c.process.world.server.Stored(o).(*corev1.Pod)
		if is == nil {
			return apierrors.NewNotFound(corev1.Resource("pods"), o.GetName())
		}
		served := w.serves(is)
		// Nothing has to end that was never bound.
		if err := c.process.world.server.Delete(o, is.Spec.NodeName != "", how); err != nil {
			return err
		}
		w.removed(c, is, served, how.GracePeriodSeconds != nil)
		return nil
	})
}

func (c *brokerClient) Status() client.SubResourceWriter { return statusWriter{c} }

// statusWriter writes statuses.
type statusWriter struct{ c *brokerClient }

func (s statusWriter) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	panic("no controller creates a subresource")
}

func (statusWriter) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	panic("no controller applies a status")
}

func (s statusWriter) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	panic("no controller updates a status")
}

func (s statusWriter) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	if consumer, is := o.(*v1alpha1.Consumer); is {
		s.c.process.world.offered(s.c, consumer)
	}
	return s.c.write(func() error { return s.c.changed(o, s.c.process.world.server.Patch(o, patch, true)) })
}

// names returns the objects that a controller can be called for.
func (w *world) names(name string) (keys []client.ObjectKey) {
	add := func(namespace, name string) { keys = append(keys, client.ObjectKey{Namespace: namespace, Name: name}) }
	switch name {
	case "provider":
		for _, p := range w.providers {
			add("", string(p.ID))
		}
	case "consumer":
		for _, c := range w.consumers {
			add("", string(c.ID))
		}
	case "policy":
		add("", policyName)
	case "twin", "quota":
		for _, name := range w.namespaces {
			add("", name)
		}
	case "giveback":
		for _, pod := range w.pods("") {
			if pod.Spec.NodeName == "" {
				add(pod.Namespace, pod.Name)
			}
		}
	}
	return keys
}

var _ client.Client = (*brokerClient)(nil)
