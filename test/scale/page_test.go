// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/test/apiserver"
	"github.com/capacitorset/liqo-broker/test/webpage"
)

// The goals of the page's server with many pods: the most memory in MiB, and how long it takes from its start until a browser has been told
// all, and from a change until the browser has been told that.
const (
	goalPage              = 600
	goalTold, goalChanged = 15 * time.Second, 10 * time.Second
)

// The pods of a cluster of many: so many in each of so many namespaces.
const manyNamespaces, podsEach = 1000, 30

// TestPage measures what serves the web page, the plugin on a person's machine, of a broker and of a consumer with 30,000 pods, on a real
// API server. All pods of the broker are those of its consumers, and one in ten of the consumer's own is at a broker.
func TestPage(t *testing.T) {
	program(t, "kubectl-liqo_broker")
	for _, c := range []struct {
		name   string
		has    apiserver.Options
		kinds  string
		told   int // How many workloads the page is told of.
		create func(m *many)
	}{
		{
			"broker", apiserver.Options{}, "providers,consumers,workloads,links,flows,status", manyNamespaces * podsEach,
			func(m *many) { m.t.Helper(); m.beBroker() },
		},
		{
			"consumer", apiserver.Options{NoBroker: true}, "workloads,flows,status", manyNamespaces * podsEach / 10,
			func(m *many) { m.t.Helper(); m.beConsumer() },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMany(t, c.has)
			began := time.Now()
			c.create(m)
			t.Logf("all pods are there after %.0f s", time.Since(began).Seconds())
			n := &measurement{t: t}
			n.table.value("processors of the machine, and those that others use before this begins", fmt.Sprintf("%.1f", others(t)))
			n.page(m, c.kinds, c.told)
			t.Logf("the page of a %s with %d pods:\n%s", c.name, manyNamespaces*podsEach, &n.table)
		})
	}
}

// page serves the page of a cluster, opens it, and changes a pod.
func (n *measurement) page(m *many, kinds string, want int) {
	n.t.Helper()
	began := time.Now()
	link, pid := webpage.ServeProcess(n.t, m.kubeconfig)
	p := watchProcess(n.t, "the page's server", pid)
	page := webpage.Open(n.t, link)
	stream := page.Stream(kinds)

	// All is told.
	var workloads, bytes int
	type event struct {
		Kind, Key string
		Workload  json.RawMessage
	}
	webpage.Until(stream, func(name string, e event) bool {
		bytes += len(e.Workload)
		if name == "set" && e.Kind == "workloads" {
			workloads++
		}
		return name == "synced"
	})
	told := time.Since(began)
	if workloads != want {
		n.t.Errorf("the page is told of %d workloads, want %d", workloads, want)
	}
	n.table.value("from its start until a browser has been told all", fmt.Sprintf("%.1f s", told.Seconds()))
	n.atMost("a browser has been told all", told, goalTold)
	n.table.value("... its processor", fmt.Sprintf("%.1f s", p.processor().Seconds()))
	n.table.value("... bytes of workloads", mebibytes(float64(bytes)/(1<<20)))
	n.resident("memory at most", p, goalPage)

	// One pod changes, again and again.
	var took took
	before := p.processor()
	for i := range changes {
		pod := m.change(i)
		began := time.Now()
		if err := m.Status().Update(n.t.Context(), pod); err != nil {
			n.t.Fatal(err)
		}
		key := pod.Namespace + "/" + pod.Name // Of a broker after the consumer.
		webpage.Until(stream, func(name string, e event) bool {
			return name == "set" && e.Kind == "workloads" && strings.HasSuffix("/"+e.Key, "/"+key)
		})
		took = append(took, time.Since(began))
	}
	n.table.times("a pod changes, until a browser has been told", took, p.processor()-before)
	n.atMost("a change, 99 of 100", took.percentile(99), goalChanged)
	n.resident("memory at most, after changes", p, goalPage)
	page.Text(http.MethodGet, "/api/v1/me", nil) // It still answers.
}

// changes is how often a pod changes.
const changes = 20

// many is a cluster with many pods.
type many struct {
	client.Client

	t          *testing.T
	kubeconfig string
}

// newMany starts an API server.
func newMany(t *testing.T, has apiserver.Options) *many {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	environment := apiserver.Start(t, has)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, v09.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	m := &many{t: t, kubeconfig: filepath.Join(t.TempDir(), "config")}
	if err := os.WriteFile(m.kubeconfig, environment.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(environment.Config)
	config.QPS = -1
	var err error
	if m.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	m.create(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: liqo.DefaultNamespace}},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: liqo.IdentityName, Namespace: liqo.DefaultNamespace},
			Data:       map[string]string{"CLUSTER_ID": ownID, "CLUSTER_NAME": "own"},
		},
	)
	return m
}

// create makes objects, one after the other, with the status that they have.
func (m *many) create(objects ...client.Object) {
	m.t.Helper()
	for _, o := range objects {
		if err := m.make(m.t.Context(), o); err != nil {
			m.t.Fatal(err)
		}
	}
}

func (m *many) make(ctx context.Context, o client.Object) error {
	switch o.(type) {
	case *corev1.Namespace, *corev1.ConfigMap: // They have none.
		return m.Create(ctx, o)
	}
	return apiserver.Create(ctx, m, o)
}

// each makes all pods, some at once.
func (m *many) each(namespace func(n int) *corev1.Namespace, pod func(n, k int) *corev1.Pod) {
	m.t.Helper()
	group, ctx := errgroup.WithContext(m.t.Context())
	group.SetLimit(32)
	for n := range manyNamespaces {
		group.Go(func() error {
			if err := m.make(ctx, namespace(n)); err != nil {
				return err
			}
			for k := range podsEach {
				if err := m.make(ctx, pod(n, k)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		m.t.Fatal(err)
	}
}

// How many clusters there are.
const manyProviders, manyConsumers = 100, 20

func peer(kind string, n int) cluster.Identity {
	return cluster.Identity{ID: cluster.ID(fmt.Sprintf("%08x-1f2e-4d3c-8b5a-%012x", kind[0], n)), Name: fmt.Sprintf("%s-%04d", kind, n)}
}

// beBroker makes providers, consumers, and pods of these on the nodes of those.
func (m *many) beBroker() {
	m.t.Helper()
	for n := range manyProviders {
		id := peer("provider", n)
		fc, provider := liqotest.Discovered(id, true), &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: string(id.ID)}}
		provider.Status.ClusterName = id.Name
		m.create(fc, liqotest.VirtualNode(id, true), provider)
	}
	for n := range manyConsumers {
		id := peer("consumer", n)
		consumer := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(id.ID)}}
		consumer.Status.ClusterName = id.Name
		m.create(liqotest.Discovered(id, false), consumer)
	}
	name := func(n int) string {
		return fmt.Sprintf("shop-%04d-%s-c0ffee", n, peer("consumer", n%manyConsumers).Name)
	}
	m.each(func(n int) *corev1.Namespace {
		return liqotest.TwinNamespace(name(n), peer("consumer", n%manyConsumers))
	}, func(n, k int) *corev1.Pod {
		on := peer("provider", (n*podsEach+k)%manyProviders)
		pod := liqotest.Pod(liqotest.ShadowPod(name(n), podName(k), nil), "liqo-"+on.Name, on.ID)
		return filled(pod, n, k)
	})
}

// beConsumer makes a broker's node, and pods of which one in ten is on it.
func (m *many) beConsumer() {
	m.t.Helper()
	broker := peer("broker", 1)
	node := liqotest.VirtualNode(broker, true)
	node.Labels[liqo.LabelVirtualKubelet] = "v0.1.0"
	m.create(liqotest.Discovered(broker, true), node)
	name := func(n int) string { return fmt.Sprintf("shop-%04d", n) }
	m.each(func(n int) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name(n)}}
	}, func(n, k int) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name(n), Name: podName(k)}}
		pod.Spec.NodeName = fmt.Sprintf("worker-%03d", (n*podsEach+k)%300)
		if k%10 == 0 {
			on := peer("provider", (n*podsEach+k)%manyProviders)
			pod.Spec.NodeName = node.Name
			pod.Spec.Tolerations = []corev1.Toleration{{Key: node.Spec.Taints[0].Key, Operator: corev1.TolerationOpExists}}
			pod.Annotations = map[string]string{
				liqo.AnnotationPath: "direct", liqo.AnnotationProvider: string(on.ID), liqo.AnnotationProviderName: on.Name,
			}
		}
		return filled(pod, n, k)
	})
}

func podName(k int) string { return fmt.Sprintf("web-5d4f8c7b9-%05d", k) }

// filled gives a pod what real ones have besides: labels, two containers with variables, probes and volumes, and a status of each.
func filled(pod *corev1.Pod, n, k int) *corev1.Pod {
	pod.UID = ""
	labels := map[string]string{"app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "shop", "pod-template-hash": "5d4f8c7b9"}
	for name, value := range labels {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, name, value)
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.%d.%d.%d", 64+k, n/256, n%256)}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions,
			corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	}
	for _, name := range []string{"web", "log"} {
		image := "reader.example.org/shop/" + name + ":v1.2.3"
		c := corev1.Container{Name: name, Image: image, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
		}}}
		for i := range 10 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", i), Value: "the value of a variable, at some length"})
		}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/var/lib/" + name}}
		c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"is-ready", name}}}}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, Ready: true, Image: image, ImageID: image + "@sha256:" + strings.Repeat("c0ffee00", 8),
			ContainerID: "containerd://" + strings.Repeat("0badcafe", 8), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	return pod
}

// change returns one of the first pods as it is otherwise than before.
func (m *many) change(i int) *corev1.Pod {
	m.t.Helper()
	var all corev1.PodList
	if err := m.List(m.t.Context(), &all, client.Limit(1), client.MatchingFields{"metadata.name": podName(0)}); err != nil {
		m.t.Fatal(err)
	}
	pod := &all.Items[0]
	for c := range pod.Status.Conditions {
		if one := &pod.Status.Conditions[c]; one.Type == corev1.PodReady {
			one.Status = corev1.ConditionTrue
			if i%2 == 0 {
				one.Status = corev1.ConditionFalse
			}
		}
	}
	return pod
}
