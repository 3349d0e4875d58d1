// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/agent/watch"
)

// TestAll changes an object: a controller looks at all that is found then, and at nothing if nothing can be found, of which the log tells.
func TestAll(t *testing.T) {
	cases := map[string]struct {
		reason string
		found  []client.ObjectKey
		err    error
		want   []string
	}{
		"Some": {
			"Names are those of objects in a namespace, or in none.",
			[]client.ObjectKey{{Name: "a"}, {Namespace: "n", Name: "b"}}, nil, []string{"/a", "n/b"},
		},
		"None":   {"There may be nothing to look at.", nil, nil, nil},
		"Failed": {"What is found with an error is not all.", []client.ObjectKey{{Name: "a"}}, errors.New("no cache"), nil},
	}
	pod := &corev1.Pod{}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var log []string
			ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, line string) { log = append(log, line) }, funcr.Options{}))
			objects := fake.NewClientBuilder().Build()
			h := watch.All(objects, func(_ context.Context, in client.Reader) ([]client.ObjectKey, error) {
				if in != objects {
					t.Errorf("it is looked for in %v", in)
				}
				return tc.found, tc.err
			}, "Cannot find it")
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			for what, change := range map[string]func(){
				"Create": func() { h.Create(ctx, event.CreateEvent{Object: pod}, q) },
				"Update": func() { h.Update(ctx, event.UpdateEvent{ObjectOld: pod, ObjectNew: pod}, q) },
				"Delete": func() { h.Delete(ctx, event.DeleteEvent{Object: pod}, q) },
			} {
				log = nil
				change()
				var got []string
				for q.Len() > 0 {
					request, _ := q.Get()
					q.Done(request)
					got = append(got, request.String())
				}
				slices.Sort(got)
				if !slices.Equal(got, tc.want) {
					t.Errorf("%s: %s It looks at %v, want %v", what, tc.reason, got, tc.want)
				}
				// Of an update it is asked for what was and for what is.
				log = slices.Compact(log)
				told := len(log) == 1 && strings.Contains(log[0], "Cannot find it") && strings.Contains(log[0], "no cache")
				if told != (tc.err != nil) || len(log) > 1 {
					t.Errorf("%s: the log tells %q", what, log)
				}
			}
		})
	}
}
