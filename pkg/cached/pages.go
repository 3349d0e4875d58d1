// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options returns those of a cache that keeps of some kinds what is said of each, and of the others all but who wrote which field. While
// it reads what there is, it holds of a kind a page of 500 objects as they come, and of the others only what it keeps of them.
//
// An API server that can tells what there is one by one, and is asked for that first. Others, before Kubernetes 1.32, of 1.33, or with an
// etcd before 3.4.31 or 3.5.13, answer a list from memory of their own, whole whatever the limit is: 30,000 pods are then hundreds of MiB
// at once. So they are asked for a list as it is at this moment, of which they give pages. An informer of client-go asks for those too, and
// yet keeps each page as it came until it has the last.
func Options(kept map[client.Object]cache.ByObject) cache.Options {
	return cache.Options{DefaultTransform: Strip, ByObject: kept, NewInformer: newInformer}
}

func newInformer(
	from toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	k := &keeper{from: toolscache.ToListerWatcherWithContext(from)}
	kept := toolscache.ToListWatcherWithWatchListSemantics(
		&toolscache.ListWatch{ListWithContextFunc: k.listKept, WatchFuncWithContext: k.watchKept}, from)
	return &informer{toolscache.NewSharedIndexInformer(kept, example, resync, indexers), k}
}

// informer has what it reads from do what else it would do itself.
type informer struct {
	toolscache.SharedIndexInformer

	keeper *keeper
}

// SetTransform implements [toolscache.SharedInformer]. It is called before the informer runs.
func (i *informer) SetTransform(keep toolscache.TransformFunc) error {
	i.keeper.keep = keep
	return nil
}

// keeper answers with what is kept of objects.
type keeper struct {
	from toolscache.ListerWatcherWithContext
	keep toolscache.TransformFunc // All is kept if it is nil.
}

// listKept answers with a page. Who would be content with any version, as at the beginning, or with any since one, gets pages of the
// newest: an API server that is asked for a page of a version gives it of that one exactly, though it may be too old to be watched.
func (k *keeper) listKept(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.Limit > 0 && options.Continue == "" {
		options.ResourceVersion, options.ResourceVersionMatch = "", ""
	}
	page, err := k.from.ListWithContext(ctx, options)
	if err != nil || k.keep == nil {
		return page, err
	}
	items := make([]runtime.Object, 0, meta.LenList(page))
	err = meta.EachListItem(page, func(object runtime.Object) error {
		kept, err := k.reduce(object)
		items = append(items, kept)
		return err
	})
	if err == nil {
		err = meta.SetList(page, items)
	}
	if err != nil {
		return nil, fmt.Errorf("keep what is needed of a list: %w", err)
	}
	return page, nil
}

// watchKept tells of changes.
func (k *keeper) watchKept(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	changes, err := k.from.WatchWithContext(ctx, options)
	if err != nil || k.keep == nil {
		return changes, err
	}
	w := &keptWatch{Interface: changes, kept: make(chan watch.Event), stopped: make(chan struct{})}
	go w.run(k)
	return w, nil
}

// keptWatch tells of each change what is kept of its object.
type keptWatch struct {
	watch.Interface

	kept    chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

// ResultChan implements [watch.Interface].
func (w *keptWatch) ResultChan() <-chan watch.Event { return w.kept }

// Stop implements [watch.Interface].
func (w *keptWatch) Stop() {
	w.once.Do(func() { close(w.stopped) })
	w.Interface.Stop()
}

// run ends with the watch of which it tells, and when it is stopped, whoever reads it then.
func (w *keptWatch) run(k *keeper) {
	defer close(w.kept)
	for e := range w.Interface.ResultChan() {
		switch e.Type {
		case watch.Added, watch.Modified, watch.Deleted:
			kept, err := k.reduce(e.Object)
			if err != nil {
				e.Type, kept = watch.Error, &apierrors.NewInternalError(err).ErrStatus
			}
			e.Object = kept
		case watch.Bookmark, watch.Error: // They have no object of the kind, or one that says its version alone.
		}
		select {
		case w.kept <- e:
		case <-w.stopped:
			return
		}
	}
}

// reduce returns what is kept of an object.
func (k *keeper) reduce(object runtime.Object) (runtime.Object, error) {
	kept, err := k.keep(object)
	if err != nil {
		return nil, err
	}
	o, is := kept.(runtime.Object)
	if !is {
		return nil, fmt.Errorf("of %T is kept %T, which is no object", object, kept)
	}
	return o, nil
}
