// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/virtual-kubelet/virtual-kubelet/node/api/statsv1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// usagePath is where a metrics-server asks a kubelet what containers use.
const usagePath = "/metrics/resource"

// What a kubelet serves there and a metrics-server reads (k8s.io/kubernetes/pkg/kubelet/metrics/collectors/resource_metrics.go@v1.34).
const (
	cpuSeconds   = "container_cpu_usage_seconds_total"
	memoryBytes  = "container_memory_working_set_bytes"
	startSeconds = "container_start_time_seconds"
)

// unused is with how many seconds of a processor a container begins: of one that has used nothing a metrics-server tells nothing.
const unused = 1e-6

// moment is for how long a container is said to have run when it is seen first: of two points, a metrics-server wants the first one to be
// later than the start.
const moment = time.Second

// Bounds of what the foreign cluster tells of what containers use, which is parsed as a whole: in bytes and in lines, of which a container
// has three. With them the pods of a hundred nodes are told of.
const (
	maxTold  = 16 << 20
	maxLines = 100_000
)

// usedPods are the pods of the virtual node, and what the metrics API of the foreign cluster tells of them.
type usedPods interface {
	List(ctx context.Context) ([]*corev1.Pod, error)
	Stats(ctx context.Context) (*statsv1alpha1.Summary, error)
}

// usage tells what containers use whose pods Liqo's metric agent at the foreign cluster leaves out. With Liqo v0.9.4 those are all: it
// reads from a cache that nobody starts (liqo/cmd/metric-agent/main.go, and GetCachedClientWithConfig). One that works looks at the
// cluster's own nodes alone (liqo/pkg/remotemetrics/resources.go), and those of a broker run none of the pods that it passes on. The
// metrics API of that cluster tells of them what its metrics-server was told by its kubelets, or by a virtual kubelet such as this.
//
// That API has rates, and a kubelet counts: seconds of a processor begin when a container is seen first, and it is said to have started a
// moment before. So whoever scrapes sees that another virtual kubelet begins to count. It may be used concurrently.
type usage struct {
	pods usedPods

	mu      sync.Mutex
	counted map[container]counter
}

// container names one of a pod of this cluster.
type container struct {
	pod  types.UID
	name string
}

// counter is what a container has used since it was seen first, until it was seen last.
type counter struct {
	first, last time.Time
	seconds     float64
}

// count returns what is counted at a time, from when on the rate is in cores.
func (c counter) count(at time.Time, cores float64) counter {
	if c.first.IsZero() {
		return counter{first: at, last: at, seconds: unused}
	}
	if at.After(c.last) {
		c.seconds += cores * at.Sub(c.last).Seconds()
		c.last = at
	}
	return c
}

func newUsage(pods usedPods) *usage { return &usage{pods: pods} }

// own returns what the metric agent has told of pods of the virtual node, which may be nothing. What it tells of others is not for it to
// say: whoever scrapes would take it for what a pod on another node does.
func (u *usage) own(ctx context.Context, told []byte) ([]byte, error) {
	of, err := u.read(ctx, told)
	if err != nil || !of.changed {
		return told, err
	}
	return write(of.families)
}

// ofNode is what the metric agent tells of pods of the virtual node.
type ofNode struct {
	list     []*corev1.Pod
	pods     map[types.NamespacedName]*corev1.Pod
	families map[string]*dto.MetricFamily
	// changed tells that the agent has told of others besides.
	changed bool
}

func (u *usage) read(ctx context.Context, told []byte) (ofNode, error) {
	families, err := parse(told)
	if err != nil {
		return ofNode{}, err
	}
	list, err := u.pods.List(ctx)
	if err != nil {
		return ofNode{}, fmt.Errorf("list the pods of the virtual node: %w", err)
	}
	pods := make(map[types.NamespacedName]*corev1.Pod, len(list))
	for _, pod := range list {
		pods[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = pod
	}
	return ofNode{list: list, pods: pods, families: families, changed: dropOthers(families, pods)}, nil
}

// complete returns what own does, with what the metric agent has left out. Missing is why nobody knows more.
func (u *usage) complete(ctx context.Context, told []byte) (whole []byte, missing, err error) {
	of, err := u.read(ctx, told)
	if err != nil {
		return nil, nil, err
	}
	known := map[types.NamespacedName]bool{}
	for _, metric := range of.families[cpuSeconds].GetMetric() {
		pod, _ := podOf(metric)
		known[pod] = true
	}
	unknown := func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodRunning && !known[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]
	}
	if slices.ContainsFunc(of.list, unknown) {
		if summary, err := u.pods.Stats(ctx); err != nil {
			missing = fmt.Errorf("ask the metrics API of the foreign cluster: %w", err)
		} else if u.countPods(summary.Pods, of.pods, known, of.families) {
			of.changed = true
		}
	}
	if !of.changed {
		return told, missing, nil
	}
	whole, err = write(of.families)
	return whole, missing, err
}

// parse reads what the foreign cluster tells.
func parse(told []byte) (map[string]*dto.MetricFamily, error) {
	if lines := bytes.Count(told, []byte{'\n'}); len(told) > maxTold || lines > maxLines {
		return nil, fmt.Errorf("the metrics of the foreign cluster have %d bytes in %d lines, and may have %d in %d",
			len(told), lines, maxTold, maxLines)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(told))
	if err != nil {
		return nil, fmt.Errorf("read the metrics of the foreign cluster: %w", err)
	}
	return families, nil
}

// dropOthers drops what families say of pods that are not among some, and reports whether there was any.
func dropOthers(families map[string]*dto.MetricFamily, pods map[types.NamespacedName]*corev1.Pod) (dropped bool) {
	maps.DeleteFunc(families, func(_ string, family *dto.MetricFamily) bool {
		family.Metric = slices.DeleteFunc(family.GetMetric(), func(metric *dto.Metric) bool {
			pod, of := podOf(metric)
			other := of && pods[pod] == nil
			dropped = dropped || other
			return other
		})
		return len(family.GetMetric()) == 0
	})
	return dropped
}

// podOf returns of which pod a metric is, if it is of one.
func podOf(metric *dto.Metric) (pod types.NamespacedName, of bool) {
	for _, label := range metric.GetLabel() {
		switch label.GetName() {
		case "namespace":
			pod.Namespace, of = label.GetValue(), true
		case "pod":
			pod.Name, of = label.GetValue(), true
		}
	}
	return pod, of
}

// countPods counts what containers use of those pods that are there and not known, extends families by it, and forgets all others. It
// reports whether there are any. A number that has no sense, and a container that its pod does not have or that was told of already, is
// passed over.
func (u *usage) countPods(
	told []statsv1alpha1.PodStats, pods map[types.NamespacedName]*corev1.Pod, known map[types.NamespacedName]bool,
	families map[string]*dto.MetricFamily,
) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	counted := map[container]counter{}
	for i := range told {
		of := &told[i].PodRef
		name := types.NamespacedName{Namespace: of.Namespace, Name: of.Name}
		pod := pods[name]
		if pod == nil || known[name] {
			continue
		}
		for j := range told[i].Containers {
			c := &told[i].Containers[j]
			if c.CPU == nil || c.Memory == nil || !isAmount(c.CPU.UsageNanoCores) || !isAmount(c.Memory.WorkingSetBytes) {
				continue
			}
			key, at := container{types.UID(of.UID), c.Name}, c.CPU.Time.Time
			if _, twice := counted[key]; twice || !hasContainer(pod, c.Name) {
				continue
			}
			// What it has used by now, in the words of a kubelet.
			now := u.counted[key].count(at, float64(*c.CPU.UsageNanoCores)/1e9)
			counted[key] = now
			metric := func() *dto.Metric {
				return &dto.Metric{TimestampMs: new(at.UnixMilli()), Label: []*dto.LabelPair{
					{Name: new("container"), Value: new(c.Name)}, {Name: new("namespace"), Value: new(of.Namespace)},
					{Name: new("pod"), Value: new(of.Name)},
				}}
			}
			used, memory, start := metric(), metric(), metric()
			used.Counter = &dto.Counter{Value: new(now.seconds)}
			memory.Gauge = &dto.Gauge{Value: new(float64(*c.Memory.WorkingSetBytes))}
			start.Gauge = &dto.Gauge{Value: new(float64(now.first.Add(-moment).UnixMilli()) / 1e3)}
			extend(families, cpuSeconds, "Cumulative cpu time consumed by the container in core-seconds", dto.MetricType_COUNTER, used)
			extend(families, memoryBytes, "Current working set of the container in bytes", dto.MetricType_GAUGE, memory)
			extend(families, startSeconds, "Start time of the container since unix epoch in seconds", dto.MetricType_GAUGE, start)
		}
	}
	u.counted = counted
	return len(counted) > 0
}

// isAmount reports whether there is a number, which was not negative before it was made one without a sign.
func isAmount(number *uint64) bool { return number != nil && *number <= math.MaxInt64 }

// hasContainer reports whether a pod has a container of a name.
func hasContainer(pod *corev1.Pod, name string) bool {
	is := func(c corev1.Container) bool { return c.Name == name }
	return slices.ContainsFunc(pod.Spec.Containers, is) || slices.ContainsFunc(pod.Spec.InitContainers, is)
}

// extend adds a metric to the family of a name.
func extend(families map[string]*dto.MetricFamily, name, help string, kind dto.MetricType, metric *dto.Metric) {
	family := families[name]
	if family == nil {
		family = &dto.MetricFamily{Name: new(name), Help: new(help), Type: new(kind)}
		families[name] = family
	}
	family.Metric = append(family.Metric, metric)
}

// write returns families as text, in order.
func write(families map[string]*dto.MetricFamily) ([]byte, error) {
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if _, err := expfmt.MetricFamilyToText(&text, families[name]); err != nil {
			return nil, fmt.Errorf("write metric %s: %w", name, err)
		}
	}
	return text.Bytes(), nil
}
