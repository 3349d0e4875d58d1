// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

func TestCount(t *testing.T) {
	milan, turin := cluster.Identity{ID: "id-milan", Name: "milan"}, cluster.Identity{ID: "id-turin", Name: "turin"}
	rome, oslo := cluster.Identity{ID: "id-rome", Name: "rome"}, cluster.Identity{ID: "id-oslo", Name: "oslo"}
	provider := func(of cluster.Identity, scheduling v1alpha1.Scheduling, ready metav1.ConditionStatus) *v1alpha1.Provider {
		p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: string(of.ID)}}
		p.Spec.Scheduling = scheduling
		p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: ready}}
		return p
	}
	pod := func(namespace, on string, i int, phase corev1.PodPhase) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("pod-", i)}}
		p.Spec.NodeName, p.Status.Phase = on, phase
		return p
	}
	other := provider(turin, v1alpha1.SchedulingActive, metav1.ConditionTrue)
	all := []client.Object{
		pod("shop", "liqo-milan", 1, corev1.PodRunning), pod("shop", "liqo-milan", 2, corev1.PodPending),
		pod("shop", "liqo-milan", 3, corev1.PodSucceeded), pod("shop", "liqo-turin", 4, corev1.PodRunning),
		pod("bank", "liqo-milan", 5, corev1.PodRunning), pod("own", "liqo-milan", 6, corev1.PodRunning),
		pod("gone", "liqo-milan", 7, corev1.PodRunning),
	}
	cases := map[string]struct {
		reason string
		to     v1alpha1.Scheduling
		other  *v1alpha1.Provider // Nil for none.
		pods   []client.Object
		want   string
	}{
		"Drained": {
			reason: "Pods of consumers leave; those that have ended, of others and elsewhere do not count.", to: v1alpha1.SchedulingDrained,
			other: other, pods: all, want: "Provider id-milan has 3 pods of 2 consumers. They leave, as far as other providers can take them.",
		},
		"Cordoned": {
			reason: "When it is cordoned they stay.", to: v1alpha1.SchedulingCordoned, pods: all,
			want: "Provider id-milan has 3 pods of 2 consumers. What is there stays, and nothing new comes.",
		},
		"Alone": {
			reason: "Without another provider they have nowhere to go.", to: v1alpha1.SchedulingDrained, pods: all[:1],
			want: "Provider id-milan has 1 pod of 1 consumer. No other provider is ready, so that none can take them.",
		},
		"NotReady": {
			reason: "Nor with one that is not ready.", to: v1alpha1.SchedulingDrained, pods: all,
			other: provider(turin, v1alpha1.SchedulingActive, metav1.ConditionFalse),
			want:  "Provider id-milan has 3 pods of 2 consumers. No other provider is ready, so that none can take them.",
		},
		"Closed": {
			reason: "Nor with one that is closed.", to: v1alpha1.SchedulingDrained, pods: all,
			other: provider(turin, v1alpha1.SchedulingCordoned, metav1.ConditionTrue),
			want:  "Provider id-milan has 3 pods of 2 consumers. No other provider is ready, so that none can take them.",
		},
		"Empty": {reason: "Of one without pods there is nothing to say.", to: v1alpha1.SchedulingDrained, pods: all[5:]},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := append([]client.Object{
				liqotest.ForeignCluster(milan, true, false), liqotest.ForeignCluster(turin, true, false),
				liqotest.Offer(milan, nil), liqotest.Offer(turin, nil), liqotest.VirtualNode(milan, true), liqotest.VirtualNode(turin, true),
				liqotest.TwinNamespace("shop", rome), liqotest.TwinNamespace("bank", oslo),
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "own"}},
			}, tc.pods...)
			if tc.other != nil {
				objects = append(objects, tc.other)
			}
			c := snapshottest.NewClient(t, interceptor.Funcs{}, objects...)
			got, err := Foretell(c, snapshottest.Reader(c, "id-own"), nil)(t.Context(), provider(milan, tc.to, metav1.ConditionTrue))
			if err != nil || got != tc.want {
				t.Errorf("%s\n%q, %v; want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}

// TestCountFails holds that what cannot be counted is an error, and no sentence.
func TestCountFails(t *testing.T) {
	c := snapshottest.NewClient(t, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("boom")
		},
	})
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "id-milan"}}
	if got, err := Foretell(c, snapshottest.Reader(c, "id-own"), nil)(t.Context(), p); err == nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
}

// What is said of a provider with one pod, and of any if there is no other.
const (
	one    = "Provider id-milan has 1 pod of 1 consumer."
	closed = " No other provider is ready, so that none can take them."
)

// TestForetell has a drain foreseen: what cannot be foreseen within bounds is counted, and nothing of it is an error.
func TestForetell(t *testing.T) {
	const foreseen = "Of the pods on the provider 1 would move at once"
	says := func(context.Context, cluster.ID) (string, error) { return foreseen, nil }
	cases := map[string]struct {
		reason           string
		to               v1alpha1.Scheduling // Drained if it is empty.
		pods, namespaces int                 // One of each if they are zero.
		foresee          Foresight
		want             string
		after            time.Duration
		asked            bool
	}{
		"Drained": {reason: "What is foreseen is said.", foresee: says, want: foreseen, asked: true},
		"Cordoned": {
			reason: "Nothing moves.", to: v1alpha1.SchedulingCordoned, foresee: says,
			want: one + " What is there stays, and nothing new comes.",
		},
		"Nobody": {reason: "Nobody foresees.", want: one + closed},
		"Slow": {
			reason: "Nobody waits for long.", foresee: func(ctx context.Context, _ cluster.ID) (string, error) {
				<-ctx.Done()
				return "", fmt.Errorf("plan: %w", ctx.Err())
			}, want: one + closed, after: foresightTimeout, asked: true,
		},
		"Late": {
			reason: "What is there although it is late is said.", foresee: func(ctx context.Context, _ cluster.ID) (string, error) {
				<-ctx.Done()
				return foreseen, nil
			}, want: foreseen, after: foresightTimeout, asked: true,
		},
		"Fails": {
			reason: "An error is none of the change.", foresee: func(context.Context, cluster.ID) (string, error) {
				return foreseen, errors.New("boom")
			}, want: one + closed, asked: true,
		},
		"Panics": {
			reason: "Nor is a fault.", foresee: func(context.Context, cluster.ID) (string, error) { panic("boom") }, want: one + closed, asked: true,
		},
		"Unknown": {
			reason: "Nothing is known of the provider.", foresee: func(context.Context, cluster.ID) (string, error) { return "", nil },
			want: one + closed, asked: true,
		},
		"Full": {
			reason: "So much is foreseen.", pods: maxForeseenPods, namespaces: maxForeseenNamespaces, foresee: says, want: foreseen, asked: true,
		},
		"Pods": {
			reason: "More pods are only counted.", pods: maxForeseenPods + 1, foresee: says,
			want: fmt.Sprintf("Provider id-milan has %d pods of 1 consumer.", maxForeseenPods+1) + closed,
		},
		"Namespaces": {
			reason: "So are those of more namespaces.", pods: maxForeseenNamespaces + 1, namespaces: maxForeseenNamespaces + 1, foresee: says,
			want: fmt.Sprintf("Provider id-milan has %d pods of 1 consumer.", maxForeseenNamespaces+1) + closed,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := full(t, max(tc.pods, 1), max(tc.namespaces, 1))
			synctest.Test(t, func(t *testing.T) {
				asked, foresee := false, Foresight(nil)
				if tc.foresee != nil {
					foresee = func(ctx context.Context, provider cluster.ID) (string, error) {
						asked = true
						if provider != "id-milan" {
							t.Errorf("%s\nasked about %s", tc.reason, provider)
						}
						return tc.foresee(ctx, provider)
					}
				}
				tell, began := Foretell(c, snapshottest.Reader(c, "id-own"), foresee), time.Now()
				for range 2 { // The first one leaves nothing behind that is in the way of the next.
					asked = false
					got, err := tell(t.Context(), milanTo(tc.to))
					if err != nil || got != tc.want || asked != tc.asked {
						t.Errorf("%s\n%q, %v, foreseen: %t; want %q, %t", tc.reason, got, err, asked, tc.want, tc.asked)
					}
				}
				if took := time.Since(began); took != 2*tc.after {
					t.Errorf("%s\nit took %s", tc.reason, took)
				}
			})
		})
	}
}

// TestForetellOneAtATime has many ask while a drain is being foreseen: they get the count at once.
func TestForetellOneAtATime(t *testing.T) {
	c := full(t, 1, 1)
	synctest.Test(t, func(t *testing.T) {
		release, foreseeing := make(chan struct{}), 0
		tell := Foretell(c, snapshottest.Reader(c, "id-own"), func(context.Context, cluster.ID) (string, error) {
			foreseeing++
			<-release
			return "foreseen", nil
		})
		first := make(chan string)
		go func() {
			got, _ := tell(t.Context(), milanTo(""))
			first <- got
		}()
		synctest.Wait()
		for range 3 {
			got, err := tell(t.Context(), milanTo(""))
			if want := one + closed; err != nil || got != want {
				t.Errorf("who asks meanwhile is told %q, %v; want %q", got, err, want)
			}
		}
		if foreseeing != 1 {
			t.Errorf("%d drains are foreseen at a time", foreseeing)
		}
		close(release)
		if got := <-first; got != "foreseen" {
			t.Errorf("who asked first is told %q", got)
		}
		if got, err := tell(t.Context(), milanTo("")); err != nil || got != "foreseen" {
			t.Errorf("who asks afterwards is told %q, %v", got, err)
		}
	})
}

// full returns what reads a provider that has pods in some namespaces of one consumer, one after the other.
func full(t *testing.T, pods, namespaces int) client.Client {
	t.Helper()
	milan, rome := cluster.Identity{ID: "id-milan", Name: "milan"}, cluster.Identity{ID: "id-rome", Name: "rome"}
	objects := []client.Object{liqotest.ForeignCluster(milan, true, false), liqotest.Offer(milan, nil), liqotest.VirtualNode(milan, true)}
	for i := range namespaces {
		objects = append(objects, liqotest.TwinNamespace(fmt.Sprint("shop-", i), rome))
	}
	for i := range pods {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("shop-", i%namespaces), Name: fmt.Sprint("pod-", i)}}
		p.Spec.NodeName = "liqo-milan"
		objects = append(objects, p)
	}
	return snapshottest.NewClient(t, interceptor.Funcs{}, objects...)
}

// milanTo is a provider that somebody closes, and drains if nothing else is said.
func milanTo(to v1alpha1.Scheduling) *v1alpha1.Provider {
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "id-milan"}}
	p.Spec.Scheduling = cmp.Or(to, v1alpha1.SchedulingDrained)
	return p
}
