// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

const (
	// page is how many objects are read at once: a peer may fill each with a megabyte.
	page = 32
	// maxEnded is how many pods that have ended a peer may have here: as many as Kubernetes keeps
	// (terminatedPodGCThreshold in k8s.io/kubernetes/pkg/controller/podgc@v1.28).
	maxEnded = 12_500
	// claimed is how long a pod counts that was admitted and is not seen, because another webhook refused it, or the watch is late.
	claimed = 30 * time.Second
)

// A Tally knows what the pods of peers take. Of each it keeps the name, and what it requests. It may be used concurrently.
type Tally struct {
	client client.WithWatch
	line   line.Line
	clock  clock.PassiveClock

	mu     sync.Mutex
	names  liqo.Compactor
	places map[string]map[string]*place // By namespace and name.
	listed [kinds]bool
	synced chan struct{} // Closed when all kinds are listed.
}

// The kinds of objects by which a pod is known.
const (
	wishes = iota // ShadowPods.
	pods
	kinds
)

// A place is the name of a pod in a namespace.
type place struct {
	objects [kinds]object
	// claim is what was admitted under this name and is not seen yet, which counts until a time.
	claim amounts
	until time.Time
}

// An object is a ShadowPod, or a pod of one.
type object struct {
	there bool
	// takes is what it requests; nil of one that has ended.
	takes amounts
}

// takes returns how much of a resource a pod takes at a time, or may take at any moment: what the ShadowPod says, of which Liqo makes a
// pod, or the pod has. That one can be another: it outlives its ShadowPod while it terminates, and for good if who deletes the ShadowPod
// wants so.
func (p *place) takes(name corev1.ResourceName, now time.Time) int64 {
	most := max(p.objects[wishes].takes.of(name), p.objects[pods].takes.of(name))
	if now.Before(p.until) {
		most = max(most, p.claim.of(name))
	}
	return most
}

// empty reports whether nothing is known of a place any more.
func (p *place) empty(now time.Time) bool {
	return !p.objects[wishes].there && !p.objects[pods].there && !now.Before(p.until)
}

// ended reports whether all that there is has ended.
func (p *place) ended(now time.Time) bool {
	return len(p.objects[wishes].takes) == 0 && len(p.objects[pods].takes) == 0 && !now.Before(p.until)
}

// NewTally returns a Tally that knows nothing yet. The client reads and watches pods, and the ShadowPods of a line of Liqo; it is no cache.
func NewTally(c client.WithWatch, of line.Line, now clock.PassiveClock) *Tally {
	return &Tally{client: c, line: of, clock: now, places: map[string]map[string]*place{}, synced: make(chan struct{})}
}

// listed is a source that is listed before it is watched: what a watch shows at its beginning, a reflector would keep whole until it has
// all.
type listed struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported tells client-go so.
func (listed) IsWatchListSemanticsUnSupported() bool { return true }

// Run follows the pods of all peers until the context ends.
func (t *Tally) Run(ctx context.Context) error {
	follow := func(kind int, typed client.Object, list func() client.ObjectList, opts ...client.ListOption) {
		source := listed{&toolscache.ListWatch{
			ListFunc: func(metav1.ListOptions) (runtime.Object, error) { return t.list(ctx, list, opts) },
			WatchFunc: func(o metav1.ListOptions) (watch.Interface, error) {
				return t.client.Watch(ctx, list(), append(slices.Clone(opts), &client.ListOptions{Raw: &o})...)
			},
		}}
		toolscache.NewReflector(source, typed, store{t, kind}, 0).Run(ctx.Done())
	}
	var running sync.WaitGroup
	running.Go(func() {
		follow(wishes, t.line.Kinds().Wish, func() client.ObjectList { return t.line.Kinds().Wishes })
	})
	running.Go(func() {
		follow(pods, &corev1.Pod{}, func() client.ObjectList { return &corev1.PodList{} },
			client.MatchingLabelsSelector{Selector: liqo.ShadowPodSelector()})
	})
	running.Wait()
	return nil
}

// WaitForSync waits until all pods are known, and returns false if the context ends before.
func (t *Tally) WaitForSync(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-t.synced:
		return true
	}
}

// list reads all objects of a kind, and keeps of each page what counts before it reads the next.
func (t *Tally) list(ctx context.Context, empty func() client.ObjectList, opts []client.ListOption) (runtime.Object, error) {
	all := &metav1.List{}
	for {
		read := empty()
		if err := t.client.List(ctx, read, append(slices.Clone(opts), client.Limit(page), client.Continue(all.Continue))...); err != nil {
			return nil, fmt.Errorf("list what peers run here: %w", err)
		}
		if err := line.Each(read, func(o client.Object) {
			all.Items = append(all.Items, runtime.RawExtension{Object: t.brief(o)})
		}); err != nil {
			return nil, err
		}
		all.ResourceVersion, all.Continue = read.GetResourceVersion(), read.GetContinue()
		if all.Continue == "" {
			return all, nil
		}
	}
}

// A brief is what counts of an object.
type brief struct {
	metav1.TypeMeta

	key   client.ObjectKey
	takes amounts
}

// DeepCopyObject implements [runtime.Object]. Nobody changes a brief.
func (b *brief) DeepCopyObject() runtime.Object { return b }

// brief returns what counts of a ShadowPod or pod; nil for what is neither.
func (t *Tally) brief(o any) *brief {
	var takes amounts
	var key client.ObjectKey
	switch o := o.(type) {
	case *brief:
		return o
	case *corev1.Pod:
		key = client.ObjectKeyFromObject(o)
		if !podstate.Ended(o) {
			takes = requested(&o.Spec)
		}
	case toolscache.DeletedFinalStateUnknown:
		return t.brief(o.Obj)
	case client.Object: // Nothing else is listed and watched but ShadowPods.
		key = client.ObjectKeyFromObject(o)
		if wish := t.line.WishOf(o); !wish.Ended {
			takes = requested(wish.Pod)
		}
	default:
		return nil
	}
	for i := range takes {
		takes[i].name = corev1.ResourceName(t.names.Name(string(takes[i].name)))
	}
	return &brief{key: key, takes: takes}
}

// put notes an object, or that it has gone. New ones take the place of what was claimed for them.
func (t *Tally) put(kind int, o any, there, isNew bool) {
	b := t.brief(o)
	if b == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(kind, b, there, isNew)
}

// note is put, for who has the lock.
func (t *Tally) note(kind int, b *brief, there, isNew bool) {
	p := t.place(b.key)
	p.objects[kind] = object{}
	if there {
		p.objects[kind] = object{there: true, takes: b.takes}
	}
	if isNew {
		p.claim, p.until = nil, time.Time{}
	}
	t.tidy(b.key.Namespace, b.key.Name, p)
}

// replace notes all objects of a kind that there are.
func (t *Tally) replace(kind int, all []any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := map[client.ObjectKey]bool{}
	for namespace, names := range t.places {
		for name, p := range names {
			if p.objects[kind].there {
				before[client.ObjectKey{Namespace: namespace, Name: name}] = true
			}
		}
	}
	for _, o := range all {
		if b := t.brief(o); b != nil {
			t.note(kind, b, true, !before[b.key])
			delete(before, b.key)
		}
	}
	for key := range before {
		t.note(kind, &brief{key: key}, false, false)
	}
	if !t.listed[kind] {
		t.listed[kind] = true
		if t.listed[wishes] && t.listed[pods] {
			close(t.synced)
		}
	}
}

// place returns what is known under a name.
func (t *Tally) place(key client.ObjectKey) *place {
	names := t.places[key.Namespace]
	if names == nil {
		names = map[string]*place{}
		t.places[key.Namespace] = names
	}
	p := names[key.Name]
	if p == nil {
		p = &place{}
		names[key.Name] = p
	}
	return p
}

// tidy forgets a place that is empty.
func (t *Tally) tidy(namespace, name string, p *place) {
	if !p.empty(t.clock.Now()) {
		return
	}
	delete(t.places[namespace], name)
	if len(t.places[namespace]) == 0 {
		delete(t.places, namespace)
	}
}

// ended reports whether the ShadowPod of a name is there and its pod had ended.
func (t *Tally) ended(key client.ObjectKey) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.places[key.Namespace][key.Name]
	return p != nil && p.objects[wishes].there && len(p.objects[wishes].takes) == 0
}

// A refusal is why a pod is not admitted: it would be too much, or there are too many that have ended. The zero refusal is none.
type refusal struct {
	short []shortage
	ended int
}

// admit reports why a pod of a name may not be admitted beside those that there are in some namespaces, which together may take what is
// granted. Unless it is only a question, the pod counts from now on.
func (t *Tally) admit(namespaces []string, key client.ObjectKey, asked, granted amounts, question bool) refusal {
	var short []shortage
	for _, a := range asked {
		if offered := granted.of(a.name); a.count > offered {
			short = append(short, shortage{a.name, a.count, offered})
		}
	}
	if len(short) > 0 {
		return refusal{short: short}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now, used, ended := t.clock.Now(), make([]int64, len(asked)), 0
	for _, namespace := range namespaces {
		for name, p := range t.places[namespace] {
			if p.empty(now) {
				t.tidy(namespace, name, p)
				continue
			}
			if p.ended(now) {
				ended++
			}
			own := namespace == key.Namespace && name == key.Name
			for i, a := range asked {
				takes := p.takes(a.name, now)
				if own {
					takes = max(0, takes-a.count) // What it takes beyond what is asked for in its place.
				}
				used[i] = sum(used[i], takes)
			}
		}
	}
	for i, a := range asked {
		if would, offered := sum(used[i], a.count), granted.of(a.name); would > offered {
			short = append(short, shortage{a.name, would, offered})
		}
	}
	switch {
	case len(short) > 0:
		return refusal{short: short}
	case ended >= maxEnded:
		return refusal{ended: ended}
	}
	if !question {
		p := t.place(key)
		p.claim, p.until = asked, now.Add(claimed)
	}
	return refusal{}
}

// A store is what a reflector writes to: it keeps nothing but the tally of one kind.
type store struct {
	tally *Tally
	kind  int
}

var _ toolscache.Store = store{}

func (s store) Add(o any) error {
	s.tally.put(s.kind, o, true, true)
	return nil
}

func (s store) Update(o any) error {
	s.tally.put(s.kind, o, true, false)
	return nil
}

func (s store) Delete(o any) error {
	s.tally.put(s.kind, o, false, false)
	return nil
}

func (s store) Replace(all []any, _ string) error {
	s.tally.replace(s.kind, all)
	return nil
}

func (store) Resync() error                      { return nil }
func (store) List() []any                        { return nil }
func (store) ListKeys() []string                 { return nil }
func (store) Get(any) (any, bool, error)         { return nil, false, nil }
func (store) GetByKey(string) (any, bool, error) { return nil, false, nil }
