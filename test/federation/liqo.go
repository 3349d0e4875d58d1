// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"

	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// storageNamespace is where Liqo's controller manager keeps claims of its own cluster.
const storageNamespace = "liqo-storage"

// withFlags returns args with the given flags, in place of those of the same names.
func withFlags(args, flags []string) []string {
	name := func(flag string) string {
		name, _, _ := strings.Cut(flag, "=")
		return name
	}
	kept := slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		return slices.ContainsFunc(flags, func(flag string) bool { return name(flag) == name(arg) })
	})
	return append(kept, flags...)
}

// ControllerManagerArgs returns the command line of Liqo's controller manager.
func (c *Cluster) ControllerManagerArgs(ctx context.Context) ([]string, error) {
	return c.args(ctx, liqoNamespace, controllerManager)
}

// KubeletImage returns the image of the virtual kubelets that Liqo's controller manager makes.
func (c *Cluster) KubeletImage(ctx context.Context) (string, error) {
	args, err := c.ControllerManagerArgs(ctx)
	if err != nil {
		return "", err
	}
	for _, arg := range args {
		if image, found := strings.CutPrefix(arg, "--kubelet-image="); found {
			return image, nil
		}
	}
	return "", fmt.Errorf("%s of %s does not say which virtual kubelet Liqo has: %q", controllerManager, c.Name, args)
}

// Share makes a cluster share a part of its resources with others, in percent, until the returned function is called.
func (c *Cluster) Share(ctx context.Context, percent int) (end func() error, err error) {
	return c.addFlags(ctx, liqoNamespace, controllerManager, fmt.Sprintf("--resource-sharing-percentage=%d", percent))
}

// ShareWithAll has Liqo on a cluster give each peer a part of it, and ask nobody what to give, as Liqo does by default, until the returned
// function is called.
func (c *Cluster) ShareWithAll(ctx context.Context) (end func() error, err error) {
	return c.addFlags(ctx, liqoNamespace, controllerManager, "--resource-plugin-address=", "--enable-incoming-peering=true")
}

// VirtualClass is the class of volumes that another cluster has, where Liqo's storage is on.
const VirtualClass = "liqo"

// Storage turns Liqo's storage on, as Liqo's chart does by storage.enable and storage.realStorageClassName, until the returned function is
// called. A virtual kubelet that is there already has flags of its own for it.
func (c *Cluster) Storage(ctx context.Context, realClass string) (end func() error, err error) {
	class := fmt.Sprintf("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: %s}\nprovisioner: liqo.io/storage\n"+
		"volumeBindingMode: WaitForFirstConsumer\n", VirtualClass)
	if err := c.ApplyManifests(ctx, class); err != nil {
		return nil, err
	}
	flags, err := c.addFlags(ctx, liqoNamespace, controllerManager, "--enable-storage=true", "--virtual-storage-class-name="+VirtualClass,
		"--real-storage-class-name="+realClass, "--storage-namespace="+storageNamespace)
	if err != nil {
		return nil, errors.Join(err, c.deleteManifests(context.WithoutCancel(ctx), class))
	}
	return func() error {
		ctx := context.WithoutCancel(ctx)
		_, err := c.Kubectl(ctx, "delete", "namespace", storageNamespace, "--ignore-not-found", "--wait=false")
		return errors.Join(flags(), c.deleteManifests(ctx, class), err)
	}, nil
}

// RunDaemonWith gives the daemon on the broker flags, in place of those of the same names, until the returned function is called.
func (f *Federation) RunDaemonWith(ctx context.Context, flags ...string) (end func() error, err error) {
	return f.Broker.addFlags(ctx, brokerNamespace, broker, flags...)
}

// addFlags gives the first container of a Deployment flags, in place of those of the same names, until the returned function is
// called.
func (c *Cluster) addFlags(ctx context.Context, namespace, name string, flags ...string) (end func() error, err error) {
	before, err := c.args(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	end = func() error { return c.runWith(context.WithoutCancel(ctx), namespace, name, before) }
	if err := c.runWith(ctx, namespace, name, withFlags(before, flags)); err != nil {
		return nil, errors.Join(err, end())
	}
	return end, nil
}

// args returns the command line of the first container of a Deployment.
func (c *Cluster) args(ctx context.Context, namespace, name string) ([]string, error) {
	var deployment appsv1.Deployment
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &deployment); err != nil {
		return nil, err
	}
	return deployment.Spec.Template.Spec.Containers[0].Args, nil
}

// runWith gives the first container of a Deployment a command line, and waits for its pods to follow.
func (c *Cluster) runWith(ctx context.Context, namespace, name string, args []string) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var deployment appsv1.Deployment
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &deployment); err != nil {
			return err
		}
		deployment.Spec.Template.Spec.Containers[0].Args = args
		return c.Update(ctx, &deployment)
	})
	if err != nil {
		return err
	}
	return c.rollout(ctx, namespace, name)
}

// StockVirtualKubelet gives the virtual node of a cluster that stands for another one Liqo's own virtual kubelet, as it was
// before the installation. Install undoes it.
func (f *Federation) StockVirtualKubelet(ctx context.Context, c, other *Cluster) error {
	stock, err := f.ProviderA.KubeletImage(ctx) // Nothing is installed on providers.
	if err != nil {
		return err
	}
	node, err := c.virtualNode(ctx, other)
	if err != nil {
		return err
	}
	return c.editVirtualKubelet(ctx, node, func(container *corev1.Container) {
		container.Image, container.Resources = stock, corev1.ResourceRequirements{}
	})
}

// RunVirtualKubeletWith gives the virtual kubelet by which a cluster shows another one flags, in place of those of the same names, until
// the returned function is called.
func (c *Cluster) RunVirtualKubeletWith(ctx context.Context, other *Cluster, flags ...string) (end func() error, err error) {
	node, err := c.virtualNode(ctx, other)
	if err != nil {
		return nil, err
	}
	before := slices.Clone(node.Spec.Template.Spec.Template.Spec.Containers[0].Args)
	run := func(ctx context.Context, args []string) error {
		return c.editVirtualKubelet(ctx, node, func(container *corev1.Container) { container.Args = args })
	}
	end = func() error { return run(context.WithoutCancel(ctx), before) }
	if err := run(ctx, withFlags(before, flags)); err != nil {
		return nil, errors.Join(err, end())
	}
	return end, nil
}

// editVirtualKubelet edits the container of a virtual kubelet, and waits for its pods to follow.
func (c *Cluster) editVirtualKubelet(ctx context.Context, node *vkv1alpha1.VirtualNode, edit func(*corev1.Container)) error {
	var want corev1.Container
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		container := &node.Spec.Template.Spec.Template.Spec.Containers[0]
		edit(container)
		want = *container.DeepCopy()
		return c.Update(ctx, node)
	})
	if err != nil {
		return err
	}
	// The rollout is that of the Deployment before until Liqo's controller manager has followed.
	deployment := client.ObjectKey{Namespace: node.Namespace, Name: node.Spec.Template.Name}
	err = Until(ctx, patience, func(ctx context.Context) error {
		var got appsv1.Deployment
		if err := c.Get(ctx, deployment, &got); err != nil {
			return err
		}
		if now := &got.Spec.Template.Spec.Containers[0]; now.Image != want.Image || !slices.Equal(now.Args, want.Args) {
			return fmt.Errorf("deployment %s has not followed", deployment)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.rollout(ctx, deployment.Namespace, deployment.Name)
}

// virtualNode returns Liqo's object for the node that stands for another cluster.
func (c *Cluster) virtualNode(ctx context.Context, other *Cluster) (*vkv1alpha1.VirtualNode, error) {
	var nodes vkv1alpha1.VirtualNodeList
	if err := c.List(ctx, &nodes); err != nil {
		return nil, err
	}
	for i := range nodes.Items {
		if node := &nodes.Items[i]; node.Spec.ClusterIdentity.ClusterID == string(other.ID) {
			return node, nil
		}
	}
	return nil, fmt.Errorf("cluster %s has no virtual node for %s", c.Name, other.Name)
}

// RunVirtualKubelets runs so many replicas of the virtual kubelet by which a cluster shows another one, and waits until there are no
// more and no fewer.
func (c *Cluster) RunVirtualKubelets(ctx context.Context, other *Cluster, replicas int) error {
	node, err := c.virtualNode(ctx, other)
	if err != nil {
		return err
	}
	_, err = c.Kubectl(ctx, "patch", "--namespace="+node.Namespace, "virtualnodes.virtualkubelet.liqo.io", node.Name, "--type=merge",
		fmt.Sprintf(`--patch={"spec": {"template": {"spec": {"replicas": %d}}}}`, replicas))
	if err != nil {
		return err
	}
	return Until(ctx, patience, func(ctx context.Context) error {
		pods, err := c.VirtualKubelets(ctx, other)
		if err != nil {
			return err
		}
		running := 0
		for i := range pods {
			if podstate.Ready(&pods[i]) {
				running++
			}
		}
		if len(pods) != replicas || running != replicas {
			return fmt.Errorf("%d of %d virtual kubelets of %s for %s run, want %d", running, len(pods), c.Name, other.Name, replicas)
		}
		return nil
	})
}

// VirtualKubelets returns the pods of the virtual kubelet by which a cluster shows another one, those that end as well.
func (c *Cluster) VirtualKubelets(ctx context.Context, other *Cluster) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return !strings.HasPrefix(pod.Name, "vk-"+other.NodeName()+"-")
	}), nil
}

// ActingVirtualKubelet returns which of the replicas of a virtual kubelet acts at the moment, and its process.
func (f *Federation) ActingVirtualKubelet(ctx context.Context, c, other *Cluster) (pod string, process Process, err error) {
	node, err := c.virtualNode(ctx, other)
	if err != nil {
		return "", Process{}, err
	}
	var lease coordinationv1.Lease
	if err := c.Get(ctx, client.ObjectKeyFromObject(node), &lease); err != nil {
		return "", Process{}, err
	}
	holder := lease.Spec.HolderIdentity
	if holder == nil || *holder == "" {
		return "", Process{}, fmt.Errorf("no virtual kubelet of %s acts for %s", c.Name, other.Name)
	}
	return *holder, Process{c, node.Namespace, *holder, "virtual-kubelet"}, nil
}

// NodesReady returns an error unless all nodes of the cluster are ready, those that stand for other clusters too.
func (c *Cluster) NodesReady(ctx context.Context) error {
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes); err != nil {
		return err
	}
	for i := range nodes.Items {
		if !liqo.NodeReady(&nodes.Items[i]) {
			return fmt.Errorf("node %s of cluster %s is not ready", nodes.Items[i].Name, c.Name)
		}
	}
	return nil
}

// rollout waits until a Deployment runs what its spec says.
func (c *Cluster) rollout(ctx context.Context, namespace, name string) error {
	_, err := c.Kubectl(ctx, "rollout", "status", "--namespace="+namespace, "deployment/"+name,
		"--timeout="+patience.Round(time.Second).String())
	return err
}
