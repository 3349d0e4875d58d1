// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/workload"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	corev1listers "k8s.io/client-go/listers/core/v1"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	metricsv1beta1 "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/address"
	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/reflectiontest"
	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
)

// someWays are known by the address that is shown. The foreign cluster reports each pod at 10.90.0.7.
type someWays struct{ sync.Map }

func (w *someWays) WayTo(shown, reported string) (address.Way, bool) {
	way, ok := w.Load(shown)
	if !ok || reported != "10.90.0.7" {
		return address.Way{}, false
	}
	return way.(address.Way), true
}

// pathsTest is a virtual kubelet for one pod.
type pathsTest struct {
	*reflectiontest.Clusters
	ways  someWays
	clock *clocktesting.FakePassiveClock
	count *prometheus.GaugeVec
	paths *Paths

	mu     sync.Mutex
	events []string
}

var (
	directToA = address.Way{Path: addressing.PathDirect, Provider: "a"}
	relayToA  = address.Way{Path: addressing.PathRelay, Provider: "a"}
	relayToB  = address.Way{Path: addressing.PathRelay, Provider: "b", Name: "turin"}
	relayed   = address.Way{Path: addressing.PathRelay}
)

// startPaths starts it with Liqo's reflector.
func startPaths(t *testing.T, pod *corev1.Pod) *pathsTest {
	t.Helper()
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	reflectiontest.BeBroker()
	pods := workload.NewPodReflector(nil, func(string) metricsv1beta1.PodMetricsInterface { return nil }, endpointIPAM{},
		&workload.PodReflectorConfig{APIServerSupport: forge.APIServerSupportDisabled}, &generic.ReflectorConfig{Type: consts.CustomLiqo})
	p := &pathsTest{
		clock: clocktesting.NewFakePassiveClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)),
		count: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "pods"}, []string{"path"}),
	}
	for shown, way := range map[string]address.Way{
		"10.84.0.7": directToA, "10.202.0.1": relayToA, "10.202.0.2": relayToB, "10.202.0.3": relayed, "10.83.0.7": {},
	} {
		p.ways.Store(shown, way)
	}
	p.paths = NewPaths(NewPods(reflectiontest.Unstarted(pods), nil), &p.ways, p.count, testr.New(t))
	p.paths.clock = p.clock
	p.Clusters = reflectiontest.Start(t, p.paths, pods.NewNamespaced, pod)
	p.Events.StartEventWatcher(func(event *corev1.Event) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if event.Reason == "PathChanged" {
			p.events = append(p.events, event.Message)
		}
	})
	return p
}

// report has the foreign cluster report the pod.
func (p *pathsTest) report(t *testing.T) {
	t.Helper()
	remote := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "twin-broker", Name: "web"}, Status: corev1.PodStatus{PodIP: "10.90.0.7"}}
	if _, err := p.Remote.CoreV1().Pods("twin-broker").Create(t.Context(), remote, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (p *pathsTest) pod(t *testing.T) *corev1.Pod {
	t.Helper()
	pod, err := p.Local.CoreV1().Pods("twin").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// show has this cluster show the pod at an address.
func (p *pathsTest) show(t *testing.T, shown string) {
	t.Helper()
	pod := p.pod(t)
	pod.Status.PodIP = shown
	if _, err := p.Local.CoreV1().Pods("twin").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// told waits until the pod is told a path, a provider and since when. What the provider calls itself may follow its ID.
func (p *pathsTest) told(t *testing.T, path, provider, since string) {
	t.Helper()
	provider, called, _ := strings.Cut(provider, " ")
	want := map[string]string{"path": path, "provider": provider, "provider-name": called, "path-since": since}
	maps.DeleteFunc(want, func(_, value string) bool { return value == "" })
	var got map[string]string
	defer func() {
		if t.Failed() {
			t.Logf("it is told %v, want %v", got, want)
		}
	}()
	reflectiontest.Eventually(t, func() bool {
		got = map[string]string{}
		for key, value := range p.pod(t).Annotations {
			if name, ours := strings.CutPrefix(key, "brokering.liqo.io/"); ours {
				got[name] = value
			}
		}
		return maps.Equal(got, want) && p.counted(path)
	})
}

// changes returns what the events say of changes so far.
func (p *pathsTest) changes(t *testing.T) (told []string) {
	t.Helper()
	p.Events.NewRecorder(scheme.Scheme, corev1.EventSource{}).Event(p.pod(t), corev1.EventTypeNormal, "PathChanged", "last")
	reflectiontest.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		told = slices.Clone(p.events)
		return slices.Contains(told, "last")
	})
	return slices.DeleteFunc(told, func(message string) bool { return message == "last" })
}

// counted reports whether the pod counts for a path, and for no other.
func (p *pathsTest) counted(path string) bool {
	for _, each := range []string{"direct", "relay"} {
		want := 0.0
		if path == each {
			want = 1
		}
		if testutil.ToFloat64(p.count.WithLabelValues(each)) != want {
			return false
		}
	}
	return true
}

// patches returns what was written into the annotations of the pod.
func (p *pathsTest) patches() (patches []string) {
	for _, action := range p.Local.Actions() {
		if patch, ok := action.(k8stesting.PatchAction); ok && action.GetResource().Resource == "pods" && patch.GetName() == "web" {
			patches = append(patches, string(patch.GetPatch()))
		}
	}
	return patches
}

// TestPathsAreTold follows a pod that changes its path and its provider.
func TestPathsAreTold(t *testing.T) {
	p := startPaths(t, reflectiontest.PodOf("", func(pod *corev1.Pod) { pod.Annotations = map[string]string{"color": "red"} }))
	var refused atomic.Bool
	p.Local.PrependReactor("patch", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
		return refused.CompareAndSwap(false, true), nil, errors.New("try again")
	})
	p.report(t)
	p.show(t, "10.202.0.1")
	p.told(t, "relay", "a", "2030-01-02T03:04:05Z")
	if !refused.Load() {
		t.Error("no call was refused")
	}

	// A peering comes.
	p.clock.SetTime(p.clock.Now().Add(time.Hour))
	p.show(t, "10.84.0.7")
	p.told(t, "direct", "a", "2030-01-02T04:04:05Z")
	if pod := p.pod(t); pod.Annotations["color"] != "red" {
		t.Errorf("another annotation is gone: %v", pod.Annotations)
	}

	// It is moved: for a moment it has no address.
	p.clock.SetTime(p.clock.Now().Add(time.Hour))
	p.show(t, "")
	p.told(t, "", "", "")
	p.show(t, "10.202.0.2")
	p.told(t, "relay", "b turin", "2030-01-02T05:04:05Z")

	// The broker hides its providers from now on, and tells of them again. No address changes.
	p.clock.SetTime(p.clock.Now().Add(time.Hour))
	p.ways.Store("10.202.0.2", relayed)
	if err := p.paths.Resync(); err != nil {
		t.Fatal(err)
	}
	p.told(t, "relay", "", "2030-01-02T06:04:05Z")
	p.ways.Store("10.202.0.2", relayToB)
	if err := p.paths.Resync(); err != nil {
		t.Fatal(err)
	}
	p.told(t, "relay", "b turin", "2030-01-02T06:04:05Z")

	// The provider calls itself otherwise: that changes no path.
	p.clock.SetTime(p.clock.Now().Add(time.Hour))
	renamed := relayToB
	renamed.Name = "torino"
	p.ways.Store("10.202.0.2", renamed)
	if err := p.paths.Resync(); err != nil {
		t.Fatal(err)
	}
	p.told(t, "relay", "b torino", "2030-01-02T06:04:05Z")

	if diff := cmp.Diff([]string{
		"The path of the pod changed from relay (provider a) to direct (provider a)",
		"The path of the pod changed from direct (provider a) to relay (provider b)",
	}, p.changes(t)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}

	// Nothing was written twice, but what was refused.
	if n := len(p.patches()); n != 8 {
		t.Errorf("the pod was written %d times", n)
	}

	// It goes.
	if err := p.Local.CoreV1().Pods("twin").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	reflectiontest.Eventually(t, func() bool { return p.counted("") })
}

// TestPathsStayHere reflects a pod that is told its path: the foreign cluster is not.
func TestPathsStayHere(t *testing.T) {
	p := startPaths(t, reflectiontest.PodOf("", func(pod *corev1.Pod) {
		pod.Labels[consts.LocalPodLabelKey] = consts.LocalPodLabelValue // Liqo applies it, which the fake cannot.
		pod.Annotations = map[string]string{"color": "red"}
	}))
	p.report(t)
	p.show(t, "10.84.0.7")
	p.told(t, "direct", "a", "2030-01-02T03:04:05Z")
	reflectiontest.Eventually(t, func() bool {
		seen, err := p.paths.pods.Pods("twin").Get("web")
		return err == nil && len(seen.Annotations) == 4
	})
	if err := p.Remote.CoreV1().Pods("twin-broker").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	reflectiontest.Eventually(t, func() bool {
		if err := p.Handle(t.Context()); err != nil {
			t.Fatal(err)
		}
		shadow, err := p.RemoteLiqo.VirtualkubeletV1alpha1().ShadowPods("twin-broker").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return false
		}
		if diff := cmp.Diff(map[string]string{"color": "red"}, shadow.Annotations); diff != "" {
			t.Fatalf("the foreign cluster is told (-want +got):\n%s", diff)
		}
		return true
	})
}

// TestPathsAfterRestart starts where another virtual kubelet has told a pod its path, which is another one now.
func TestPathsAfterRestart(t *testing.T) {
	pod := reflectiontest.PodOf("", func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{
			"brokering.liqo.io/path": "direct", "brokering.liqo.io/provider": "a", "brokering.liqo.io/provider-name": "milan",
			"brokering.liqo.io/path-since": "2029-01-02T03:04:05Z",
		}
		pod.Status.PodIP = "10.202.0.1"
	})
	p := startPaths(t, pod)
	p.told(t, "direct", "a milan", "2029-01-02T03:04:05Z")
	p.report(t)
	p.told(t, "relay", "a", "2030-01-02T03:04:05Z")
	if diff := cmp.Diff([]string{"The path of the pod changed from direct (provider a) to relay (provider a)"}, p.changes(t)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestPathsOfSuccessor replaces a pod by another one of the name, while nobody watches: that is no change of its path.
func TestPathsOfSuccessor(t *testing.T) {
	p := startPaths(t, reflectiontest.PodOf("", func(pod *corev1.Pod) { pod.Status.PodIP = "10.84.0.7" }))
	p.report(t)
	p.told(t, "direct", "a", "2030-01-02T03:04:05Z")
	p.clock.SetTime(p.clock.Now().Add(time.Hour))
	successor := reflectiontest.PodOf("", func(pod *corev1.Pod) { pod.UID, pod.Status.PodIP = "2", "10.202.0.1" })
	if _, err := p.Local.CoreV1().Pods("twin").Update(t.Context(), successor, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.told(t, "relay", "a", "2030-01-02T04:04:05Z")
	if changes := p.changes(t); len(changes) > 0 {
		t.Errorf("events: %q", changes)
	}
	if last := p.patches()[1]; !strings.Contains(last, `"uid":"2"`) {
		t.Errorf("the patch may change another pod: %s", last)
	}
}

// TestPathsAreWrittenOnce looks at a pod again before this cluster has told of what was written on it.
func TestPathsAreWrittenOnce(t *testing.T) {
	indexer := func(pod *corev1.Pod) cache.Indexer {
		known := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		if err := known.Add(pod); err != nil {
			t.Fatal(err)
		}
		return known
	}
	pod := reflectiontest.PodOf("", func(pod *corev1.Pod) { pod.Status.PodIP = "10.84.0.7" })
	client := fake.NewSimpleClientset(pod.DeepCopy())
	var ways someWays
	ways.Store("10.84.0.7", directToA)
	paths := NewPaths(nil, &ways, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "pods"}, []string{"path"}), testr.New(t))
	paths.pods, paths.client = corev1listers.NewPodLister(indexer(pod)), client
	remote := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "twin-broker", Name: "web"}, Status: corev1.PodStatus{PodIP: "10.90.0.7"}}
	paths.remote["twin"] = corev1listers.NewPodLister(indexer(remote)).Pods("twin-broker")
	for range 2 {
		if err := paths.tellPath(t.Context(), cache.MetaObjectToName(pod)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(client.Actions()); n != 1 {
		t.Errorf("it was written %d times", n)
	}
}

// TestPathsOfOthers has pods that are told nothing, and whose annotations are nobody's to change but those of this cluster's own.
func TestPathsOfOthers(t *testing.T) {
	before := map[string]string{
		"brokering.liqo.io/path": "direct", "brokering.liqo.io/provider": "a", "brokering.liqo.io/path-since": "2029-01-02T03:04:05Z",
	}
	has := func(edit func(*corev1.Pod)) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Annotations = maps.Clone(before)
			edit(pod)
		}
	}
	nothing := func(*corev1.Pod) {}
	cases := map[string]struct {
		reason, origin, shown string
		edit                  func(*corev1.Pod)
		want                  map[string]string
	}{
		"InTransit":  {"the consumer may read the pod, and must not learn there who the providers are", "consumer", "10.84.0.7", nothing, nil},
		"NoProvider": {"the foreign cluster runs it itself", "", "10.83.0.7", nothing, nil},
		"NotKnown":   {"nobody can tell", "", "10.99.0.7", nothing, nil},
		"Before":     {"what was known before a restart stays while nobody can tell", "", "10.99.0.7", has(nothing), before},
		"Same":       {"and when it is known again", "", "10.84.0.7", has(nothing), before},
		"Left":       {"it came to the foreign cluster itself", "", "10.83.0.7", has(nothing), nil},
		"Ended": {
			"a pod that has ended has no address, although " +
				"Kubernetes shows one", "", "10.84.0.7", has(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }), nil,
		},
		"Deleted": {
			"a pod that ends is left alone", "", "10.83.0.7", has(func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.Now()) }), before,
		},
		"Forged": {
			"it is told no path that there is not", "", "10.99.0.7", func(pod *corev1.Pod) {
				pod.Annotations = map[string]string{"brokering.liqo.io/path": "scenic"}
			}, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := reflectiontest.PodOf(tc.origin, tc.edit)
			pod.Status.PodIP = tc.shown
			p := startPaths(t, pod)
			p.report(t)
			reflectiontest.Eventually(t, func() bool { return p.sees(t) })
			// Another pod is looked at after it.
			p.next(t)
			got := p.pod(t).Annotations
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: (-want +got):\n%s", tc.reason, diff)
			}
			writes := 1
			if maps.Equal(tc.want, pod.Annotations) {
				writes = 0
			}
			if n := len(p.patches()); n != writes {
				t.Errorf("%s: it was written %d times, want %d", tc.reason, n, writes)
			}
		})
	}
}

// sees reports whether this cluster has seen what the foreign one reports.
func (p *pathsTest) sees(t *testing.T) bool {
	t.Helper()
	pod, err := p.Seen.Core().V1().Pods().Lister().Pods("twin-broker").Get("web")
	return err == nil && pod.Status.PodIP != ""
}

// next waits until all that is to be told so far has been: by a pod that is told a path after it.
func (p *pathsTest) next(t *testing.T) {
	t.Helper()
	other := reflectiontest.PodOf("", func(pod *corev1.Pod) {
		pod.Name, pod.UID = "next", types.UID("2")
		pod.Status.PodIP = "10.202.0.1"
	})
	remote := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "twin-broker", Name: "next"}, Status: corev1.PodStatus{PodIP: "10.90.0.7"}}
	if _, err := p.Remote.CoreV1().Pods("twin-broker").Create(t.Context(), remote, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Local.CoreV1().Pods("twin").Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	reflectiontest.Eventually(t, func() bool {
		pod, err := p.Local.CoreV1().Pods("twin").Get(t.Context(), "next", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return pod.Annotations["brokering.liqo.io/path"] == "relay"
	})
}
