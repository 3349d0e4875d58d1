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

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// disks is a class of volumes of a provider, and one volume of it on the provider's node: the lab makes none by itself.
const disks = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: disks}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Mi}
  storageClassName: disks
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: /var/lib/%[1]s, type: DirectoryOrCreate}
`

// remoteClaim is a claim of a volume where its pod runs.
const remoteClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: %s}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: liqo
  resources: {requests: {storage: 1Mi}}
`

// claimingPod returns the pod keeps of a namespace, which has the volume of the claim data, and annotations as YAML has them in braces.
func claimingPod(namespace, annotations string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: keeps, namespace: %s, annotations: {%s}}
spec:
  terminationGracePeriodSeconds: 0
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
  containers:
    - name: tools
      image: lab.local/tools:1
      imagePullPolicy: IfNotPresent
      resources: {requests: {cpu: 10m, memory: 16Mi}}
      volumeMounts: [{name: data, mountPath: /data}]
`, namespace, annotations)
}

// TestVolumesOfProviders has a claim of the consumer satisfied by a provider, through the broker, where Liqo's storage is on in all three:
// the pod runs there, its volume is one of that provider's, and the next pod finds what the first has written. The other provider has no
// storage, and its virtual kubelet leaves the claim alone.
func TestVolumesOfProviders(t *testing.T) {
	needs(t, federation.Storage)
	const namespace = "disks"
	start(t, v1alpha1.ModeAggregated)
	volume := fmt.Sprintf(disks, namespace)
	walk.KubectlAtEnd(t, fed.ProviderA, "delete", "persistentvolume/"+namespace, "storageclass/disks", "--ignore-not-found")
	if err := fed.ProviderA.ApplyManifests(t.Context(), volume); err != nil {
		t.Fatal(err)
	}
	walk.UntilEnd(t, func(ctx context.Context) (func() error, error) { return fed.ProviderA.Storage(ctx, "disks") })
	// The only class of the broker is the virtual one, so that the consumer asks for that.
	walk.UntilEnd(t, func(ctx context.Context) (func() error, error) { return fed.Broker.Storage(ctx, "") })
	walk.UntilEnd(t, func(ctx context.Context) (func() error, error) { return fed.Consumer.Storage(ctx, "") })
	storing(t, fed.Broker, fed.ProviderA, "disks")
	storing(t, fed.Consumer, fed.Broker, federation.VirtualClass)
	// Liqo removes the volumes of claims that are gone, as long as its storage is on.
	walk.AtEnd(t, func(ctx context.Context) error {
		return errors.Join(fed.Removed(ctx, namespace), federation.Until(ctx, 2*time.Minute, noVirtualVolumes))
	})
	cordon(t, fed.ProviderB)
	offloadCapacity(t, fed.Consumer, namespace)

	keeps := claimingPod(namespace, "")
	if err := fed.Consumer.ApplyManifests(t.Context(), fmt.Sprintf(remoteClaim, namespace)+"---"+keeps); err != nil {
		t.Fatal(err)
	}
	copies(t, namespace, 1, fed.ProviderA)
	var claims corev1.PersistentVolumeClaimList
	if err := fed.ProviderA.List(t.Context(), &claims); err != nil {
		t.Fatal(err)
	}
	if len(claims.Items) != 1 || claims.Items[0].Spec.VolumeName != namespace {
		t.Errorf("the provider has claims %+v, want one with volume %s", claims.Items, namespace)
	}

	kept := time.Now().Format(time.RFC3339Nano)
	inPod(t, namespace, "echo "+kept+" >/data/kept")
	if _, err := fed.Consumer.Kubectl(t.Context(), "delete", "pod", "keeps", "--namespace="+namespace); err != nil {
		t.Fatal(err)
	}
	if err := fed.Consumer.ApplyManifests(t.Context(), keeps); err != nil {
		t.Fatal(err)
	}
	copies(t, namespace, 1, fed.ProviderA)
	if got := strings.TrimSpace(inPod(t, namespace, "cat /data/kept")); got != kept {
		t.Errorf("the second pod finds %q, the first has written %q", got, kept)
	}
}

// storing has the virtual kubelet by which a cluster shows another one make claims of a class there, until the test ends, and waits until
// both have seen that there is storage.
func storing(t *testing.T, c, other *federation.Cluster, class string) {
	t.Helper()
	walk.UntilEnd(t, func(ctx context.Context) (func() error, error) {
		return c.RunVirtualKubeletWith(ctx, other, "--enable-storage=true", "--remote-real-storage-class-name="+class)
	})
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		node, err := c.VirtualNode(ctx, other)
		if err != nil {
			return err
		}
		if has := node.Labels["storage.liqo.io/available"]; has != "true" {
			return fmt.Errorf("that there is storage on node %s of %s is %q", node.Name, c.Name, has)
		}
		return c.NodesReady(ctx)
	})
}

// noVirtualVolumes returns an error while the consumer or the broker has a volume that stands for another cluster's.
func noVirtualVolumes(ctx context.Context) error {
	for _, c := range []*federation.Cluster{fed.Consumer, fed.Broker} {
		var volumes corev1.PersistentVolumeList
		if err := c.List(ctx, &volumes); err != nil {
			return err
		}
		for i := range volumes.Items {
			if volumes.Items[i].Spec.StorageClassName == federation.VirtualClass {
				return fmt.Errorf("cluster %s still has volume %s", c.Name, volumes.Items[i].Name)
			}
		}
	}
	return nil
}

// inPod runs a line of shell in the pod keeps of a namespace of the consumer, and returns what it prints.
func inPod(t *testing.T, namespace, line string) string {
	t.Helper()
	out, err := fed.Consumer.Kubectl(t.Context(), "exec", "keeps", "--namespace="+namespace, "--", "sh", "-c", line)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
