// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
)

// patchControllerManager adds the command line flags of a JSON patch to Liqo's controller manager, unless it has them, and
// waits for the Deployment to follow.
func (c *Cluster) patchControllerManager(ctx context.Context, patch []byte) error {
	var additions []struct {
		Value string `json:"value"`
	}
	if err := json.Unmarshal(patch, &additions); err != nil {
		return fmt.Errorf("read the patch of %s: %w", controllerManager, err)
	}
	args, err := c.ControllerManagerArgs(ctx)
	if err != nil {
		return err
	}
	for _, addition := range additions {
		if !slices.Contains(args, addition.Value) {
			_, err := c.Kubectl(ctx, "patch", "--namespace="+liqoNamespace, "deployment/"+controllerManager,
				"--type=json", "--patch="+string(patch))
			if err != nil {
				return err
			}
			break
		}
	}
	return c.rollout(ctx, liqoNamespace, controllerManager)
}

// withFlags returns args with the given flags set, each once.
func withFlags(args []string, flags map[string]string) []string {
	kept := slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		_, replaced := flags[name]
		return replaced
	})
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		kept = append(kept, name+"="+flags[name])
	}
	return kept
}

// ControllerManagerArgs returns the command line of Liqo's controller manager.
func (c *Cluster) ControllerManagerArgs(ctx context.Context) ([]string, error) {
	var deployment appsv1.Deployment
	if err := c.Get(ctx, client.ObjectKey{Namespace: liqoNamespace, Name: controllerManager}, &deployment); err != nil {
		return nil, err
	}
	return deployment.Spec.Template.Spec.Containers[0].Args, nil
}

// replaceVirtualKubelets gives the virtual nodes that exist the image and the extra arguments that the controller manager gives
// to those it makes: Liqo reads its flags only when it makes one.
func (c *Cluster) replaceVirtualKubelets(ctx context.Context) error {
	args, err := c.ControllerManagerArgs(ctx)
	if err != nil {
		return err
	}
	var image string
	extra := map[string]string{}
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "--kubelet-image":
			image = value
		case "--kubelet-extra-args":
			flag, value, _ := strings.Cut(value, "=")
			extra[flag] = value
		}
	}
	var nodes vkv1alpha1.VirtualNodeList
	if err := c.List(ctx, &nodes); err != nil {
		return err
	}
	for i := range nodes.Items {
		key := client.ObjectKeyFromObject(&nodes.Items[i])
		if err := c.replaceVirtualKubelet(ctx, key, image, extra); err != nil {
			return fmt.Errorf("virtual node %s: %w", key, err)
		}
	}
	return c.waitForVirtualNodes(ctx)
}

func (c *Cluster) replaceVirtualKubelet(ctx context.Context, key client.ObjectKey, image string, extra map[string]string) error {
	var node vkv1alpha1.VirtualNode
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := c.Get(ctx, key, &node); err != nil {
			return err
		}
		container := &node.Spec.Template.Spec.Template.Spec.Containers[0]
		args := withFlags(container.Args, extra)
		if container.Image == image && slices.Equal(args, container.Args) {
			return nil
		}
		container.Image, container.Args = image, args
		return c.Update(ctx, &node)
	})
	if err != nil {
		return err
	}
	name := client.ObjectKey{Namespace: node.Namespace, Name: node.Spec.Template.Name}
	// The rollout is that of the Deployment before until Liqo's controller manager has followed.
	err = Until(ctx, patience, func(ctx context.Context) error {
		var deployment appsv1.Deployment
		if err := c.Get(ctx, name, &deployment); err != nil {
			return err
		}
		if got := deployment.Spec.Template.Spec.Containers[0].Image; got != image {
			return fmt.Errorf("deployment %s has image %s, not %s", name, got, image)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.rollout(ctx, name.Namespace, name.Name)
}

// waitForVirtualNodes waits until all nodes are ready.
func (c *Cluster) waitForVirtualNodes(ctx context.Context) error {
	return Until(ctx, patience, func(ctx context.Context) error {
		var nodes corev1.NodeList
		if err := c.List(ctx, &nodes); err != nil {
			return err
		}
		for i := range nodes.Items {
			if !nodeReady(&nodes.Items[i]) {
				return fmt.Errorf("node %s of cluster %s is not ready", nodes.Items[i].Name, c.Name)
			}
		}
		return nil
	})
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}

// rollout waits until a Deployment runs what its spec says.
func (c *Cluster) rollout(ctx context.Context, namespace, name string) error {
	_, err := c.Kubectl(ctx, "rollout", "status", "--namespace="+namespace, "deployment/"+name,
		"--timeout="+patience.Round(time.Second).String())
	return err
}
