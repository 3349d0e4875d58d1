// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/watch"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

func TestWhoIsConcerned(t *testing.T) {
	a, b := cluster.Identity{ID: "id-a", Name: "a"}, cluster.Identity{ID: "id-b", Name: "b"}
	first, second := cluster.Identity{ID: "id-1363", Name: "twin"}, cluster.Identity{ID: "id-1561", Name: "twin"}
	forged := liqotest.Offer(b, nil)
	forged.Spec.ClusterID = string(a.ID)
	lying := liqotest.VirtualNode(a, true)
	lying.Name = "liqo-b"
	elsewhere := liqotest.Offer(a, nil)
	elsewhere.Namespace = "elsewhere"
	sameName := liqotest.ForeignCluster(second, true, false)
	sameName.Name = "second"
	r := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{}, liqotest.ForeignCluster(a, true, false),
		liqotest.ForeignCluster(b, true, false),
		liqotest.ForeignCluster(first, true, false), sameName, liqotest.Offer(a, nil), liqotest.Offer(b, nil)), "")
	cases := map[string]struct {
		reason string
		of     handler.MapFunc
		object client.Object
		want   []string
	}{
		"Offer": {
			reason: "An offer is of the cluster of its namespace.", of: watch.OfTenant(r), object: liqotest.Offer(a, nil), want: []string{"id-a"},
		},
		"Forged":    {reason: "Whatever it says.", of: watch.OfTenant(r), object: forged, want: []string{"id-b"}},
		"Elsewhere": {reason: "In another namespace it is nobody's.", of: watch.OfTenant(r), object: elsewhere},
		"Node":      {reason: "A node is of who offers it.", of: watch.OfNode(r), object: liqotest.VirtualNode(a, true), want: []string{"id-a"}},
		"Lying":     {reason: "One that says otherwise matters to both.", of: watch.OfNode(r), object: lying, want: []string{"id-a", "id-b"}},
		"Peer": {
			reason: "A foreign cluster matters to its own objects.", of: watch.OfRecord(r), object: liqotest.ForeignCluster(a, true, false),
			want: []string{"id-a"},
		},
		"Namesake": {
			reason: "And to those of who may have its name now.", of: watch.OfRecord(r), object: sameName,
			want: []string{"id-1561", "id-1363"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, request := range tc.of(t.Context(), tc.object) {
				got = append(got, request.Name)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%s\ngot %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// queue notes what is to be looked at now and later.
type queue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]

	now, later []string
}

func (q *queue) Add(request reconcile.Request) { q.now = append(q.now, request.Name) }

func (q *queue) AddAfter(request reconcile.Request, after time.Duration) {
	q.later = append(q.later, fmt.Sprintf("%s in %s", request.Name, after))
}

// TestLater changes an object: who it concerns is looked at a moment later.
func TestLater(t *testing.T) {
	consumer := func(name string) *v1alpha1.Consumer {
		return &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	c := snapshottest.NewClient(t, interceptor.Funcs{}, consumer("id-a"), consumer("id-b"))
	h, q, pod := watch.Later(watch.EveryConsumer(c)), &queue{}, &corev1.Pod{}
	for name, change := range map[string]func(){
		"Create": func() { h.Create(t.Context(), event.CreateEvent{Object: pod}, q) },
		"Update": func() { h.Update(t.Context(), event.UpdateEvent{ObjectOld: pod, ObjectNew: pod}, q) },
		"Delete": func() { h.Delete(t.Context(), event.DeleteEvent{Object: pod}, q) },
	} {
		q.later = nil
		change()
		if !slices.Equal(q.later, []string{"id-a in 1s", "id-b in 1s"}) {
			t.Errorf("%s: looked at later are %v", name, q.later)
		}
	}
	broken := snapshottest.NewClient(t, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("broken")
		},
	}, consumer("id-a"))
	if got := watch.EveryConsumer(broken)(t.Context(), pod); len(got) > 0 {
		t.Errorf("without a list there are %v", got)
	}
}

// TestEvery finds all objects of a kind, by their names and namespaces.
func TestEvery(t *testing.T) {
	pod := func(namespace string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	}
	c := snapshottest.NewClient(t, interceptor.Funcs{}, pod("a"), pod("b"), &corev1.Node{})
	if got := fmt.Sprint(watch.Every[corev1.PodList](c, "Cannot list the pods")(t.Context(), nil)); got != "[a/web b/web]" {
		t.Errorf("it finds %s", got)
	}
}

// TestChanged lets an update pass if it is of the type that is looked at, and changes what is.
func TestChanged(t *testing.T) {
	called := func(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	changed := watch.Changed(func(before, after *corev1.Node) bool { return before.Name == "a" && after.Name == "b" })
	for reason, tc := range map[string]struct {
		before, after client.Object
		want          bool
	}{
		"It is another one.":               {called("a"), called("b"), true},
		"It is the same.":                  {called("a"), called("a"), false},
		"It was something else.":           {&corev1.Pod{}, called("b"), false},
		"It is something else.":            {called("a"), &corev1.Pod{}, false},
		"Nobody knows what it was before.": {nil, called("b"), false},
	} {
		if got := changed(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s It passes: %t, want %t", reason, got, tc.want)
		}
	}
}

// TestPromptly changes an object some times: who it concerns is looked at once in each second, and at the first change at once.
func TestPromptly(t *testing.T) {
	c := snapshottest.NewClient(t, interceptor.Funcs{}, &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "id-a"}})
	now := testingclock.NewFakePassiveClock(time.Unix(5_000, 0))
	h, q, provider := watch.Promptly(watch.EveryConsumer(c), now), &queue{}, &v1alpha1.Provider{}
	for _, step := range []struct {
		reason string
		after  time.Duration
		want   []string
	}{
		{"The first one does not wait.", 0, []string{"id-a"}},
		{"One that follows at once does.", 0, nil},
		{"So does one that follows a moment later.", 900 * time.Millisecond, nil},
		{"A second after the one that did not wait, the next one does not.", 100 * time.Millisecond, []string{"id-a"}},
		{"Those that waited do not count.", time.Second, []string{"id-a"}},
	} {
		now.SetTime(now.Now().Add(step.after))
		q.now = nil
		h.Update(t.Context(), event.UpdateEvent{ObjectOld: provider, ObjectNew: provider}, q)
		if !slices.Equal(q.now, step.want) || len(q.later) > 0 {
			t.Errorf("%s\nlooked at are %v, and later %v; want %v", step.reason, q.now, q.later, step.want)
		}
	}
	q.now = nil
	now.SetTime(now.Now().Add(time.Minute))
	h.Create(t.Context(), event.CreateEvent{Object: provider}, q)
	h.Delete(t.Context(), event.DeleteEvent{Object: provider}, q)
	if len(q.now) > 0 {
		t.Errorf("what comes and goes is looked at: %v", q.now)
	}
}
