// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/cached"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/transittest"
)

// keptWorld returns a Kept of as many bytes as some slices of one endpoint take, which knows namespaces of c, and one of d.
func keptWorld(t *testing.T, n int64) *Kept {
	t.Helper()
	w := transittest.New(t, append(append(offloaded("one", "c"), offloaded("two", "c")...), offloaded("other", "d")...)...)
	k := NewKept(n * bytesOf(bared("other", "a")))
	k.namespaces = w
	return k
}

// bared returns a slice of one endpoint, of consumer c, as it is kept.
func bared(namespace, name string) *discoveryv1.EndpointSlice {
	s := written(namespace, "c", name, 1, "10.200.0.1")
	NewKept(1 << 20).Bare(s)
	return s
}

// TestKept has slices come and go, and says of which all is kept.
func TestKept(t *testing.T) {
	come := func(namespace, name string) func(*Kept) *discoveryv1.EndpointSlice {
		return func(k *Kept) *discoveryv1.EndpointSlice {
			s := written(namespace, "c", name, 1, "10.200.0.1")
			k.Bare(s)
			return s
		}
	}
	for name, tc := range map[string]struct {
		reason string
		do     []func(*Kept) *discoveryv1.EndpointSlice // What is nil says nothing.
		want   string                                   // One letter for each that says something: kept or emptied.
	}{
		"Room": {"There is room for two.", []func(*Kept) *discoveryv1.EndpointSlice{come("one", "a"), come("one", "b")}, "kk"},
		"Beyond": {"And for no third one, in any namespace of the consumer.", []func(*Kept) *discoveryv1.EndpointSlice{
			come("one", "a"), come("one", "b"), come("two", "c"),
		}, "kke"},
		"Other": {"Another consumer has its own.", []func(*Kept) *discoveryv1.EndpointSlice{
			come("one", "a"), come("one", "b"), come("one", "c"), come("other", "a"), come("other", "b"),
		}, "kkekk"},
		"Unknown": {"So has a namespace of which nobody knows whose it is.", []func(*Kept) *discoveryv1.EndpointSlice{
			come("one", "a"), come("one", "b"), come("new", "a"), come("new", "b"), come("new", "c"),
		}, "kkkke"},
		"Again": {"What comes again takes no more.", []func(*Kept) *discoveryv1.EndpointSlice{
			come("one", "a"), come("one", "a"), come("one", "a"), come("one", "b"),
		}, "kkkk"},
		"Gone": {"What is gone leaves room.", []func(*Kept) *discoveryv1.EndpointSlice{
			come("one", "a"), come("one", "b"), func(k *Kept) *discoveryv1.EndpointSlice {
				k.gone(bared("one", "a"))
				k.gone(bared("one", "a"))
				return nil
			}, come("one", "c"), come("one", "d"),
		}, "kkke"},
		"Lost": {"Also what is gone while nobody looked.", []func(*Kept) *discoveryv1.EndpointSlice{
			come("one", "a"), come("one", "b"), func(k *Kept) *discoveryv1.EndpointSlice {
				k.gone(toolscache.DeletedFinalStateUnknown{Key: "one/a", Obj: bared("one", "a")})
				return nil
			}, come("one", "c"),
		}, "kkk"},
		"Replaced": {"And what another one has replaced.", []func(*Kept) *discoveryv1.EndpointSlice{
			come("one", "a"), come("one", "b"), func(k *Kept) *discoveryv1.EndpointSlice {
				again := bared("one", "a")
				again.UID = "another"
				k.replaced(bared("one", "a"), again)
				k.replaced(bared("one", "b"), bared("one", "b"))
				return nil
			}, come("one", "c"), come("one", "d"),
		}, "kkke"},
		"Grown": {"What grows beyond it says nothing any more, and makes no other do so.", []func(*Kept) *discoveryv1.EndpointSlice{
			come("one", "a"), func(k *Kept) *discoveryv1.EndpointSlice {
				var addresses []string
				for i := range 20 {
					addresses = append(addresses, fmt.Sprintf("10.200.0.%d", i))
				}
				s := written("one", "c", "b", 1, addresses...)
				k.Bare(s)
				return s
			}, come("one", "a"),
		}, "kek"},
		"Twice": {"A cache may bare a slice again that was emptied.", []func(*Kept) *discoveryv1.EndpointSlice{
			come("one", "a"), come("one", "b"), func(k *Kept) *discoveryv1.EndpointSlice {
				s := come("one", "c")(k)
				k.Bare(s)
				k.gone(bared("one", "a"))
				k.gone(bared("one", "b"))
				k.Bare(s)
				return s
			},
		}, "kke"},
	} {
		t.Run(name, func(t *testing.T) {
			k := keptWorld(t, 2)
			var got strings.Builder
			for _, do := range tc.do {
				s := do(k)
				switch {
				case s == nil:
				case isEmptied(s) && len(s.Endpoints)+len(s.Ports) == 0:
					got.WriteByte('e')
				case len(s.Endpoints) == 1 && len(s.Ports) == 1:
					got.WriteByte('k')
				default:
					got.WriteByte('?')
				}
			}
			if got.String() != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got.String(), tc.want)
			}
		})
	}
}

// TestWatch holds that what goes, or is replaced, leaves room.
func TestWatch(t *testing.T) {
	c := &informertest.FakeInformers{Scheme: transittest.New(t).Scheme()}
	k := NewKept(1 << 20)
	if err := k.Watch(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	informer, err := c.FakeInformerFor(t.Context(), &discoveryv1.EndpointSlice{})
	if err != nil {
		t.Fatal(err)
	}
	a, b, another := written("one", "c", "a", 1), written("one", "c", "b", 1), written("one", "c", "b", 1)
	another.UID = "another"
	for _, s := range []*discoveryv1.EndpointSlice{a, b, another} {
		k.Bare(s)
	}
	informer.Delete(a)
	informer.Update(b, another)
	if len(k.slices) != 1 || k.slices["another"].bytes == 0 {
		t.Errorf("what is gone is kept: %v", k.slices)
	}
}

// TestWhose holds that a slice counts for the consumer in whose namespace it is, whatever it says.
func TestWhose(t *testing.T) {
	k := keptWorld(t, 2)
	for _, name := range []string{"a", "b", "c"} {
		k.Bare(written("other", "c", name, 1, "10.66.0.1"))
	}
	if k.used["c"] != 0 || k.used["d"] == 0 {
		t.Errorf("another consumer uses what is kept of c: %v", k.used)
	}
}

// TestCompanionStays holds that nothing is taken out of what is kept beside slices.
func TestCompanionStays(t *testing.T) {
	k := NewKept(0)
	s := companion(written("one", "c", "a", 1), []discoveryv1.Endpoint{{Addresses: []string{"10.200.0.1"}}})
	want := s.DeepCopy()
	if k.Bare(s); cmp.Diff(want, s) != "" || len(k.slices) > 0 {
		t.Errorf("it is kept as %v", s)
	}
}

// reads has slices read live.
type reads struct {
	client.Reader

	s    *discoveryv1.EndpointSlice // Nil if it is gone.
	err  error
	made int
}

func (r *reads) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	r.made++
	into, is := o.(*discoveryv1.EndpointSlice)
	switch {
	case r.err != nil:
		return r.err
	case r.s == nil || !is:
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	r.s.DeepCopyInto(into)
	return nil
}

// TestWhole has what a slice says known again when there is room for it.
func TestWhole(t *testing.T) {
	full := func() *discoveryv1.EndpointSlice {
		s := written("one", "c", "z", 1, "10.200.0.9")
		s.ResourceVersion = "7"
		s.Labels["long"] = strings.Repeat("x", 1000)
		return s
	}
	newer := full()
	newer.ResourceVersion = "8"
	for name, tc := range map[string]struct {
		reason string
		gone   []string // Of a and b, which are kept.
		live   reads
		calls  int
		known  bool
		made   int
		left   int
		err    bool
	}{
		"Full": {reason: "Without room nobody is asked.", live: reads{s: full()}, calls: 9, left: 9},
		"Room": {
			reason: "With room it is read once.", gone: []string{"a", "b"}, live: reads{s: full()}, calls: 9, known: true, made: 1, left: 8,
		},
		"Little": {
			reason: "What is kept without what it says takes room as well.", gone: []string{"a"}, live: reads{s: full()}, calls: 9, left: 9,
		},
		"Calls": {reason: "Not all is read at once.", gone: []string{"a", "b"}, live: reads{s: full()}},
		"Gone":  {reason: "What is gone is no error.", gone: []string{"a", "b"}, calls: 9, made: 2, left: 7},
		"Changed": {
			reason: "What has changed since comes by the cache.", gone: []string{"a", "b"}, live: reads{s: newer}, calls: 9, made: 2, left: 7,
		},
		"Error": {
			reason: "What cannot be read is an error.", gone: []string{"a", "b"}, live: reads{err: errors.New("no")}, calls: 9, made: 2, left: 7,
			err: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := keptWorld(t, 3)
			for _, other := range []string{"a", "b"} {
				k.Bare(written("one", "c", other, 1, "10.200.0.1"))
			}
			cached := full()
			cached.Endpoints = append(cached.Endpoints, cached.Endpoints[0], cached.Endpoints[0])
			k.most -= bytesOfEndpoint
			if k.Bare(cached); !isEmptied(cached) {
				t.Fatalf("it is kept: %v", k.used)
			}
			k.Bare(cached) // A cache may do so again.
			for _, other := range tc.gone {
				k.gone(bared("one", other))
			}
			calls := tc.calls
			var err error
			var s *discoveryv1.EndpointSlice
			known := false
			for range 2 {
				s, known, err = k.Whole(t.Context(), &tc.live, "c", cached, &calls)
			}
			if (err != nil) != tc.err || known != tc.known || tc.live.made != tc.made || calls != tc.left {
				t.Errorf("%s: known %t, %d calls made, %d left, %v", tc.reason, known, tc.live.made, calls, err)
			}
			if known && (len(s.Endpoints) != 1 || s.Labels["long"] != "") || !known && !isEmptied(s) {
				t.Errorf("%s: it says %v", tc.reason, s)
			}
			if k.gone(cached); len(tc.gone) == 2 && len(k.used) > 0 {
				t.Errorf("%s: nothing is there, and it takes %v", tc.reason, k.used)
			}
		})
	}
}

// TestWhoseLater holds that a slice counts for its consumer once that is known.
func TestWhoseLater(t *testing.T) {
	k := keptWorld(t, 2)
	s := written("new", "c", "a", 1, "10.200.0.1")
	k.Bare(s)
	calls := 1
	_, known, err := k.Whole(t.Context(), &reads{}, "c", s, &calls)
	if err != nil || !known || len(k.used) != 1 || k.used["c"] != bytesOf(s) {
		t.Errorf("known %t, %v, used %v", known, err, k.used)
	}
}

// hostile returns a slice with as much as one may say.
func hostile(i, endpoints, ports int) *discoveryv1.EndpointSlice {
	long := func(n int, with string) string { return strings.Repeat(with, n/len(with)) + fmt.Sprint(i) }
	s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	s.Name, s.Namespace, s.UID, s.ResourceVersion = long(240, "n"), long(50, "s"), types.UID(long(30, "u")), fmt.Sprint(i)
	s.Labels = map[string]string{
		strings.Clone(liqo.LabelManagedBy):          strings.Clone(liqo.ManagedByShadowEndpointSlice),
		strings.Clone(api.LabelOriginCluster):       long(60, "c"),
		strings.Clone(discoveryv1.LabelServiceName): long(60, "w"), long(60, "l"): long(60, "l"),
	}
	s.Annotations = map[string]string{"a": long(10_000, "a")}
	for e := range endpoints {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.200.%d.%d", i%256, e%256), fmt.Sprintf("10.201.%d.%d", i%256, e%256)},
			Hostname:  new(long(60, "h")), Zone: new(long(60, "z")),
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
		})
	}
	for p := range ports {
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{
			Name: new(fmt.Sprintf("p%d", p)), Port: new(int32(p)), Protocol: new(corev1.ProtocolTCP), AppProtocol: new(long(60, "a")),
		})
	}
	return s
}

// TestBytes holds that what a cache keeps takes no more memory than it is said to, whatever slices are like.
func TestBytes(t *testing.T) {
	for name, tc := range map[string]struct {
		slices, endpoints, ports int
		most                     int64
	}{
		"Many":    {slices: 600, endpoints: 1, ports: 1, most: 1 << 30},
		"Large":   {slices: 50, endpoints: 200, ports: 2, most: 1 << 30},
		"Ports":   {slices: 50, endpoints: 1, ports: 300, most: 1 << 30},
		"Nothing": {slices: 300, endpoints: 30, ports: 30, most: 0},
		"Bounded": {slices: 300, endpoints: 30, ports: 30, most: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			k := NewKept(tc.most)
			w := transittest.New(t)
			k.namespaces = w
			store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{
				toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc,
			})
			before := heap()
			var said, stubs int64
			for i := range tc.slices {
				s := hostile(i, tc.endpoints, tc.ports)
				s.Namespace = transittest.Twin
				if k.Bare(s); isEmptied(s) {
					stubs += bytesOf(s)
				}
				said += bytesOf(s)
				if err := store.Add(s); err != nil {
					t.Fatal(err)
				}
			}
			is := heap() - before
			if is > said {
				t.Errorf("%d bytes are used, and %d are said to be", is, said)
			}
			if said-stubs > tc.most || k.used["c"] != said {
				t.Errorf("%d bytes are kept, besides %d: want at most %d", said-stubs, stubs, tc.most)
			}
			runtime.KeepAlive(store)
		})
	}
}

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestInformer has a real informer keep slices: what goes leaves room for what is written next.
func TestInformer(t *testing.T) {
	k := keptWorld(t, 2)
	cluster := fake.NewClientset()
	of := cluster.DiscoveryV1().EndpointSlices("one")
	informer := informers.NewSharedInformerFactory(cluster, 0).Discovery().V1().EndpointSlices().Informer()
	if err := informer.SetTransform(cached.Without(k.Bare)); err != nil {
		t.Fatal(err)
	}
	events := toolscache.ResourceEventHandlerFuncs{UpdateFunc: k.replaced, DeleteFunc: k.gone}
	if _, err := informer.AddEventHandler(events); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if _, err := of.Create(t.Context(), written("one", "c", name, 1, "10.200.0.1"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	go informer.RunWithContext(t.Context())
	toolscache.WaitForCacheSync(t.Context().Done(), informer.HasSynced)
	says := func(reason string, want ...string) {
		t.Helper()
		var got []string
		for range 500 {
			got = nil
			for _, o := range informer.GetStore().List() {
				if s, is := o.(*discoveryv1.EndpointSlice); is && !isEmptied(s) {
					got = append(got, s.Name)
				}
			}
			slices.Sort(got)
			k.mu.Lock()
			noted := len(k.slices)
			k.mu.Unlock()
			if slices.Equal(got, want) && noted == len(informer.GetStore().List()) {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("%s It keeps %v, want %v, and notes %v", reason, got, want, k.slices)
	}
	says("There is room for two.", "a", "b")
	third := written("one", "c", "c", 1, "10.200.0.1")
	if _, err := of.Create(t.Context(), third.DeepCopy(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	says("And not for three.", "a", "b")
	if err := of.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	says("What goes goes.", "b")
	if _, err := of.Update(t.Context(), third.DeepCopy(), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	says("And leaves room.", "b", "c")
}
