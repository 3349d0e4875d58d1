// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package stock

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/report"
	"github.com/capacitorset/liqo-broker/test/lab"
)

// A program runs in pods of a cluster that have a label.
type program struct {
	on               *lab.Cluster
	namespace, label string
}

// kubelet is the label of Liqo's virtual kubelets.
const kubelet = "offloading.liqo.io/component=virtual-kubelet"

// programs are those that serve the pods of the consumer.
func programs() map[string]program {
	const name = "app.kubernetes.io/name="
	return map[string]program{
		"Daemon":                   {broker, "liqo-broker", name + "liqo-broker"},
		"Agent":                    {consumer, "liqo-broker-agent", name + "liqo-broker-agent"},
		"Transit":                  {broker, "liqo-broker-transit", name + "liqo-broker-transit"},
		"GatewayOfBroker":          {broker, "liqo-tenant-" + consumer.Name, "networking.liqo.io/component=gateway"},
		"VirtualKubeletOfBroker":   {broker, "liqo-tenant-" + provider.Name, kubelet},
		"VirtualKubeletOfConsumer": {consumer, "liqo-tenant-" + broker.Name, kubelet},
	}
}

// patience is how long pods may take to come that were made while the program was killed. If it is the consumer's virtual kubelet, and its
// request was cut off, Liqo's webhook at the broker takes the pod for one that runs, and refuses it, until it looks again, every 5 minutes;
// the virtual kubelet waits for as long again at most.
func (p program) patience() time.Duration {
	if p.on == consumer && p.label == kubelet {
		return 10 * time.Minute
	}
	return patience
}

// pods returns the pods of a program.
func (p program) pods(ctx context.Context) ([]corev1.Pod, error) {
	out, err := p.on.Kubectl(ctx, "get", "pods", "-n", p.namespace, "-l", p.label, "-o", "json")
	if err != nil {
		return nil, err
	}
	var list corev1.PodList
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("read pods of %s: %w", p.on.Name, err)
	}
	return list.Items, nil
}

// kill kills all processes of the program where they run, and returns how often each container had been started again before. The kubelet
// starts them again, in the same pods.
func (p program) kill(t *testing.T) (before map[string]int32) {
	t.Helper()
	pods, err := p.pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before = map[string]int32{}
	for i := range pods {
		for _, status := range pods[i].Status.ContainerStatuses {
			container, err := p.on.Container(&pods[i], status.Name)
			if err != nil {
				t.Fatal(err)
			}
			processes, err := container.Processes()
			if err != nil {
				t.Fatal(err)
			}
			before[pods[i].Name+"/"+status.Name] = status.RestartCount
			for _, each := range processes {
				if err := each.Kill(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if len(before) == 0 {
		t.Fatalf("%s has no pods with label %s in namespace %s", p.on.Name, p.label, p.namespace)
	}
	return before
}

// restarted fails until all containers of the program run that had been killed, or others in place of them.
func (p program) restarted(ctx context.Context, before map[string]int32) error {
	pods, err := p.pods(ctx)
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		return fmt.Errorf("%s has no pods with label %s in namespace %s", p.on.Name, p.label, p.namespace)
	}
	for i := range pods {
		for _, status := range pods[i].Status.ContainerStatuses {
			was, killed := before[pods[i].Name+"/"+status.Name]
			if !status.Ready || killed && status.RestartCount <= was {
				return fmt.Errorf("container %s of pod %s of %s is not ready again", status.Name, pods[i].Name, p.on.Name)
			}
		}
	}
	return nil
}

// scale says how many pods the Deployment of the consumer has.
func scale(t *testing.T, namespace string, replicas int) {
	t.Helper()
	kubectl(t, consumer, "scale", "deployment", "-n", namespace, "pair", "--replicas="+strconv.Itoa(replicas))
}

// checkFaults kills one program after the other while two pods of the consumer run and two more are to come. Whatever the consumer shows at
// any moment leads to the pod that it shows, or nowhere; what runs goes on as the same pods, and the others come.
func checkFaults(t *testing.T, namespace string) {
	t.Helper()
	for name, killed := range programs() {
		t.Run(name, func(t *testing.T) {
			before, err := pair(t.Context(), consumer, namespace)
			if err != nil {
				t.Fatal(err)
			}
			scale(t, namespace, 4)
			restarts := killed.kill(t)
			checkReachedWithin(t, killed.patience(), namespace, 4)
			eventually(t, func(ctx context.Context) error { return killed.restarted(ctx, restarts) })
			checkSame(t, namespace, before)
			scale(t, namespace, 2)
			checkReached(t, namespace, 2)
		})
	}
	t.Run("SilentAgent", func(t *testing.T) { checkSilentAgent(t, namespace) })
}

// checkSame looks that the consumer's pods are there that were.
func checkSame(t *testing.T, namespace string, before map[string]pod) {
	t.Helper()
	after, err := pair(t.Context(), consumer, namespace)
	if err != nil {
		t.Fatal(err)
	}
	for name, was := range before {
		if is := after[name]; is.uid != was.uid || is.phase != "Running" {
			t.Errorf("the consumer has %s as %+v, was %+v", name, is, was)
		}
	}
}

// Which of the ResourceSlices in the tenant namespace of a peer is meant: that of the peer, or that of the cluster itself.
const ofPeer, itsOwn = "liqo.io/replicated=true", "liqo.io/replication=true"

// sliceOf returns what the consumer asks of the broker, as a cluster has it in the tenant namespace of the other one.
func sliceOf(ctx context.Context, c, other *lab.Cluster, which string) (*api.ResourceSlice, error) {
	out, err := c.Kubectl(ctx, "get", slices1, "-n", "liqo-tenant-"+other.Name, "-l", which, "-o", "json")
	if err != nil {
		return nil, err
	}
	var list api.ResourceSliceList
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("read what %s has: %w", c.Name, err)
	}
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("%s has %d ResourceSlices with label %s, want one", c.Name, len(list.Items), which)
	}
	return &list.Items[0], nil
}

// told returns what the agent has told the broker last.
func told(ctx context.Context) (report.Report, error) {
	text, err := broker.Kubectl(ctx, "get", "configmap", "-n", "liqo-tenant-"+consumer.Name, report.Name, "-o",
		"jsonpath={.data."+report.Key+"}")
	if err != nil {
		return report.Report{}, err
	}
	return report.Parse(text)
}

// unacknowledged says what the consumer is granted for no view of a provider that it has acknowledged; empty if all is well.
func unacknowledged(ctx context.Context) (string, error) {
	slice, err := sliceOf(ctx, broker, consumer, ofPeer)
	if err != nil {
		return "", err
	}
	is, err := told(ctx)
	if err != nil {
		return "", err
	}
	if cpu := slice.Status.Resources[corev1.ResourceCPU]; cpu.Cmp(resource.Quantity{}) <= 0 {
		return "", nil
	}
	views, _ := liqo.ViewsOf(slice.Status.NodeLabels)
	for key, prefix := range views {
		if is.Views[key] == prefix {
			return "", nil
		}
	}
	return fmt.Sprintf("granted is %v for views %v, and acknowledged are %v", slice.Status.Resources, views, is.Views), nil
}

// checkSilentAgent ends the agent for longer than the broker believes what it has told. New pods go nowhere, the consumer is told what is
// missing, and those that run go on.
func checkSilentAgent(t *testing.T, namespace string) {
	t.Helper()
	before, err := pair(t.Context(), consumer, namespace)
	if err != nil {
		t.Fatal(err)
	}
	restart := stop(t, consumer, "liqo-broker-agent", "liqo-broker-agent")
	defer restart()

	// Nobody waits for that long: how old a report is, the broker knows by what it says itself.
	is, err := told(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	is.At = time.Now().Add(-grant.MaxSilence - time.Minute)
	text, err := is.Format()
	if err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]string{report.Key: text}})
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, broker, "patch", "configmap", "-n", "liqo-tenant-"+consumer.Name, report.Name, "--type=merge", "-p", string(patch))
	for _, of := range []struct {
		at, other *lab.Cluster
		which     string
	}{{broker, consumer, ofPeer}, {consumer, broker, itsOwn}} {
		eventually(t, func(ctx context.Context) error {
			slice, err := sliceOf(ctx, of.at, of.other, of.which)
			if err != nil {
				return err
			}
			for _, c := range slice.Status.Conditions {
				if c.Type == api.SliceResources && c.Reason == string(grant.AgentMissing) && strings.Contains(c.Message, "agent") {
					return nil
				}
			}
			return fmt.Errorf("%s has not that the agent is missing, but %+v", of.at.Name, slice.Status.Conditions)
		})
	}
	reporting := func(status metav1.ConditionStatus, reason string) {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			is, err := broker.Kubectl(ctx, "get", "consumers.brokering.liqo.io", consumer.Name, "-o", `jsonpath={.status.conditions[?(@.type=="`+
				v1alpha1.ConditionAgentReporting+`")]['status', 'reason']}`)
			if err != nil {
				return err
			}
			if want := string(status) + " " + reason; strings.TrimSpace(is) != want {
				return fmt.Errorf("the Consumer says of its agent %q, want %q", is, want)
			}
			return nil
		})
	}
	reporting(metav1.ConditionFalse, v1alpha1.ReasonSilent)
	scale(t, namespace, 3)
	stays(t, func(ctx context.Context) error {
		pods, err := pair(ctx, provider, namespace+"-"+consumer.Name+"-"+broker.Name)
		if err == nil && len(pods) != 2 {
			err = fmt.Errorf("the provider runs %v, want the two pods of before", pods)
		}
		return err
	})
	checkSame(t, namespace, before)
	checkAnswers(t, namespace, 2)

	restart()
	checkReached(t, namespace, 3)
	reporting(metav1.ConditionTrue, v1alpha1.ReasonReporting)
	scale(t, namespace, 2)
	checkReached(t, namespace, 2)
}
