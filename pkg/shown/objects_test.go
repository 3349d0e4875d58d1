// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package shown

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
	"github.com/capacitorset/liqo-broker/pkg/shown/showntest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// relayed is a line of Liqo with which consumers reach all providers through the broker.
type relayed struct{ v09.Line }

func (relayed) DirectPaths() bool { return false }

// TestPaths holds that a tunnel past the broker is the path of pods only with a line of Liqo that has direct paths, and that consumers are
// advised of providers to peer with only then.
func TestPaths(t *testing.T) {
	c := snapshottest.NewClient(t, interceptor.Funcs{}, showntest.World()...)
	paths := func(o *Objects) map[string]string {
		items, err := o.placed(t.Context(), Workloads, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, item := range items {
			if w, is := item.Value.(apiv1.Workload); is {
				all[w.Consumer.ID] = w.Path
			}
		}
		return all
	}
	for of, want := range map[line.Line]map[string]string{
		v09.Line{}: {string(showntest.Sees.ID): "direct", string(showntest.Blind.ID): "relay"},
		relayed{}:  {string(showntest.Sees.ID): "relay", string(showntest.Blind.ID): "relay"},
	} {
		if diff := cmp.Diff(want, paths(&Objects{Reader: c, Line: of, Own: showntest.Broker})); diff != "" {
			t.Errorf("%T (-want +got):\n%s", of, diff)
		}
	}
	for of, want := range map[line.Line]bool{v09.Line{}: true, relayed{}: false} {
		items, err := (&Objects{Reader: c, Line: of, Own: showntest.Broker}).placed(t.Context(), Advice, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		advised := slices.ContainsFunc(items, func(item feed.Item) bool {
			a, is := item.Value.(apiv1.Advice)
			return is && len(a.Peers) > 0
		})
		if advised != want {
			t.Errorf("%T: consumers are advised of providers: %t, want %t", of, advised, want)
		}
	}
}

// TestFlows holds that flows count the pods that workloads list, each once.
func TestFlows(t *testing.T) {
	o := &Objects{
		Reader: snapshottest.NewClient(t, interceptor.Funcs{}, showntest.World()...), Line: v09.Line{}, Own: showntest.Broker,
	}
	pods := map[string]int{}
	workloads, err := o.Items(t.Context(), Workloads)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range workloads {
		w, is := item.Value.(apiv1.Workload)
		if !is || w.Provider == nil {
			t.Fatalf("a workload without a provider: %+v", item.Value)
		}
		pods[w.Consumer.ID+"/"+w.Provider.ID+"/"+w.Path]++
	}
	counted := map[string]int{}
	flows, err := o.Items(t.Context(), Flows)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range flows {
		f, is := item.Value.(apiv1.Flow)
		if !is || item.Consumer != f.Consumer.ID {
			t.Fatalf("no flow of a consumer: %+v", item)
		}
		counted[item.Key] += f.Pods
	}
	if diff := cmp.Diff(pods, counted); diff != "" || len(pods) != 2 {
		t.Errorf("pods that are listed, and those that are counted (-listed +counted):\n%s", diff)
	}
}

// about returns an event about an object of the broker, some seconds after midnight.
func about(uid, kind, name string, at int) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: uid, Namespace: metav1.NamespaceDefault, UID: types.UID(uid)},
		InvolvedObject: corev1.ObjectReference{APIVersion: "brokering.liqo.io/v1alpha1", Kind: kind, Name: name},
		LastTimestamp:  metav1.NewTime(showntest.Midnight.Add(time.Duration(at) * time.Second)),
	}
}

// TestActivity holds that the events about the broker's objects are shown with the names of clusters, and no others.
func TestActivity(t *testing.T) {
	elsewhere, another, forged := about("1", "Provider", "p", 1), about("2", "Pod", "p", 1), about("3", "Provider", "p", 1)
	elsewhere.Namespace = "shop-sees"
	another.InvolvedObject.APIVersion = "v1"
	forged.InvolvedObject.Namespace = metav1.NamespaceDefault // Of who may write only about what is in a namespace.
	world := append(showntest.World(), elsewhere, another, forged, about("milan", "Provider", string(showntest.Milan.ID), 4),
		about("gone", "Provider", "gone", 3),
		about("sees", "Consumer", string(showntest.Sees.ID), 2), about("policy", "PlacementPolicy", "cheap", 5))
	o := &Objects{Reader: snapshottest.NewClient(t, interceptor.Funcs{}, world...), Line: v09.Line{}, Own: showntest.Broker}
	items, err := o.Items(t.Context(), Activity)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][2]*apiv1.Cluster{}
	for _, item := range items {
		a, is := item.Value.(apiv1.Activity)
		if !is || item.Consumer != "" {
			t.Fatalf("%+v", item)
		}
		got[item.Key] = [2]*apiv1.Cluster{a.Provider, a.Consumer}
	}
	if diff := cmp.Diff(map[string][2]*apiv1.Cluster{
		"milan": {{ID: string(showntest.Milan.ID), Name: showntest.Milan.Name}}, "gone": {{ID: "gone"}},
		"sees": {nil, {ID: string(showntest.Sees.ID), Name: showntest.Sees.Name}}, "policy": {},
	}, got); diff != "" {
		t.Errorf("the provider and the consumer of what has happened (-want +got):\n%s", diff)
	}
}

// TestManyActivities holds that of very much the newest is shown.
func TestManyActivities(t *testing.T) {
	var world []client.Object
	for i := range maxActivities + 50 {
		world = append(world, about(fmt.Sprintf("%04d", i), "Provider", "p", i))
	}
	o := &Objects{Reader: snapshottest.NewClient(t, interceptor.Funcs{}, world...), Line: v09.Line{}, Own: showntest.Broker}
	items, err := o.Items(t.Context(), Activity)
	if err != nil || len(items) != maxActivities || items[0].Key != "1049" || items[maxActivities-1].Key != "0050" {
		t.Errorf("%d items (%v), from %+v", len(items), err, items[:min(len(items), 1)])
	}
}

// TestStatus holds that a daemon that observes itself neither reads Deployments nor misses its own, and that others do.
func TestStatus(t *testing.T) {
	read := 0
	reader := snapshottest.NewClient(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*appsv1.Deployment); is {
				read++
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, is := list.(*appsv1.DeploymentList); is {
				read++
			}
			return c.List(ctx, list, opts...)
		},
	}, showntest.World()...)
	programs := &Programs{Daemon: client.ObjectKey{Namespace: "liqo-broker", Name: "liqo-broker"}, Liqo: "liqo"}
	for _, test := range []struct {
		who     string
		objects Objects
		misses  bool
	}{
		{"the daemon", Objects{Running: []string{"orchestrator"}}, false},
		{"a person", Objects{Programs: programs}, true},
	} {
		read = 0
		test.objects.Reader, test.objects.Line, test.objects.Own = reader, v09.Line{}, showntest.Broker
		items, err := test.objects.Items(t.Context(), Status)
		if err != nil || len(items) != 1 || items[0].Key != TheStatus {
			t.Fatalf("as %s: %v (%v)", test.who, items, err)
		}
		status, is := items[0].Value.(apiv1.Status)
		if !is || status.Providers.Total != 2 || status.Consumers.Total != 2 {
			t.Errorf("as %s: %+v", test.who, items[0].Value)
		}
		misses := slices.ContainsFunc(status.Next, func(f apiv1.Finding) bool { return strings.Contains(f.What, "There is no Deployment") })
		if misses != test.misses || read > 0 != test.misses {
			t.Errorf("as %s: %d reads of Deployments, %+v", test.who, read, status.Next)
		}
	}
}
