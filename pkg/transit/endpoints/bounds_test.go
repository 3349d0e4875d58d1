// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/transittest"
)

// offloaded returns a namespace of a consumer that this cluster offloads.
func offloaded(name, consumer string) []client.Object {
	ns := transittest.Made(&corev1.Namespace{}, "", name, map[string]string{liqo.LabelRemoteClusterID: consumer})
	ns.Annotations = map[string]string{"liqo.io/managed-by-namespace-map": "x/y"}
	return []client.Object{ns, transittest.Made(&api.NamespaceOffloading{}, name, liqo.OffloadingName, nil)}
}

// written returns a slice of a consumer in a namespace, which was made at a second.
func written(namespace, consumer, name string, second int64, addresses ...string) *discoveryv1.EndpointSlice {
	s := transittest.Endpoints(name, addresses...)
	s.Namespace, s.Labels[api.LabelOriginCluster] = namespace, consumer
	s.UID = types.UID(namespace + "/" + name)
	s.CreationTimestamp = metav1.NewTime(time.Unix(second, 0))
	return s
}

func openedIn(t *testing.T, w *transittest.World, namespace string) []string {
	t.Helper()
	var all api.IPList
	if err := w.List(t.Context(), &all, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var ips []string
	for i := range all.Items {
		ips = append(ips, all.Items[i].Spec.IP)
	}
	slices.Sort(ips)
	return ips
}

// TestBoundOfConsumer has consumer c ask for more than is opened of it, in two namespaces: what was there first stays, people are told, and
// another consumer misses nothing.
func TestBoundOfConsumer(t *testing.T) {
	objects := slices.Concat(offloaded("early", "c"), offloaded("late", "c"), offloaded("other", "d"),
		transittest.Peer("d", "10.66.0.0/16", true), []client.Object{
			written("early", "c", "a", 1, "10.200.0.1", "10.200.0.2"),
			written("late", "c", "a", 2, "10.200.0.3", "10.200.0.4", "10.200.0.5"),
			written("other", "d", "a", 3, "10.66.0.1", "10.66.0.2", "10.66.0.3"),
		})
	w := transittest.New(t, objects...)
	var log []string
	logger := funcr.New(func(_, args string) { log = append(log, args) }, funcr.Options{})
	r := reconciler(w, 3)
	now := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	r.cfg.Clock = now
	all := func() {
		t.Helper()
		for _, consumer := range []string{"c", "d"} {
			request := ctrl.Request{NamespacedName: client.ObjectKey{Name: consumer}}
			if _, err := r.Reconcile(ctrl.LoggerInto(t.Context(), logger), request); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(reason string, want map[string][]string) {
		t.Helper()
		got := map[string][]string{}
		for namespace := range want {
			got[namespace] = openedIn(t, w, namespace)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s -want +opened\n%s", reason, diff)
		}
	}
	ofOther := []string{"10.66.0.1", "10.66.0.2", "10.66.0.3"}

	all()
	check("What was first goes first.", map[string][]string{
		"early": {"10.200.0.1", "10.200.0.2"}, "late": {"10.200.0.3"}, "other": ofOther,
	})
	all()
	if len(log) != 1 || !strings.Contains(log[0], `"consumer"="c"`) || !strings.Contains(log[0], `"mostAddresses"=3`) ||
		!strings.Contains(log[0], `"endpointsBeyondConsumer"=2`) || !strings.Contains(log[0], `"namespaces"=["late"]`) {
		t.Errorf("people are told of whom, which bound and where once, not %q", log)
	}
	now.SetTime(now.Now().Add(quiet))
	if all(); len(log) != 2 {
		t.Errorf("people are not told again: %q", log)
	}

	if err := w.Delete(t.Context(), written("early", "c", "a", 1)); err != nil {
		t.Fatal(err)
	}
	all()
	check("What goes leaves room.", map[string][]string{
		"early": nil, "late": {"10.200.0.3", "10.200.0.4", "10.200.0.5"}, "other": ofOther,
	})
	now.SetTime(now.Now().Add(quiet))
	if all(); len(log) != 2 {
		t.Errorf("people are told of what is over: %q", log)
	}
}

// TestNamespacesApart holds that what cannot be written in one namespace of a consumer keeps nothing of another from it.
func TestNamespacesApart(t *testing.T) {
	w := transittest.New(t, slices.Concat(offloaded("early", "c"), offloaded("late", "c"), []client.Object{
		written("early", "c", "a", 1, "10.200.0.1"), written("late", "c", "a", 2, "10.200.0.2"),
	})...)
	w.Fail = func(o client.Object) error {
		if o.GetNamespace() == "early" {
			return errTaken
		}
		return nil
	}
	if err := run(t, w); err == nil || !strings.Contains(err.Error(), "early") {
		t.Errorf("nobody is told what fails: %v", err)
	}
	if got := openedIn(t, w, "late"); !slices.Equal(got, []string{"10.200.0.2"}) {
		t.Errorf("%v is opened in the other one", got)
	}
}

// TestNotKept has a consumer ask for more than is kept in memory: people are told, and providers of the rest when there is room.
func TestNotKept(t *testing.T) {
	const all = 60
	objects := offloaded("twin", "c")
	for i := range all {
		objects = append(objects, written("twin", "c", fmt.Sprintf("s%02d", i), int64(i+1), fmt.Sprintf("10.200.0.%d", i+1)))
	}
	live := transittest.New(t, objects...)
	k := NewKept(2 * bytesOf(bared("twin", "s00")))
	k.namespaces = live
	kept := offloaded("twin", "c")
	var slicesOf discoveryv1.EndpointSliceList
	if err := live.List(t.Context(), &slicesOf, client.InNamespace("twin")); err != nil {
		t.Fatal(err)
	}
	for i := range slicesOf.Items {
		k.Bare(&slicesOf.Items[i])
		kept = append(kept, &slicesOf.Items[i])
	}
	var log []string
	logger := funcr.New(func(_, args string) { log = append(log, args) }, funcr.Options{})
	w := transittest.New(t, kept...)
	r := reconciler(w, 1000)
	r.cfg.Live, r.cfg.Kept = live, k
	for i, step := range []struct {
		reason string
		most   int64
		want   int
		again  time.Duration
	}{
		{"There is room for two.", k.most, 2, 0},
		{"Of more, so many are read at once.", 1 << 20, 2 + callsAtOnce, pause},
		{"And then the others.", 1 << 20, all, 0},
		{"Which stay.", 1 << 20, all, 0},
	} {
		k.most = step.most
		request := ctrl.Request{NamespacedName: client.ObjectKey{Name: "c"}}
		result, err := r.Reconcile(ctrl.LoggerInto(t.Context(), logger), request)
		if got := len(openedIn(t, w, "twin")); err != nil || got != step.want || result.RequeueAfter != step.again {
			t.Errorf("%d. %s %d addresses are opened, want %d; again after %s; %v", i, step.reason, got, step.want, result.RequeueAfter, err)
		}
	}
	if len(log) != 1 || !strings.Contains(log[0], `"slicesNotKept"=58`) || !strings.Contains(log[0], `"namespaces"=["twin"]`) {
		t.Errorf("people are told %q", log)
	}
}

// TestNothingReadAtHome holds that what is not offloaded is not read again.
func TestNothingReadAtHome(t *testing.T) {
	home := offloaded("home", "c")[:1]
	s := written("home", "c", "a", 1, "10.200.0.1")
	w := transittest.New(t, append(home, s)...)
	live := &reads{}
	r := reconciler(w, 1000)
	r.cfg.Live, r.cfg.Kept = live, NewKept(0)
	r.cfg.Kept.Bare(s.DeepCopy())
	var is discoveryv1.EndpointSlice
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(s), &is); err != nil {
		t.Fatal(err)
	}
	r.cfg.Kept.Bare(&is)
	if err := w.Update(t.Context(), &is); err != nil {
		t.Fatal(err)
	}
	r.cfg.Kept.most = 1 << 20
	if err := look(t, r); err != nil || live.made > 0 {
		t.Errorf("%d calls are made: %v", live.made, err)
	}
}
