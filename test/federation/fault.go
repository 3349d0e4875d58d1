// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/report"
	"github.com/capacitorset/liqo-broker/test/lab"
)

// A Process is one of a federation's programs: a container of each pod of a Deployment, or of a pod.
type Process struct {
	on *Cluster
	// pod is the name of the Deployment, or of the pod.
	namespace, pod, container string
}

// Daemon is the broker daemon.
func (f *Federation) Daemon() Process {
	return Process{f.Broker, brokerNamespace, broker, "broker"}
}

// RemoteIPAM is the sidecar that consumers ask for addresses.
func (f *Federation) RemoteIPAM() Process {
	return Process{f.Broker, liqoNamespace, networkManager, "remote-ipam"}
}

// NetworkManager is Liqo's network manager on the broker.
func (f *Federation) NetworkManager() Process {
	return Process{f.Broker, liqoNamespace, networkManager, "network-manager"}
}

// Transit is what keeps peers of the broker apart, with Liqo 1.x, and Agent what lists at the consumer what it reaches through the broker.
func (f *Federation) Transit() Process {
	return Process{f.Broker, transit, transit, "transit"}
}

// Agent says what Transit does.
func (f *Federation) Agent() Process {
	return Process{f.Consumer, agent, agent, "agent"}
}

// AgentHeard returns when the broker has heard from the consumer's agent last, by the consumer's clock.
func (f *Federation) AgentHeard(ctx context.Context) (time.Time, error) {
	told, err := f.agentTold(ctx)
	return told.At, err
}

// agentTold returns what the consumer's agent has told the broker last.
func (f *Federation) agentTold(ctx context.Context) (report.Report, error) {
	var told corev1.ConfigMap
	if err := f.Broker.Get(ctx, client.ObjectKey{Namespace: tenantOf(f.Consumer), Name: report.Name}, &told); err != nil {
		return report.Report{}, err
	}
	return report.Parse(told.Data[report.Key])
}

// Gateway is the program on a cluster that holds its tunnel to another one. With Liqo 0.9 it holds all of them.
func (f *Federation) Gateway(c, other *Cluster) Process { return c.line().gateway(c, other) }

// GatewayChecks is the program on a cluster with Liqo 1.x that writes the routes and the rules of its tunnel to another one, and answers
// there when it is asked whether the tunnel is up.
func (f *Federation) GatewayChecks(c, other *Cluster) Process {
	return Process{c, tenantOf(other), gatewayOf(other), "gateway"}
}

// VirtualKubelet is the program on a cluster that stands for another one.
func (f *Federation) VirtualKubelet(c, other *Cluster) Process {
	return Process{c, "", "vk-" + other.NodeName(), "virtual-kubelet"}
}

// Kill kills the process in all of its pods, so that no replica takes over, and keeps its successors from running until the returned
// function is called.
func (p Process) Kill(ctx context.Context) (end func() error, err error) {
	pods, err := p.Pods(ctx)
	if err != nil {
		return nil, err
	}
	var outages []*lab.Outage
	end = func() error {
		var errs []error
		for _, each := range outages {
			errs = append(errs, each.End())
		}
		return errors.Join(errs...)
	}
	for _, pod := range pods {
		container, err := p.on.Lab.Container(pod, p.container)
		if err != nil {
			return nil, errors.Join(err, end())
		}
		outage, err := container.Kill(ctx)
		if err != nil {
			return nil, errors.Join(err, end())
		}
		outages = append(outages, outage)
	}
	return end, nil
}

// Evict ends the pods of the process, and leaves those that come in place of them without a node, until the returned function is called:
// other than where it is killed, its Deployment says that it is not there. To scale a Deployment is not enough with Liqo 1.x, which sets
// those of gateways back at once if it looks at them before their pods have gone.
func (p Process) Evict(ctx context.Context) (end func() error, err error) {
	const nodes = "--selector=lab/real=true" // Virtual ones stay as they are.
	end = func() error {
		ctx := context.WithoutCancel(ctx)
		if _, err := p.on.Kubectl(ctx, "uncordon", nodes); err != nil {
			return err
		}
		return p.on.rollout(ctx, p.namespace, p.pod)
	}
	pods, err := p.Pods(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := p.on.Kubectl(ctx, "cordon", nodes); err != nil {
		return nil, errors.Join(err, end())
	}
	// kubectl waits until they are gone.
	args := []string{"delete", "pods", "--namespace=" + p.namespace}
	for _, pod := range pods {
		args = append(args, pod.Name)
	}
	if _, err := p.on.Kubectl(ctx, args...); err != nil {
		return nil, errors.Join(err, end())
	}
	return end, nil
}

// Describe says where the process is: container, pods, and how often it was started again in each.
func (p Process) Describe(ctx context.Context) (string, error) {
	pods, err := p.Pods(ctx)
	if err != nil {
		return "", err
	}
	var shown []string
	for _, pod := range pods {
		restarts := int32(0)
		for i := range pod.Status.ContainerStatuses {
			if status := &pod.Status.ContainerStatuses[i]; status.Name == p.container {
				restarts = status.RestartCount
			}
		}
		shown = append(shown, fmt.Sprintf("%s/%s (started again %d times)", pod.Namespace, pod.Name, restarts))
	}
	return fmt.Sprintf("container %s on cluster %s in %s", p.container, p.on.Name, strings.Join(shown, ", ")), nil
}

// A Victim is a process with its pod, looked up beforehand, so that it can be killed at once.
type Victim struct {
	of        Process
	pod       *corev1.Pod
	container lab.Container
}

// Victim looks the process up.
func (p Process) Victim(ctx context.Context) (*Victim, error) {
	pod, err := p.Pod(ctx)
	if err != nil {
		return nil, err
	}
	container, err := p.on.Lab.Container(pod, p.container)
	if err != nil {
		return nil, err
	}
	return &Victim{of: p, pod: pod, container: container}, nil
}

// Kill kills the process with SIGKILL, and removes its pod, so that another one comes at once: the kubelet would wait longer each time
// before it starts a container again.
func (v *Victim) Kill(ctx context.Context) error {
	if err := killIn(ctx, v.container); err != nil {
		return err
	}
	return client.IgnoreNotFound(v.of.on.Delete(ctx, v.pod, client.GracePeriodSeconds(0)))
}

// killIn kills all processes of a container.
func killIn(ctx context.Context, container lab.Container) error {
	processes, err := container.Processes()
	if err != nil {
		return err
	}
	for _, each := range processes {
		if err := each.Kill(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Replaced waits until another pod works. The dead one's lease, if there is one of the Deployment's name, is not waited for.
func (v *Victim) Replaced(ctx context.Context) error {
	if err := v.of.on.rollout(ctx, v.of.namespace, v.of.pod); err != nil {
		return err
	}
	return Until(ctx, patience, func(ctx context.Context) error {
		var lease coordinationv1.Lease
		err := v.of.on.Get(ctx, client.ObjectKey{Namespace: v.of.namespace, Name: v.of.pod}, &lease)
		switch {
		case err != nil:
			return err
		case lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != v.pod.Name:
			return nil
		}
		return errors.Join(v.of.on.Delete(ctx, &lease), errors.New("the lease is the dead one's"))
	})
}

// Pod returns the only pod in which the process is.
func (p Process) Pod(ctx context.Context) (*corev1.Pod, error) {
	found, err := p.Pods(ctx)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%s of cluster %s has %d pods, want 1", p.pod, p.on.Name, len(found))
	}
	return found[0], nil
}

// Pods returns the pods in which the process is, of which there is one at least.
func (p Process) Pods(ctx context.Context) ([]*corev1.Pod, error) {
	var pods corev1.PodList
	if err := p.on.List(ctx, &pods, client.InNamespace(p.namespace)); err != nil {
		return nil, err
	}
	var found []*corev1.Pod
	for i := range pods.Items {
		if strings.HasPrefix(pods.Items[i].Name+"-", p.pod+"-") && pods.Items[i].DeletionTimestamp.IsZero() {
			found = append(found, &pods.Items[i])
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s of cluster %s has no pods", p.pod, p.on.Name)
	}
	return found, nil
}

// Cut cuts the link between two clusters until the returned function is called.
func (f *Federation) Cut(ctx context.Context, a, b *Cluster) (end func() error, err error) {
	mend := func() error { return f.lab.SetLink(context.WithoutCancel(ctx), a.Name, b.Name, true) }
	if err := f.lab.SetLink(ctx, a.Name, b.Name, false); err != nil {
		return nil, errors.Join(fmt.Errorf("cut the link between %s and %s: %w", a.Name, b.Name, err), mend())
	}
	return mend, nil
}

// Restart kills a copy's process where it runs. The kubelet there starts it again, in the same pod.
func (f *Federation) Restart(ctx context.Context, copied Copy) error {
	var pods corev1.PodList
	if err := copied.RunsOn.List(ctx, &pods); err != nil {
		return err
	}
	for i := range pods.Items {
		if pods.Items[i].Name != copied.Name {
			continue
		}
		container, err := copied.RunsOn.Lab.Container(&pods.Items[i], Web)
		if err != nil {
			return err
		}
		return killIn(ctx, container)
	}
	return fmt.Errorf("cluster %s has no pod %s", copied.RunsOn.Name, copied.Name)
}

// Restarts returns how often the consumer says that a copy's process was started again.
func (f *Federation) Restarts(ctx context.Context, namespace string, copied Copy) (int, error) {
	var pod corev1.Pod
	if err := f.Consumer.Get(ctx, client.ObjectKey{Namespace: namespace, Name: copied.Name}, &pod); err != nil {
		return 0, err
	}
	restarts := 0
	for i := range pod.Status.ContainerStatuses {
		restarts += int(pod.Status.ContainerStatuses[i].RestartCount)
	}
	return restarts, nil
}

// apiServer is the program of an API server.
const apiServer = "kube-apiserver"

// SlowAPIServer makes the API server of a cluster slow until the returned function is called: answers take seconds.
func (c *Cluster) SlowAPIServer(ctx context.Context) (end func() error, err error) {
	return c.Lab.Slow(ctx, apiServer)
}

// FreezeAPIServer has the API server of a cluster answer nothing until the returned function is called.
func (c *Cluster) FreezeAPIServer() (end func() error, err error) { return c.Lab.Freeze(apiServer) }

// KillAPIServer kills the API server of a cluster, which starts again soon.
func (c *Cluster) KillAPIServer(ctx context.Context) error { return c.Lab.Kill(ctx, apiServer) }

// OwnRestarts returns how often each of the project's programs was started again, by cluster, pod and container.
func (f *Federation) OwnRestarts(ctx context.Context) (map[string]int, error) {
	restarts := map[string]int{}
	for _, c := range []*Cluster{f.Broker, f.Consumer} {
		var pods corev1.PodList
		if err := c.List(ctx, &pods); err != nil {
			return nil, err
		}
		for i := range pods.Items {
			for _, status := range pods.Items[i].Status.ContainerStatuses {
				if strings.Contains(status.Image, "capacitorset/") {
					restarts[fmt.Sprintf("%s: %s/%s", c.Name, pods.Items[i].Name, status.Name)] = int(status.RestartCount)
				}
			}
		}
	}
	return restarts, nil
}
