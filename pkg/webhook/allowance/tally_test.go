// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package allowance

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

// pages has a client answer in pages, as an API server does, and counts the objects of the largest page.
func pages(largest *atomic.Int64) interceptor.Funcs {
	return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		options := (&client.ListOptions{}).ApplyOptions(opts)
		from, _ := strconv.Atoi(options.Continue)
		if err := c.List(ctx, list, &client.ListOptions{LabelSelector: options.LabelSelector}); err != nil {
			return err
		}
		cut := func(all int) (first, end int) {
			end = all
			if options.Limit > 0 {
				end = min(from+int(options.Limit), all)
			}
			if end < all {
				list.SetContinue(fmt.Sprint(end))
			}
			largest.Store(max(largest.Load(), int64(end-from)))
			return from, end
		}
		switch list := list.(type) {
		case *v09.ShadowPodList:
			first, end := cut(len(list.Items))
			list.Items = slices.Clone(list.Items[first:end])
		case *corev1.PodList:
			first, end := cut(len(list.Items))
			list.Items = slices.Clone(list.Items[first:end])
		}
		return nil
	}}
}

// TestRun follows what an API server has and says, page by page.
func TestRun(t *testing.T) {
	objects := []client.Object{made(wish(web, "orphan", corev1.PodRunning, spec("cpu", "1")))}
	for n := range 3*page + 1 {
		objects = append(objects, wish(jobs, fmt.Sprint(n), corev1.PodSucceeded, spec("cpu", "1")))
	}
	objects = append(objects, wish(jobs, "last", corev1.PodRunning, spec("cpu", "1"))) // In the last page: numbers are first.
	people := made(wish(web, "people", corev1.PodRunning, spec("cpu", "4")))
	people.Labels = nil
	var largest atomic.Int64
	api := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(append(objects, people)...).
		WithInterceptorFuncs(pages(&largest)).Build()
	d := offered(t, unchanged, nil, nil)
	d.Tally = NewTally(api, v09.Line{}, clock.RealClock{})
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- d.Tally.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("Run(): %v", err)
		}
	}()
	if !d.Tally.WaitForSync(ctx) {
		t.Fatal("WaitForSync() = false")
	}
	if got := largest.Load(); got != page {
		t.Errorf("a page has %d objects, want %d", got, page)
	}
	until := func(cores, refusal string) {
		t.Helper()
		request := asked(t, admissionv1.Create, wish(web, "new", "", spec("cpu", cores)), nil)
		request.DryRun = new(true)
		deadline := time.Now().Add(time.Minute)
		for {
			answer := d.Handle(ctx, request)
			if answer.Allowed == (refusal == "") && (answer.Allowed || strings.Contains(answer.Result.Message, refusal)) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("allowed %t, %+v, want %q", answer.Allowed, answer.Result, refusal)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	until("3", "5 of 4 cpu")
	until("2", "")
	// The fake API server does not say what has changed before it is asked to: so until it is, there is another one.
	more := wish(web, "more", corev1.PodRunning, spec("cpu", "1"))
	for deadline := time.Now().Add(time.Minute); !slices.Contains(namesIn(d.Tally, web), more.Name); {
		if err := client.IgnoreNotFound(api.Delete(ctx, more.DeepCopy())); err != nil || time.Now().After(deadline) {
			t.Fatalf("a new ShadowPod is not seen: %v", err)
		}
		if err := api.Create(ctx, more.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	until("2", "5 of 4 cpu")
	if err := api.Delete(ctx, more.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	until("2", "")
}

// namesIn returns the names that are known in a namespace.
func namesIn(t *Tally, namespace string) (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range t.places[namespace] {
		names = append(names, name)
	}
	return names
}

// TestMemory has peers fill their pods with what the guard does not need.
func TestMemory(t *testing.T) {
	const count, most = 20_000, 600 // Bytes for a pod and its ShadowPod.
	live := func() int64 {
		runtime.GC()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	tally := NewTally(nil, v09.Line{}, clock.RealClock{})
	before := live()
	for n := range count {
		shadow := wish(web, fmt.Sprintf("deployment-7d4b9c6f5d-%05d", n), corev1.PodRunning,
			spec("cpu", "1", "memory", "1Gi", "ephemeral-storage", "1Gi"))
		shadow.Annotations = map[string]string{"large": strings.Repeat("a", 4096)}
		shadow.Spec.Pod.Containers[0].Command = []string{strings.Repeat("b", 4096)}
		tally.put(wishes, shadow, true, true)
		tally.put(pods, made(shadow), true, true)
	}
	each := (live() - before) / count
	t.Logf("%d bytes for each pod", each)
	if each > most {
		t.Errorf("%d bytes for each pod, want at most %d", each, most)
	}
	runtime.KeepAlive(tally)
}
