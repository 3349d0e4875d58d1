// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package together

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"

	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/test/worlds/apiserver"
)

const (
	policyName = "policy"
	zone       = "zone"
	// large is a provider that has room for everything.
	large = "64"
)

var broker = cluster.Identity{ID: "id-broker", Name: "broker"}

// world is a broker's cluster, and what everybody does there.
type world struct {
	t      *testing.T
	r      *rand.Rand
	began  time.Time
	server *apiserver.Server
	scheme *runtime.Scheme
	live   *apiserver.Cache
	// webhook is the cache of the webhook that steers pods.
	webhook *apiserver.Cache

	leader, standby *process
	processes       int
	// late is how late caches are in this world.
	late int
	// habits are what happens in this world.
	habits []event
	// depth is how many reconciles are going on, one within the other.
	depth int
	// mended is whether the world leaves the broker alone.
	mended bool

	providers, consumers []cluster.Identity
	namespaces           []string
	serial               int

	judge
	log []string
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		t: t, r: rand.New(rand.NewPCG(seed, 11)), began: time.Now(), server: apiserver.New(time.Now), scheme: liqotest.Scheme(t),
		judge: newJudge(),
	}
	w.late, w.habits = 1+w.r.IntN(9), w.events()
	for i := range 2 + w.r.IntN(3) {
		p := cluster.Identity{ID: cluster.ID(fmt.Sprint("id-p", i)), Name: fmt.Sprint("p", i)}
		w.providers = append(w.providers, p)
		w.create(liqotest.TenantNamespace(p))
		w.create(liqotest.ForeignCluster(p, true, false))
		w.create(liqotest.Offer(p, amount(large)))
		node := liqotest.VirtualNode(p, true)
		node.Status.Allocatable = amount(large)
		w.create(node)
		if i == 0 || w.r.IntN(2) == 0 { // People may say where a provider is before the broker knows it.
			w.create(&v1alpha1.Provider{
				ObjectMeta: metav1.ObjectMeta{Name: string(p.ID), Labels: map[string]string{zone: "a"}},
				Spec:       v1alpha1.ProviderSpec{Scheduling: v1alpha1.SchedulingActive},
			})
		}
	}
	for i := range 1 + w.r.IntN(2) {
		c := cluster.Identity{ID: cluster.ID(fmt.Sprint("id-c", i)), Name: fmt.Sprint("c", i)}
		w.consumers = append(w.consumers, c)
		w.create(liqotest.TenantNamespace(c))
		w.create(liqotest.ForeignCluster(c, false, true))
		for j := range 1 + w.r.IntN(5)/4 {
			name := fmt.Sprintf("twin%d%d", i, j)
			w.namespaces = append(w.namespaces, name)
			w.create(liqotest.TwinNamespace(name, c))
			for k := range 1 + w.r.IntN(2) {
				for range 1 + w.r.IntN(4) {
					w.ask(name, fmt.Sprint("w", k))
				}
			}
		}
	}
	if w.r.IntN(3) > 0 {
		w.decree()
	}
	w.live, w.webhook = apiserver.NewCache(w.server, true), apiserver.NewCache(w.server, false)
	w.leader, w.standby = w.newProcess(), w.newProcess()
	return w
}

func amount(cpu string) corev1.ResourceList {
	memory := "64Gi"
	if cpu == "0" {
		memory = "0"
	}
	return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory), "pods": resource.MustParse("110")}
}

// waiting returns a pod of a workload that Liqo has made.
func waiting(namespace, workload string, serial int, selected ...cluster.ID) *corev1.Pod {
	pod := liqotest.Pod(shadow(namespace, workload, serial), "", selected...)
	pod.UID = ""
	pod.Spec.Containers = []corev1.Container{
		{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}},
	}
	return pod
}

// shadow returns the wish for a pod. Some workloads are Deployments, whose pods are given back.
func shadow(namespace, workload string, serial int) *v09.ShadowPod {
	labels := map[string]string{"app": workload}
	if workload != "w0" {
		labels["pod-template-hash"] = workload
	}
	return liqotest.ShadowPod(namespace, fmt.Sprintf("%s-%d", workload, serial), labels)
}

func workloadOf(pod *corev1.Pod) string {
	name, _, _ := strings.Cut(pod.Name, "-")
	return pod.Namespace + "/" + name
}

func (w *world) notef(format string, args ...any) {
	w.log = append(w.log, time.Since(w.began).Truncate(time.Millisecond).String()+" "+fmt.Sprintf(format, args...))
}

func (w *world) failf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(w.log[max(0, len(w.log)-60):], "\n"))
}

// must fails if a write of the world does, unless somebody else came first.
func (w *world) must(err error) {
	w.t.Helper()
	if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
		w.failf("%v", err)
	}
}

// create creates an object with its status.
func (w *world) create(o client.Object) {
	w.t.Helper()
	w.must(w.server.Create(o))
}

func (w *world) update(o client.Object) {
	w.t.Helper()
	w.must(w.server.Update(o, false))
}

func (w *world) updateStatus(o client.Object) {
	w.t.Helper()
	w.must(w.server.Update(o, true))
}

// get reads an object, and reports whether it is there.
func (w *world) get(namespace, name string, o client.Object) bool {
	w.t.Helper()
	err := w.live.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o)
	w.must(err)
	return err == nil
}

// pods returns the pods of a namespace, or all.
func (w *world) pods(namespace string) []corev1.Pod {
	w.t.Helper()
	var list corev1.PodList
	w.must(w.live.List(w.t.Context(), &list, client.InNamespace(namespace)))
	return list.Items
}

func (w *world) node(p cluster.Identity) *corev1.Node {
	w.t.Helper()
	node := &corev1.Node{}
	w.get("", nodeOf(p), node)
	return node
}

func nodeOf(p cluster.Identity) string { return "liqo-" + p.Name }

// at returns the provider that a pod is bound to.
func (w *world) at(pod *corev1.Pod) (cluster.Identity, bool) {
	i := slices.IndexFunc(w.providers, func(p cluster.Identity) bool { return nodeOf(p) == pod.Spec.NodeName })
	if i < 0 {
		return cluster.Identity{}, false
	}
	return w.providers[i], true
}

// offloading returns the offloading of a namespace, and what it selects; nil if there is none.
func (w *world) offloading(namespace string) (*v09.NamespaceOffloading, []cluster.ID) {
	w.t.Helper()
	o := &v09.NamespaceOffloading{}
	if !w.get(namespace, liqo.OffloadingName, o) {
		return nil, nil
	}
	return o, v09.OffloadingOf(o).Selected
}

// ask makes a consumer ask for a pod of a workload.
func (w *world) ask(namespace, workload string) {
	w.serial++
	w.create(shadow(namespace, workload, w.serial))
}

func (w *world) shadows(namespace string) []metav1.PartialObjectMetadata {
	w.t.Helper()
	kinds := v09.Line{}.Kinds()
	list := kinds.Shadows()
	w.must(w.live.List(w.t.Context(), list, client.InNamespace(namespace)))
	return list.Items
}

// decree makes a policy, or writes another one.
func (w *world) decree() {
	p := &v1alpha1.PlacementPolicy{}
	known := w.live != nil && w.get("", policyName, p)
	p.Name = policyName
	p.Spec = v1alpha1.PlacementPolicySpec{AppliesTo: v1alpha1.AppliesTo{Scope: v1alpha1.ScopeDefault}, MaxMovesPerMinute: 6000}
	if w.r.IntN(2) == 0 {
		p.Spec.Filters = []v1alpha1.Filter{v1alpha1.Filter(fmt.Sprintf("labels[%q] == %q", zone, "a"))}
	}
	if w.r.IntN(2) == 0 {
		p.Spec.MaxProviders = new(int32(1 + w.r.IntN(2)))
	}
	p.Spec.Failover.Mode = []v1alpha1.FailoverMode{v1alpha1.FailoverAfterGrace, v1alpha1.FailoverImmediate,
		v1alpha1.FailoverNever}[w.r.IntN(3)]
	p.Spec.Steady.Duration = &metav1.Duration{Duration: time.Duration(w.r.IntN(2)) * 10 * time.Second}
	w.notef("policy: filters %v, at most %v, failover %s", p.Spec.Filters, p.Spec.MaxProviders, p.Spec.Failover.Mode)
	if known {
		w.update(p)
	} else {
		w.create(p)
	}
}
