// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"fmt"
	"maps"
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

// complete returns what the metric agent has told, which may be nothing, with what it has left out. It returns what was told if nothing
// was left out, or nobody knows more.
func (u *usage) complete(ctx context.Context, told []byte) ([]byte, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(told))
	if err != nil {
		return nil, fmt.Errorf("read the metrics of the foreign cluster: %w", err)
	}
	known := podsOf(families[cpuSeconds])
	pods, err := u.pods.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the pods of the virtual node: %w", err)
	}
	unknown := func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodRunning && !known[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]
	}
	if !slices.ContainsFunc(pods, unknown) {
		return told, nil
	}
	summary, err := u.pods.Stats(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the metrics API of the foreign cluster: %w", err)
	}
	summary.Pods = slices.DeleteFunc(summary.Pods, func(pod statsv1alpha1.PodStats) bool {
		return known[types.NamespacedName{Namespace: pod.PodRef.Namespace, Name: pod.PodRef.Name}]
	})
	if len(summary.Pods) == 0 {
		return told, nil
	}
	u.countPods(summary.Pods, families)
	return write(families)
}

// podsOf returns the pods of a family of metrics of containers.
func podsOf(family *dto.MetricFamily) map[types.NamespacedName]bool {
	pods := map[types.NamespacedName]bool{}
	for _, metric := range family.GetMetric() {
		var pod types.NamespacedName
		for _, label := range metric.GetLabel() {
			switch label.GetName() {
			case "namespace":
				pod.Namespace = label.GetValue()
			case "pod":
				pod.Name = label.GetValue()
			}
		}
		pods[pod] = true
	}
	return pods
}

// countPods counts what containers of pods use, extends families by it, and forgets the other pods.
func (u *usage) countPods(pods []statsv1alpha1.PodStats, families map[string]*dto.MetricFamily) {
	u.mu.Lock()
	defer u.mu.Unlock()
	counted := map[container]counter{}
	for i := range pods {
		of := &pods[i].PodRef
		for j := range pods[i].Containers {
			c := &pods[i].Containers[j]
			if c.CPU == nil || c.CPU.UsageNanoCores == nil || c.Memory == nil || c.Memory.WorkingSetBytes == nil {
				continue
			}
			key, at := container{types.UID(of.UID), c.Name}, c.CPU.Time.Time
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
