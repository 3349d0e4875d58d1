// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// between is how long a watch that has failed rests.
const between = 100 * time.Millisecond

// A GrantWatch sees how what the broker offers its consumer gets to the consumer's node: all stations of the way, by watches, so that
// times are those at which clients are told.
type GrantWatch struct {
	stations []station
	cancel   context.CancelFunc
	watching sync.WaitGroup

	mu   sync.Mutex
	seen [][]sighting // By station.
	lost error        // Why a watch has failed, if none has gone on since.
}

// station is an object that says how much memory the consumer has.
type station struct {
	name string
	on   *Cluster
	list client.ObjectList
	// namespace is empty for an object that is in none. Object is the name.
	namespace, object string
	has               func(client.Object) corev1.ResourceList
}

// sighting is how much memory a station has from a time on.
type sighting struct {
	at     time.Time
	memory int64
}

// stations are those of a consumer with one node for the broker.
func (f *Federation) stations() []station {
	node := station{"the node", f.Consumer, &corev1.NodeList{}, "", f.Broker.NodeName(), func(o client.Object) corev1.ResourceList {
		if n, is := o.(*corev1.Node); is {
			return n.Status.Allocatable
		}
		return nil
	}}
	return append(f.Consumer.line().stations(f), node)
}

// WatchGrant begins to watch. Who gets the watch stops it.
func (f *Federation) WatchGrant(ctx context.Context) *GrantWatch {
	w := &GrantWatch{stations: f.stations()}
	w.seen = make([][]sighting, len(w.stations))
	ctx, w.cancel = context.WithCancel(ctx)
	for i, s := range w.stations {
		w.watching.Go(func() {
			for ctx.Err() == nil {
				if err := w.follow(ctx, i, s); err != nil {
					w.lose(fmt.Errorf("watch %s of cluster %s: %w", s.name, s.on.Name, err))
					time.Sleep(between)
				}
			}
		})
	}
	return w
}

// follow notes what a station has, and what it gets until the API server ends the watch.
func (w *GrantWatch) follow(ctx context.Context, i int, s station) error {
	note := func(o client.Object) {
		has := s.has(o)
		w.note(i, sighting{time.Now(), has.Memory().Value()})
	}
	is := []client.ListOption{client.InNamespace(s.namespace), client.MatchingFields{"metadata.name": s.object}}
	if err := s.on.List(ctx, s.list, is...); err != nil {
		return err
	}
	if err := meta.EachListItem(s.list, func(o runtime.Object) error {
		if object, ok := o.(client.Object); ok {
			note(object)
		}
		return nil
	}); err != nil {
		return err
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: s.list.GetResourceVersion()}}
	watcher, err := s.on.Watch(ctx, s.list, append(is, from)...)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	w.lose(nil)
	for event := range watcher.ResultChan() {
		if event.Type == apiwatch.Error {
			return apierrors.FromObject(event.Object)
		}
		if object, ok := event.Object.(client.Object); ok {
			note(object)
		}
	}
	return nil
}

// Stop ends all watches.
func (w *GrantWatch) Stop() {
	w.cancel()
	w.watching.Wait()
}

// Stations are the names of what is watched, in the order of the way.
func (w *GrantWatch) Stations() []string {
	var names []string
	for _, s := range w.stations {
		names = append(names, s.name)
	}
	return names
}

// note notes what a station has, if that is something else than before.
func (w *GrantWatch) note(station int, is sighting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if seen := w.seen[station]; len(seen) == 0 || seen[len(seen)-1].memory != is.memory {
		w.seen[station] = append(seen, is)
	}
}

// lose notes why a watch has failed; nil if one goes on.
func (w *GrantWatch) lose(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = err
}

// Settled waits until all stations have the same, and returns how much memory that is.
func (w *GrantWatch) Settled(ctx context.Context) (memory int64, err error) {
	err = Until(ctx, patience, func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.lost != nil {
			return w.lost
		}
		for i, seen := range w.seen {
			if len(seen) == 0 {
				return fmt.Errorf("%s was not seen yet", w.stations[i].name)
			}
			if last := seen[len(seen)-1].memory; i == 0 {
				memory = last
			} else if last != memory {
				return fmt.Errorf("%s has %d bytes of memory, and %s has %d", w.stations[i].name, last, w.stations[0].name, memory)
			}
		}
		return nil
	})
	return memory, err
}

// Took waits until each station has had less memory than before a change, or more, and returns how long after the change each had it first.
func (w *GrantWatch) Took(ctx context.Context, changed time.Time, before int64, less bool) (took []time.Duration, err error) {
	err = Until(ctx, patience, func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.lost != nil {
			return w.lost
		}
		if took = passed(w.seen, changed, before, less); len(took) < len(w.stations) {
			return fmt.Errorf("%s still has %d bytes of memory", w.stations[len(took)].name, before)
		}
		return nil
	})
	return took, err
}

// passed returns how long after a change each station had less memory than before, or more, up to the first one that still has what it
// had.
func passed(seen [][]sighting, changed time.Time, before int64, less bool) []time.Duration {
	var took []time.Duration
	for _, of := range seen {
		found := false
		for _, s := range of {
			if found = s.at.After(changed) && s.memory != before && (s.memory < before) == less; found {
				took = append(took, s.at.Sub(changed))
				break
			}
		}
		if !found {
			break
		}
	}
	return took
}
