// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines/linestest"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/probe"
)

var (
	rome  = cluster.Identity{ID: "33333333-dddd", Name: "rome"}
	milan = cluster.Identity{ID: "11111111-aaaa", Name: "milan"}
)

// federation is what answers a trial: Liqo, the broker and its providers, and the network.
type federation struct {
	// of is the line of Liqo; nil is 0.9.
	of line.Line
	// unscheduled is how many pods no provider takes, and answer changes how a target answers.
	unscheduled int
	answer      func(*probe.Answer)
	// absent has the broker not take the namespace.
	absent bool
	// broken has the pod at home end without answers.
	broken    bool
	namespace *corev1.Namespace
	said      []string
	asked     []string
}

func (f *federation) config(t *testing.T, objects ...client.Object) *Config {
	t.Helper()
	node := liqotest.VirtualNode(milan, true)
	if f.of == nil {
		f.of = v09.Line{}
		node.Labels[liqo.LabelVirtualKubelet] = "v1"
	} else {
		objects = append(objects, seen1()...)
	}
	c := fake.NewClientBuilder().WithScheme(linestest.Scheme(t)).WithObjects(append(objects, node)...).
		WithInterceptorFuncs(interceptor.Funcs{Create: f.create}).Build()
	return &Config{
		Client: c, Liqo: f.of, Own: rome, Broker: milan, Namespace: "test", Image: "x/probe:v1", Pods: 3, Asks: 5, Timeout: 50 * time.Millisecond,
		Say: func(what string) { f.said = append(f.said, what) },
	}
}

// seen1 is what a consumer with Liqo 1.x has of its broker milan, which sees a provider under a prefix.
func seen1() []client.Object {
	id := string(milan.ID)
	record := &api.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: id}}
	record.Spec.ClusterID = id
	v1.SayBroker(record, true)
	tenant := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo-tenant-" + id, Labels: map[string]string{
		liqo.LabelTenantNamespace: "true", liqo.LabelRemoteClusterID: id,
	}}}
	list := &api.Configuration{ObjectMeta: metav1.ObjectMeta{
		Namespace: tenant.Name, Name: id, Labels: map[string]string{liqo.LabelRemoteClusterID: id},
		Annotations: map[string]string{"brokering.liqo.io/views": `{"views":["10.0.0.0/31"]}`},
	}}
	list.Spec.Remote.CIDR.Pod = []string{"10.201.0.0/16", "10.0.0.0/31"}
	list.Status.Remote = &list.Spec.Remote
	list.Status.Conditions = []metav1.Condition{{Type: api.NetworkCIDRsConfigured, Status: metav1.ConditionTrue}}
	return []client.Object{record, tenant, list}
}

// create does what the federation does with what a trial creates.
func (f *federation) create(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
	switch o := o.(type) {
	case *corev1.Namespace:
		f.namespace = o
	case *v09.NamespaceOffloading:
		if err := c.Get(ctx, client.ObjectKey{Name: o.Namespace}, f.namespace); err != nil {
			return err
		}
		if liqotest.PutInForce(f.namespace, o, milan); f.absent {
			liqotest.Refuse(o, milan, time.Time{})
		}
		if err := c.Update(ctx, f.namespace); err != nil {
			return err
		}
	case *api.NamespaceOffloading:
		f.namespace.Labels["liqo.io/scheduling-enabled"] = "true"
		o.Status.RemoteNamespacesConditions = map[string]api.RemoteNamespaceConditions{string(milan.ID): {
			{Type: api.OffloadingRequired, Status: corev1.ConditionTrue}, {Type: api.RemoteNamespaceReady, Status: corev1.ConditionTrue},
		}}
		if f.absent {
			o.Status.RemoteNamespacesConditions = nil
		}
		if err := c.Update(ctx, f.namespace); err != nil {
			return err
		}
	case *corev1.Pod:
		f.ask(o)
	case *appsv1.Deployment:
		for i := range *o.Spec.Replicas {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: o.Namespace, Name: fmt.Sprintf("server-%d", i), Labels: o.Spec.Template.Labels,
			}, Spec: *o.Spec.Template.Spec.DeepCopy()}
			if int(i) < f.unscheduled {
				pod.Status.Conditions = []corev1.PodCondition{{
					Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no provider has room",
				}}
			} else {
				pod.Spec.NodeName = liqotest.VirtualNode(milan, true).Name
				pod.Status.PodIP, pod.Status.Phase = fmt.Sprintf("10.0.0.%d", i), corev1.PodRunning
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			}
			if err := c.Create(ctx, pod, options...); err != nil {
				return err
			}
		}
	}
	return c.Create(ctx, o, options...)
}

// ask is what the pod at home does.
func (f *federation) ask(pod *corev1.Pod) {
	var answers []probe.Answer
	for _, arg := range pod.Spec.Containers[0].Args {
		target, err := probe.ParseTarget(arg)
		if err != nil || strings.HasPrefix(arg, "--") {
			continue
		}
		f.asked = append(f.asked, arg)
		a := probe.Answer{Pod: target.Pod, Address: target.Address, Asked: 5, Answered: 5, First: time.Second, Median: 1234 * time.Microsecond,
			Slowest: 20 * time.Millisecond, Hosts: 1}
		if target.Pod == "" {
			a.Hosts = 3
		}
		if f.answer != nil {
			f.answer(&a)
		}
		answers = append(answers, a)
	}
	message, err := json.Marshal(answers)
	if err != nil {
		panic(err)
	}
	ended := &corev1.ContainerStateTerminated{Message: string(message)}
	if f.broken {
		ended = &corev1.ContainerStateTerminated{ExitCode: 2, Message: "no such file"}
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: ended}}}
}

func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		of line.Line
		// paths are those of the three pods.
		paths [3]string
	}{"0.9": {nil, [3]string{"-", "-", "-"}}, "1.x": {v1.Line{}, [3]string{"relay", "relay", "-"}}} {
		t.Run(name, func(t *testing.T) { checkRun(t, &federation{of: tc.of}, tc.paths) })
	}
}

// checkRun runs a trial from its beginning to its end.
func checkRun(t *testing.T, f *federation, paths [3]string) {
	t.Helper()
	cfg := f.config(t)
	result, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Problems) > 0 || len(result.Pods) != 3 || result.Service == nil || result.Service.Hosts != 3 {
		t.Errorf("it ends with %+v", result)
	}
	want := []string{"server-0=10.0.0.0:8080", "server-1=10.0.0.1:8080", "server-2=10.0.0.2:8080", "=server.test.svc:8080"}
	if !slices.Equal(f.asked, want) {
		t.Errorf("it asks %v, want %v", f.asked, want)
	}
	table := result.Table()
	for i, path := range paths {
		want := fmt.Sprintf("[server-%[1]d - %[2]s Running 10.0.0.%[1]d 5 of 5 1s 1.23ms 20ms]", i, path)
		if len(table.Rows) != 3 || fmt.Sprint(table.Rows[i].Cells) != want {
			t.Errorf("the table is %v, want %s", table.Rows, want)
		}
	}
	if got := result.Summary(); got != "The Service answered 5 of 5 requests, from 3 of 3 pods." {
		t.Errorf("it says %q", got)
	}

	// Its pods go to the broker only, the one that asks stays at home, and none has a right that it does not need.
	var pods corev1.PodList
	if err := cfg.Client.List(t.Context(), &pods, client.InNamespace("test")); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		rule := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0]
		if pod.Name == askerName {
			if rule.Key != liqo.LabelNodeType || rule.Operator != corev1.NodeSelectorOpNotIn {
				t.Errorf("the pod that asks may be anywhere: %v", rule)
			}
		} else if rule.Key != liqo.LabelRemoteClusterID || !slices.Equal(rule.Values, []string{string(milan.ID)}) {
			t.Errorf("pod %s may be anywhere: %v", pod.Name, rule)
		}
		limits := pod.Spec.Containers[0].SecurityContext
		if *pod.Spec.AutomountServiceAccountToken || !*pod.Spec.SecurityContext.RunAsNonRoot ||
			*limits.AllowPrivilegeEscalation || !*limits.ReadOnlyRootFilesystem {
			t.Errorf("pod %s may do more than it needs: %+v", pod.Name, pod.Spec)
		}
	}

	// What it has made goes, and only that.
	if err := Clean(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Client.Get(t.Context(), client.ObjectKey{Name: "test"}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace is still there: %v", err)
	}
	if err := Clean(t.Context(), cfg); err != nil {
		t.Errorf("removed twice: %v", err)
	}
}

// TestAbsent has a broker that does not take the namespace: nothing runs.
func TestAbsent(t *testing.T) {
	for _, of := range []line.Line{nil, v1.Line{}} {
		f := &federation{of: of, absent: true}
		_, err := Run(t.Context(), f.config(t))
		if err == nil || !strings.Contains(err.Error(), "the namespace is not at milan") || len(f.asked) > 0 {
			t.Errorf("%v; asked are %q", err, f.asked)
		}
	}
}

// TestRunFinds has something be wrong: the result says what.
func TestRunFinds(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		f      federation
		pods   int
		want   []string
	}{
		"NoRoom": {
			"one pod finds no provider", federation{unscheduled: 1}, 2,
			[]string{"2 of 3 pods are ready: pod server-0 waits: no provider has room"},
		},
		"None": {"none does", federation{unscheduled: 3}, 0, []string{"0 of 3 pods are ready"}},
		"Silent": {"a pod never answers", federation{answer: func(a *probe.Answer) {
			if a.Pod == "server-1" {
				*a = probe.Answer{Pod: a.Pod, Address: a.Address, Asked: 1, Reason: "no answer within 2s"}
			}
		}}, 3, []string{"pod server-1 (10.0.0.1:8080) answered 0 of 1 requests: no answer within 2s"}},
		"Lost": {"the Service loses some", federation{answer: func(a *probe.Answer) {
			if a.Pod == "" {
				a.Answered, a.Reason = 3, "connection refused"
			}
		}}, 3, []string{"the Service (server.test.svc:8080) answered 3 of 5 requests: connection refused"}},
		"Broken": {"the pod at home does not run", federation{broken: true}, 3, []string{"nobody could ask from here", "no such file"}},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := Run(t.Context(), tc.f.config(t))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.want {
				if !strings.Contains(strings.Join(result.Problems, "\n"), want) || !strings.Contains(result.Summary(), want) {
					t.Errorf("%s: %q, want %q", tc.reason, result.Problems, want)
				}
			}
			if len(result.Pods) != tc.pods || len(result.Problems) != 1 {
				t.Errorf("%s: %+v", tc.reason, result)
			}
		})
	}
}

// TestLeftovers has a namespace be there already.
func TestLeftovers(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "test"}}
	f := &federation{}
	cfg := f.config(t, ns)
	if _, err := Run(t.Context(), cfg); !errors.Is(err, ErrTaken) {
		t.Errorf("somebody's namespace is taken: %v", err)
	}
	if err := cfg.Client.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil {
		t.Errorf("somebody's namespace is gone: %v", err)
	}
	ns = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "test", Labels: map[string]string{liqo.LabelTrial: "true"}}}
	cfg = f.config(t, ns)
	if _, err := Run(t.Context(), cfg); err != nil || !strings.Contains(strings.Join(f.said, "\n"), "an earlier test") {
		t.Errorf("an earlier test is in the way: %v, %q", err, f.said)
	}
}

func TestBadConfig(t *testing.T) {
	f := &federation{}
	for name, change := range map[string]func(*Config){
		"NoPods": func(c *Config) { c.Pods = 0 }, "TooMany": func(c *Config) { c.Pods = MaxPods + 1 }, "NoAsks": func(c *Config) { c.Asks = 0 },
		"NoImage": func(c *Config) { c.Image = "" }, "NoBroker": func(c *Config) { c.Broker = cluster.Identity{} },
		"NoTime": func(c *Config) { c.Timeout = 0 }, "NoLine": func(c *Config) { c.Liqo = nil },
	} {
		cfg := f.config(t)
		change(cfg)
		if _, err := Run(t.Context(), cfg); err == nil {
			t.Errorf("%s is no error", name)
		}
		if err := cfg.Client.Get(t.Context(), client.ObjectKey{Name: "test"}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s makes a namespace: %v", name, err)
		}
	}
}

// TestMessageFits has as many pods answer as a trial can have: Kubernetes keeps 4096 bytes of what a container writes at its end.
func TestMessageFits(t *testing.T) {
	var answers []probe.Answer
	for range MaxPods + 1 {
		answers = append(answers, probe.Answer{
			Pod: "server-5d4f8c7b9d-abcde", Address: "255.255.255.255:8080", Asked: 1000, Answered: 1000,
			First: 59123456789, Median: 1999123456, Slowest: 1999999999, Hosts: MaxPods,
		})
	}
	message, err := json.Marshal(answers)
	if err != nil || len(message) > 4096 {
		t.Errorf("the answers have %d bytes: %v", len(message), err)
	}
}
