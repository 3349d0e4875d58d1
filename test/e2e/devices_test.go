// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

const (
	// gpu is a resource as a device plugin counts it. No node of the lab has one: a node is only said to have some, so that all that counts
	// and places devices does its work, and a container gets none.
	gpu = corev1.ResourceName("nvidia.com/gpu")
	// gpuProduct is the label by which GPU feature discovery says which model they are, and gpuModel such a model.
	gpuProduct, gpuModel = "nvidia.com/gpu.product", "NVIDIA-L4"
	// lacking is what a scheduler says of a node that has too few.
	lacking = "Insufficient nvidia.com/gpu"
)

// training is a Job that requests a GPU, with a line of its pod's spec; empty for none.
const training = `
apiVersion: batch/v1
kind: Job
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  template:
    spec:
      %[3]s
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers:
        - name: tools
          image: lab.local/tools:1
          imagePullPolicy: IfNotPresent
          resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {nvidia.com/gpu: "1"}}
`

// TestDevices gives a provider two GPUs: the consumer's node for the broker has them, and Jobs that request one each run on that provider
// and on no other. A third one waits at the consumer until one of them is gone.
func TestDevices(t *testing.T) {
	const namespace = "devices"
	start(t, v1alpha1.ModeAggregated)
	withDevices(t, fed.ProviderA, "2")
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		node, err := fed.Consumer.VirtualNode(ctx, fed.Broker)
		if err != nil {
			return err
		}
		return hasDevices(node, "2")
	})
	offloadCapacity(t, fed.Consumer, namespace)

	train(t, namespace, "first", "")
	copies(t, namespace, 1, fed.ProviderA)
	train(t, namespace, "second", "")
	copies(t, namespace, 2, fed.ProviderA)
	train(t, namespace, "third", "")
	eventually(t, time.Minute, func(ctx context.Context) error {
		pods, err := podsOfJob(ctx, namespace, "third")
		switch {
		case err != nil:
			return err
		case len(pods) != 1 || pods[0].Spec.NodeName != "":
			return fmt.Errorf("the third Job has %d pods; the first is not to be on a node: %+v", len(pods), pods)
		case !strings.Contains(unscheduled(&pods[0]), lacking):
			return fmt.Errorf("the scheduler of the consumer says %q, want %q", unscheduled(&pods[0]), lacking)
		}
		return nil
	})

	// The device of a Job that is gone is the next one's.
	if _, err := fed.Consumer.Kubectl(t.Context(), "delete", "job", "first", "--namespace="+namespace); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	copies(t, namespace, 2, fed.ProviderA)
	t.Logf("the Job that waited ran %.1f s after another one was deleted", time.Since(began).Seconds())
}

// TestDevicesPerProvider gives a provider two GPUs whose model is a label of its nodes, which people put on the Provider. The consumer,
// which has a node for each provider, sees both on that one's node, and a Job can ask for the model.
func TestDevicesPerProvider(t *testing.T) {
	needs(t, federation.ProviderLabels)
	const namespace = "models"
	start(t, v1alpha1.ModeOrchestrated)
	withDevices(t, fed.ProviderA, "2")
	label(t, fed.ProviderA, "node", fed.ProviderA.Name, gpuProduct, gpuModel)
	var node corev1.Node
	if err := fed.ProviderA.Get(t.Context(), client.ObjectKey{Name: fed.ProviderA.Name}, &node); err != nil {
		t.Fatal(err)
	}
	label(t, fed.Broker, "provider", string(fed.ProviderA.ID), gpuProduct, node.Labels[gpuProduct])
	perProvider(t)
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		return errors.Join(isModel(ctx, fed.ProviderA, "2", gpuModel), isModel(ctx, fed.ProviderB, "0", ""))
	})

	offloadCapacity(t, fed.Consumer, namespace)
	train(t, namespace, "picky", fmt.Sprintf("nodeSelector: {%s: %s}", gpuProduct, gpuModel))
	copies(t, namespace, 1, fed.ProviderA)
}

// isModel returns an error unless the consumer's node of a provider has so many GPUs, and says that they are of a model; empty for none.
func isModel(ctx context.Context, provider *federation.Cluster, count, model string) error {
	node, err := nodeOf(ctx, provider)
	if err != nil {
		return err
	}
	if got := node.Labels[gpuProduct]; got != model {
		return fmt.Errorf("node %s says that its GPUs are %q, want %q", node.Name, got, model)
	}
	return hasDevices(node, count)
}

// hasDevices returns an error unless so many GPUs of a node can be requested.
func hasDevices(node *corev1.Node, want string) error {
	got := node.Status.Allocatable[gpu]
	if got.String() != want {
		return fmt.Errorf("node %s has %s GPUs, want %s", node.Name, got.String(), want)
	}
	return nil
}

// withDevices says that the node of a provider has so many GPUs, and has its Liqo share all that it has, until the test ends. The kubelet
// keeps what others say of resources that are not its own.
func withDevices(t *testing.T, provider *federation.Cluster, count string) {
	t.Helper()
	// At the end the devices go first: Liqo 0.9.4 goes on offering what has gone, until its controller manager starts again.
	walk.AtEnd(t, func(ctx context.Context) error {
		return federation.Until(ctx, 2*time.Minute, func(ctx context.Context) error {
			var p v1alpha1.Provider
			if err := fed.Broker.Get(ctx, client.ObjectKey{Name: string(provider.ID)}, &p); err != nil {
				return err
			}
			if devices := p.Status.Measured[gpu]; !devices.IsZero() {
				return fmt.Errorf("%s still offers %s GPUs", provider.Name, devices.String())
			}
			return fed.CheckOffer(ctx)
		})
	})
	walk.UntilEnd(t, func(ctx context.Context) (func() error, error) { return provider.Share(ctx, 100) })
	set := func(ctx context.Context, amount string) error {
		_, err := provider.Kubectl(ctx, "patch", "node", provider.Name, "--subresource=status", "--type=merge",
			fmt.Sprintf(`--patch={"status": {"capacity": {%[1]q: %[2]s}, "allocatable": {%[1]q: %[2]s}}}`, gpu, amount))
		return err
	}
	walk.AtEnd(t, func(ctx context.Context) error { return set(ctx, "null") })
	if err := set(t.Context(), fmt.Sprintf("%q", count)); err != nil {
		t.Fatal(err)
	}
	// Liqo offers it to the broker.
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		var node corev1.Node
		if err := provider.Get(ctx, client.ObjectKey{Name: provider.Name}, &node); err != nil {
			return err
		}
		if err := hasDevices(&node, count); err != nil {
			return err
		}
		var p v1alpha1.Provider
		if err := fed.Broker.Get(ctx, client.ObjectKey{Name: string(provider.ID)}, &p); err != nil {
			return err
		}
		if devices := p.Status.Measured[gpu]; devices.String() != count {
			return fmt.Errorf("%s offers %s GPUs to the broker, want %s", provider.Name, devices.String(), count)
		}
		return nil
	})
}

// label labels an object of a cluster until the test ends.
func label(t *testing.T, c *federation.Cluster, kind, name, key, value string) {
	t.Helper()
	walk.KubectlAtEnd(t, c, "label", kind, name, key+"-")
	if _, err := c.Kubectl(t.Context(), "label", "--overwrite", kind, name, key+"="+value); err != nil {
		t.Fatal(err)
	}
}

// train makes a Job that requests a GPU in a namespace of the consumer.
func train(t *testing.T, namespace, name, line string) {
	t.Helper()
	if err := fed.Consumer.ApplyManifests(t.Context(), fmt.Sprintf(training, namespace, name, line)); err != nil {
		t.Fatal(err)
	}
}

// podsOfJob returns the pods of a Job of the consumer.
func podsOfJob(ctx context.Context, namespace, job string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := fed.Consumer.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"job-name": job})
	return pods.Items, err
}

// unscheduled returns what a scheduler says of a pod for which it has found no node; empty if it says nothing.
func unscheduled(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// claiming is a pod with a claim of dynamic resource allocation.
const claiming = `
apiVersion: v1
kind: Pod
metadata: {name: claims, namespace: %s}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
  containers:
    - name: tools
      image: lab.local/tools:1
      imagePullPolicy: IfNotPresent
      resources: {claims: [{name: gpu}]}
`

// TestClaimsAreRefused asks for a device by a claim of dynamic resource allocation, in a namespace that is offloaded: Liqo's webhook there
// does not know any more where a claim comes from, and takes that away, so that the API server refuses the pod. It gets to no other
// cluster.
func TestClaimsAreRefused(t *testing.T) {
	const namespace, refused = "claims", "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
	needs(t, federation.RefusesClaims)
	served, err := fed.Consumer.Kubectl(t.Context(), "get", "--raw=/apis")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(served, `"resource.k8s.io/v1"`) {
		t.Skip("this Kubernetes has no claims")
	}
	together(t, v1alpha1.ModeAggregated)
	offloadCapacity(t, fed.Consumer, namespace)
	// The API server asks the webhook a moment after the namespace has its label.
	eventually(t, time.Minute, func(ctx context.Context) error {
		err := fed.Consumer.ApplyManifests(ctx, fmt.Sprintf(claiming, namespace))
		if err == nil {
			_, err := fed.Consumer.Kubectl(ctx, "delete", "pod", "claims", "--namespace="+namespace, "--now")
			return errors.Join(err, errors.New("the API server takes the pod"))
		}
		if !strings.Contains(err.Error(), refused) {
			return fmt.Errorf("the API server does not say %q: %w", refused, err)
		}
		return nil
	})
}
