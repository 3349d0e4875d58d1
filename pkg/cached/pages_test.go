// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// old is an API server that tells nothing one by one: of any version it answers all pods whatever the limit is, and of the newest pages.
type old struct {
	pods    int
	streams bool // It can do more.
	changes *watch.FakeWatcher

	mu    sync.Mutex
	pages []*corev1.PodList
	whole int // The most pods of earlier pages that were as they came when another page was asked for.
}

func large(n int) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(n), Labels: map[string]string{"large": "yes"}}}
}

func (s *old) answer(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := 0
	for _, page := range s.pages {
		for i := range page.Items {
			if page.Items[i].Labels != nil {
				before++
			}
		}
	}
	s.whole = max(s.whole, before)
	from, to := 0, s.pods
	_, _ = fmt.Sscan(options.Continue, &from)
	if options.Limit > 0 && options.ResourceVersion != "0" {
		to = min(s.pods, from+int(options.Limit))
	}
	page := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for n := from; n < to; n++ {
		page.Items = append(page.Items, large(n))
	}
	if to < s.pods {
		page.Continue = fmt.Sprint(to)
	}
	s.pages = append(s.pages, page)
	return page, nil
}

func (s *old) tell(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents == nil {
		return s.changes, nil
	}
	if !s.streams {
		return nil, errors.New("what is there is told in lists alone")
	}
	go func() {
		for n := range s.pods {
			pod := large(n)
			s.changes.Add(&pod)
		}
		s.changes.Action(watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "7", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}})
	}()
	return s.changes, nil
}

// kept runs an informer that keeps no labels, and returns what it has when it has read all, and a function that waits for a pod of it.
func kept(t *testing.T, s *old, keep toolscache.TransformFunc) (store toolscache.Store, await func(name string)) {
	t.Helper()
	s.changes = watch.NewFake()
	informer := newInformer(&toolscache.ListWatch{ListWithContextFunc: s.answer, WatchFuncWithContext: s.tell}, &corev1.Pod{}, 0, nil)
	if err := informer.SetTransform(keep); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("not all is read")
	}
	return informer.GetStore(), func(name string) {
		t.Helper()
		if err := wait.PollUntilContextCancel(ctx, time.Millisecond, true, func(context.Context) (bool, error) {
			_, there, err := informer.GetStore().GetByKey(name)
			return there, err
		}); err != nil {
			t.Fatalf("pod %s is not there: %v", name, err)
		}
	}
}

func noLabels(o any) (any, error) {
	pod, is := o.(*corev1.Pod)
	if !is {
		return nil, fmt.Errorf("it is %T", o)
	}
	if pod.Labels == nil {
		return nil, errors.New("it was here before") // What is kept is made once of each.
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, ResourceVersion: pod.ResourceVersion}}, nil
}

// TestPages holds that of all pods only those of one page are there as they come, and that all are kept, and later ones, as wanted.
func TestPages(t *testing.T) {
	for name, tc := range map[string]struct {
		server *old
		lists  int
	}{
		"lists":                  {&old{pods: 1234}, 3},
		"one page":               {&old{pods: 12}, 1},
		"told one by one":        {&old{pods: 1234, streams: true}, 0},
		"nothing":                {&old{}, 1},
		"nothing, told as a bit": {&old{streams: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			store, await := kept(t, tc.server, noLabels)
			added := large(-1)
			tc.server.changes.Add(&added)
			await("-1")
			all := store.List()
			if len(all) != tc.server.pods+1 {
				t.Errorf("%d pods are kept, want %d", len(all), tc.server.pods+1)
			}
			for _, o := range all {
				if pod, is := o.(*corev1.Pod); !is || pod.Labels != nil {
					t.Fatalf("kept is %+v", o)
				}
			}
			tc.server.mu.Lock()
			defer tc.server.mu.Unlock()
			if len(tc.server.pages) != tc.lists || tc.server.whole > 0 {
				t.Errorf("it was read in %d lists, want %d; %d pods were there as they came", len(tc.server.pages), tc.lists, tc.server.whole)
			}
		})
	}
}

// TestPagesWithoutTransform holds that all of an object is kept if nothing else is said.
func TestPagesWithoutTransform(t *testing.T) {
	store, _ := kept(t, &old{pods: 600}, nil)
	for _, o := range store.List() {
		if pod, is := o.(*corev1.Pod); !is || pod.Labels == nil {
			t.Fatalf("kept is %+v", o)
		}
	}
	if n := len(store.List()); n != 600 {
		t.Errorf("%d pods are kept", n)
	}
}

// again is an API server that was started again: it has lists of all versions that there were, and tells changes of the newest alone.
type again struct {
	*old

	mu     sync.Mutex
	newest string
	asked  []metav1.ListOptions
}

func (s *again) answer(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, options)
	of := s.newest
	if options.Limit > 0 && options.Continue == "" && options.ResourceVersion != "" && options.ResourceVersion != "0" {
		of = options.ResourceVersion // Of who asks for a page, a version means that one exactly.
	}
	page, err := s.old.answer(ctx, options)
	if list, is := page.(*corev1.PodList); is {
		list.ResourceVersion = of
	}
	return page, err
}

func (s *again) tell(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if options.SendInitialEvents == nil && options.ResourceVersion != "9" {
		s.newest = "9"
		return nil, apierrors.NewResourceExpired("too old resource version")
	}
	return s.old.tell(ctx, options)
}

// TestPagesTooOld holds that a cache goes on whose version is too old to be watched, but not to be read.
func TestPagesTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &again{old: &old{pods: 600, changes: watch.NewFake()}, newest: "7"}
		informer := newInformer(&toolscache.ListWatch{ListWithContextFunc: s.answer, WatchFuncWithContext: s.tell}, &corev1.Pod{}, 0, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			informer.RunWithContext(ctx)
		}()
		time.Sleep(5 * time.Minute) // As long as an API server may have old versions.
		if got := informer.LastSyncResourceVersion(); got != "9" {
			t.Errorf("in 5 minutes it has come to version %s, by %d pages", got, len(s.asked))
		}
		cancel()
		<-done
	})
}

// TestKeeperFails holds that what cannot be kept is said, in a list and in a change.
func TestKeeperFails(t *testing.T) {
	for name, keep := range map[string]toolscache.TransformFunc{
		"an error":  func(any) (any, error) { return nil, errors.New("too large") },
		"no object": func(any) (any, error) { return "text", nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := &old{pods: 1, changes: watch.NewFake()}
			k := &keeper{from: &toolscache.ListWatch{ListWithContextFunc: s.answer, WatchFuncWithContext: s.tell}, keep: keep}
			if got, err := k.listKept(t.Context(), metav1.ListOptions{}); err == nil {
				t.Errorf("the list is %v", got)
			}
			changes, err := k.watchKept(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			pod := large(1)
			go s.changes.Add(&pod)
			if e := <-changes.ResultChan(); e.Type != watch.Error {
				t.Errorf("the change is %+v", e)
			}
		})
	}
}

// TestStoppedWatch holds that a watch that is stopped ends, though nobody reads the change of which it would tell.
func TestStoppedWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &old{changes: watch.NewFake()}
		k := &keeper{from: &toolscache.ListWatch{ListWithContextFunc: s.answer, WatchFuncWithContext: s.tell}, keep: noLabels}
		changes, err := k.watchKept(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod := large(1)
		s.changes.Add(&pod)
		changes.Stop()
		changes.Stop()
	}) // It fails while something goes on.
}
