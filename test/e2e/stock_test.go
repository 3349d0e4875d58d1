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

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// offeringTo is an offloading of namespace liqo to the virtual nodes that an expression selects.
func offeringTo(expression string) string {
	return fmt.Sprintf(`
apiVersion: offloading.liqo.io/v1alpha1
kind: NamespaceOffloading
metadata: {name: offloading, namespace: liqo}
spec:
  namespaceMappingStrategy: DefaultName
  podOffloadingStrategy: Local
  clusterSelector:
    nodeSelectorTerms:
      - matchExpressions: [%s]
`, expression)
}

// allVirtualNodes selects what who knows only Liqo offers to.
const allVirtualNodes = "{key: liqo.io/type, operator: In, values: [virtual-node]}"

// TestInstallationInTheWrongOrder offers namespace liqo while Liqo's own virtual kubelet runs for a provider, and nothing of the broker
// is there to refuse it: the provider gets the Secrets. The installation takes them away again, and goes on to the end.
func TestInstallationInTheWrongOrder(t *testing.T) {
	needs(t, federation.OurKubelets)
	installed(t)
	ctx := t.Context()
	const canary = "early-canary"
	provider := fed.ProviderB
	if err := fed.Broker.ApplyManifests(ctx,
		fmt.Sprintf(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": %q, "namespace": "liqo"}}`, canary)); err != nil {
		t.Fatal(err)
	}
	installed := false
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		if !installed {
			if err := fed.Install(ctx, federation.NewProgress(t.Output())); err != nil {
				t.Error(err)
			}
		}
		if _, err := fed.Broker.Kubectl(ctx, "delete", "--namespace=liqo", "secret", canary); err != nil {
			t.Error(err)
		}
	})

	// Liqo's virtual kubelet says so by taking the label off the node, and the namespace is not offloaded to it any more.
	if err := fed.StockVirtualKubelet(ctx, fed.Broker, provider); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func(ctx context.Context) error {
		node, err := fed.Broker.VirtualNode(ctx, provider)
		if err == nil && node.Labels[liqo.LabelVirtualKubelet] != "" {
			err = fmt.Errorf("node %s says that its virtual kubelet is ours", node.Name)
		}
		if twins := twinsOfLiqo(t, provider); err == nil && len(twins) > 0 {
			err = fmt.Errorf("%s still has %v", provider.Name, twins)
		}
		return err
	})

	restore := withoutAdmission(t)
	scaleBroker(t, 0)
	eventually(t, time.Minute, func(ctx context.Context) error { return fed.Broker.ApplyManifests(ctx, offeringTo(allVirtualNodes)) })
	eventually(t, time.Minute, func(ctx context.Context) error { return hasSecret(ctx, t, provider, canary) })

	// The daemon comes, and the provider loses what it got, while its virtual kubelet is still Liqo's.
	restore()
	scaleBroker(t, 1)
	eventually(t, time.Minute, func(ctx context.Context) error {
		if err := hasSecret(ctx, t, provider, canary); !errors.Is(err, errNotReflected) {
			return fmt.Errorf("%s has the Secret %s: %w", provider.Name, canary, err)
		}
		return nil
	})
	events, err := fed.Broker.Kubectl(ctx, "get", "events", "--namespace=liqo", "--field-selector=reason=SecretsProtected", "--output=name")
	if err != nil {
		t.Fatal(err)
	}
	if events == "" {
		t.Error("no event on the offloading says that it was taken back")
	}

	// While any virtual kubelet of Liqo runs for the provider, as in a rollout that is slow to end, ours does not let it have the namespace,
	// and the installation waits.
	endStraggler := straggler(t, provider)
	var installing errgroup.Group
	installing.Go(func() error { return fed.Install(ctx, federation.NewProgress(t.Output())) })
	ours := func(ctx context.Context) error {
		pods, err := fed.Broker.VirtualKubelets(ctx, provider)
		if err == nil && (len(pods) != 1 || !strings.Contains(pods[0].Spec.Containers[0].Image, "liqo-broker-vk")) {
			err = fmt.Errorf("%d virtual kubelets run, want one of ours", len(pods))
		}
		return err
	}
	eventually(t, time.Minute, ours)
	for range 5 {
		time.Sleep(time.Second)
		node, err := fed.Broker.VirtualNode(ctx, provider)
		if err != nil {
			t.Fatal(err)
		}
		if node.Labels[liqo.LabelVirtualKubelet] != "" {
			t.Fatalf("namespace liqo may be offloaded to %s, and Liqo's virtual kubelet still runs for it", node.Name)
		}
	}
	endStraggler()
	if err := installing.Wait(); err != nil {
		t.Fatal(err)
	}
	installed = true
	eventually(t, time.Minute, func(context.Context) error {
		if twins := twinsOfLiqo(t, provider); len(twins) != 1 {
			return fmt.Errorf("%s has %v, want one twin of namespace liqo", provider.Name, twins)
		}
		return nil
	})
	if err := hasSecret(ctx, t, provider, canary); !errors.Is(err, errNotReflected) {
		t.Errorf("%s has the Secret %s: %v", provider.Name, canary, err)
	}
}

// straggler runs one more of the virtual kubelets that the broker has for a provider now, until the returned function or the test ends.
func straggler(t *testing.T, provider *federation.Cluster) (end func()) {
	t.Helper()
	pods, err := fed.Broker.VirtualKubelets(t.Context(), provider)
	if err != nil || len(pods) == 0 {
		t.Fatalf("no virtual kubelet for %s: %v", provider.Name, err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "straggler", Namespace: pods[0].Namespace, Labels: pods[0].Labels}, Spec: pods[0].Spec,
	}
	delete(pod.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	pod.Spec.NodeName = ""
	return walk.UntilEnd(t, func(ctx context.Context) (func() error, error) {
		return func() error { return fed.Broker.Delete(context.WithoutCancel(ctx), pod) }, fed.Broker.Create(ctx, pod)
	})
}

// TestTwinOfLiqo has the consumer offload its own namespace liqo, whose twin no policy places: no pod there runs on the broker.
func TestTwinOfLiqo(t *testing.T) {
	needs(t, federation.TwinsOfLiqo)
	ctx := t.Context()
	together(t, v1alpha1.ModeOrchestrated)
	const wish = "wish"
	if err := fed.Consumer.ApplyManifests(ctx,
		offeringTo(fmt.Sprintf("{key: liqo.io/remote-cluster-id, operator: In, values: [%s]}", fed.Broker.ID))); err != nil {
		t.Fatal(err)
	}
	var twin string
	find := func(ctx context.Context) (err error) {
		twin, err = fed.Broker.Twin(ctx, fed.Consumer, "liqo")
		return err
	}
	walk.AtEnd(t, func(ctx context.Context) error {
		return federation.Until(ctx, time.Minute, func(ctx context.Context) error {
			if err := find(ctx); !errors.Is(err, federation.ErrNoTwin) {
				return fmt.Errorf("the broker still has namespace %s: %w", twin, err)
			}
			return nil
		})
	})
	walk.KubectlAtEnd(t, fed.Consumer, "delete", "--namespace=liqo", "namespaceoffloading", "offloading")
	eventually(t, time.Minute, find)

	bindings := watchBindings(t, twin+"/")
	shadow := fmt.Sprintf(`{"apiVersion": "virtualkubelet.liqo.io/v1alpha1", "kind": "ShadowPod",
		"metadata": {"name": %q, "namespace": %q, "labels": {"virtualkubelet.liqo.io/origin": %q, "virtualkubelet.liqo.io/destination": %q}},
		"spec": {"pod": {"containers": [{"name": "web", "image": "lab.local/web:1", "imagePullPolicy": "IfNotPresent"}]}}}`,
		wish, twin, fed.Consumer.ID, fed.Broker.ID)
	eventually(t, time.Minute, func(context.Context) error { return createAs(t, shadow, "--as="+string(fed.Consumer.ID)) })
	for range 10 {
		time.Sleep(time.Second)
		var pod corev1.Pod
		err := fed.Broker.Get(ctx, client.ObjectKey{Namespace: twin, Name: wish}, &pod)
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		if err == nil && pod.Spec.NodeName != "" {
			t.Fatalf("a pod of the twin of namespace liqo is bound to %s", pod.Spec.NodeName)
		}
	}
	bindings.none(t)
}

var errNotReflected = errors.New("not reflected")

// hasSecret returns errNotReflected unless a cluster has a Secret of the broker's namespace liqo.
func hasSecret(ctx context.Context, t *testing.T, c *federation.Cluster, name string) error {
	t.Helper()
	for _, namespace := range twinsOfLiqo(t, c) {
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.Secret{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			return err
		}
	}
	return errNotReflected
}
