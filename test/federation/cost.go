// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/test/lab"
)

// Cost is what the programs of a federation have used since they began. Programs are named "cluster: program".
type Cost struct {
	CPU map[string]time.Duration
	// Requests are those that the API server of each cluster has answered, but for watches, by cluster, verb and resource.
	Requests map[string]float64
}

// Less returns what was used from an earlier time on.
func (c Cost) Less(before Cost) Cost {
	less := Cost{CPU: map[string]time.Duration{}, Requests: map[string]float64{}}
	for name, used := range c.CPU {
		less.CPU[name] = used - before.CPU[name]
	}
	for name, count := range c.Requests {
		less.Requests[name] = count - before.Requests[name]
	}
	return less
}

// Net returns what was used in a time without what is used anyway: idle was used in idleFor, while nothing was done.
func (c Cost) Net(took time.Duration, idle Cost, idleFor time.Duration) Cost {
	part := took.Seconds() / idleFor.Seconds()
	net := Cost{CPU: map[string]time.Duration{}, Requests: map[string]float64{}}
	for name, used := range c.CPU {
		net.CPU[name] = used - time.Duration(float64(idle.CPU[name])*part)
	}
	for name, count := range c.Requests {
		net.Requests[name] = count - idle.Requests[name]*part
	}
	return net
}

// Sum returns what all programs have used of a processor, and how many requests all API servers have answered.
func (c Cost) Sum() (cpu time.Duration, requests float64) {
	for _, used := range c.CPU {
		cpu += used
	}
	for _, count := range c.Requests {
		requests += count
	}
	return cpu, requests
}

// Cost returns what the programs of the federation have used: those of Kubernetes, of Liqo and of the project.
func (f *Federation) Cost(ctx context.Context) (Cost, error) {
	cost := Cost{CPU: map[string]time.Duration{}, Requests: map[string]float64{}}
	for _, c := range f.Clusters() {
		for _, component := range lab.Components() {
			used, err := c.Lab.CPU(component)
			if err != nil {
				return Cost{}, err
			}
			cost.CPU[c.Name+": "+component] = used
		}
		if err := c.addPods(ctx, &cost); err != nil {
			return Cost{}, err
		}
		if err := c.addRequests(ctx, &cost); err != nil {
			return Cost{}, err
		}
	}
	return cost, nil
}

// addPods adds what the pods of Liqo and of the project have used.
func (c *Cluster) addPods(ctx context.Context, cost *Cost) error {
	var pods corev1.PodList
	if err := c.List(ctx, &pods); err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !strings.HasPrefix(pod.Namespace, liqoNamespace) && !strings.HasPrefix(pod.Name, "coredns") {
			continue
		}
		for _, status := range pod.Status.ContainerStatuses {
			container, err := c.Lab.Container(pod, status.Name)
			if err != nil {
				continue // It has ended, or is about to start again.
			}
			used, err := container.CPU()
			if err != nil {
				return err
			}
			name := status.Name
			if name == "virtual-kubelet" {
				name += " for " + shownBy(pod.Spec.Containers[0].Args)
			}
			cost.CPU[c.Name+": "+name] += used
		}
	}
	return nil
}

// shownBy returns which cluster a virtual kubelet with a command line shows, by its name, or by its ID in a line of Liqo where that is the
// name.
func shownBy(args []string) string {
	for _, flag := range []string{"--foreign-cluster-name=", "--foreign-cluster-id="} {
		for _, arg := range args {
			if name, found := strings.CutPrefix(arg, flag); found {
				return name
			}
		}
	}
	return "nobody"
}

// addRequests adds what the API server has answered.
func (c *Cluster) addRequests(ctx context.Context, cost *Cost) error {
	metrics, err := c.Kubectl(ctx, "get", "--raw=/metrics")
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(strings.NewReader(metrics))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		labels, found := strings.CutPrefix(lines.Text(), "apiserver_request_total{")
		if !found {
			continue
		}
		labels, value, found := strings.Cut(labels, "} ")
		if !found {
			return fmt.Errorf("unexpected metric %q", lines.Text())
		}
		count, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return fmt.Errorf("unexpected metric %q: %w", lines.Text(), err)
		}
		if verb := label(labels, "verb"); verb != "WATCH" {
			resource := label(labels, "resource")
			if sub := label(labels, "subresource"); sub != "" {
				resource += "/" + sub
			}
			cost.Requests[fmt.Sprintf("%s: %s %s", c.Name, verb, resource)] += count
		}
	}
	return lines.Err()
}

// label returns the value of a label of a metric.
func label(labels, name string) string {
	for pair := range strings.SplitSeq(labels, ",") {
		if value, found := strings.CutPrefix(pair, name+`="`); found {
			return strings.TrimSuffix(value, `"`)
		}
	}
	return ""
}
