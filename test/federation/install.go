// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// patience is how long a step may take that waits for Kubernetes or Liqo: four clusters share two cores.
const patience = 3 * time.Minute

// Install makes a working broker out of stock Liqo. Steps that were taken before change nothing.
//
// The order matters in one place: the virtual kubelets of the broker must be ours before the Service of the network manager
// is offered to consumers, because Liqo's own would hand them the Secrets of its namespace as well.
func (f *Federation) Install(ctx context.Context, progress *Progress) error {
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"load the images into the broker and the consumer", f.loadImages},
		{"broker: kubectl apply -k deploy", f.applyDeploy},
		{"broker: kubectl apply -k deploy/admission, where Kubernetes has admission policies", f.applyAdmission},
		{"broker: expose the HTTP API on the node, for an operator (deploy/examples)", f.exposeAPI},
		{"broker: patch Liqo's gateway, network manager and controller manager (patches/liqo-install)", f.patchBroker},
		{"broker: give virtual kubelets the rights that ours need besides (patches/liqo-install)", func(ctx context.Context) error { return f.patchRole(ctx, f.Broker) }},
		{"broker: give the virtual nodes the broker's virtual kubelet", func(ctx context.Context) error { return f.replaceVirtualKubelets(ctx, f.Broker) }},
		{"broker: offer the Service of the network manager to the consumer (deploy/liqo)", f.offerNetworkManager},
		{"consumer: wait for the Service to arrive, and give its address to liqo-controller-manager", f.configureConsumer},
		{"consumer: give virtual kubelets the rights that ours need besides (patches/liqo-install)", func(ctx context.Context) error { return f.patchRole(ctx, f.Consumer) }},
		{"consumer: give the virtual nodes the broker's virtual kubelet", func(ctx context.Context) error { return f.replaceVirtualKubelets(ctx, f.Consumer) }},
		{"wait until the consumer sees what the providers offer", f.waitForOffer},
	}
	for _, step := range steps {
		if err := progress.Step(ctx, step.name, step.do); err != nil {
			return err
		}
	}
	return nil
}

func (f *Federation) loadImages(ctx context.Context) error {
	images := map[*Cluster][]string{
		f.Broker:   {"liqo-broker", "liqo-broker-vk", "liqo-broker-network-manager"},
		f.Consumer: {"liqo-broker-vk"},
	}
	for c, names := range images {
		for _, name := range names {
			if err := c.load(ctx, f.archive(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Cluster) load(ctx context.Context, path string) error {
	archive, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }()
	_, err = c.Lab.Load(ctx, archive)
	return err
}

func (f *Federation) applyDeploy(ctx context.Context) error {
	// The API server needs a moment to serve the CRDs that the first lines of deploy create.
	err := Until(ctx, time.Minute, func(ctx context.Context) error {
		_, err := f.Broker.Kubectl(ctx, "apply", "-k", f.path("deploy"))
		return err
	})
	if err != nil {
		return err
	}
	return f.useImage(ctx, f.Broker, brokerNamespace, broker, "liqo-broker")
}

// applyAdmission adds what holds without the daemon. Kubernetes has it since 1.30.
func (f *Federation) applyAdmission(ctx context.Context) error {
	resources, err := f.Broker.Kubectl(ctx, "get", "--raw=/apis/admissionregistration.k8s.io/v1")
	if err != nil || !strings.Contains(resources, "validatingadmissionpolicies") {
		return err
	}
	_, err = f.Broker.Kubectl(ctx, "apply", "-k", f.path("deploy", "admission"))
	return err
}

// useImage makes the pods of a Deployment run an image as it was built last, though its name is the same, and waits for them.
func (f *Federation) useImage(ctx context.Context, c *Cluster, namespace, deployment, image string) error {
	digest, err := f.digest(image)
	if err != nil {
		return err
	}
	_, err = c.Kubectl(ctx, "patch", "--namespace="+namespace, "deployment/"+deployment,
		fmt.Sprintf(`--patch={"spec": {"template": {"metadata": {"annotations": {%q: %q}}}}}`, annotationImage, digest))
	if err != nil {
		return err
	}
	return c.rollout(ctx, namespace, deployment)
}

// annotationImage is on pods, with the digest of the image that they were made for.
const annotationImage = "lab.local/image"

// digest returns what tells two builds of one of our images apart.
func (f *Federation) digest(image string) (string, error) {
	archive, err := os.Open(f.archive(image))
	if err != nil {
		return "", err
	}
	defer func() { _ = archive.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, archive); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}

// archive returns the path of one of our images.
func (f *Federation) archive(image string) string {
	return f.path("bin", "images", image+".tar")
}

func (f *Federation) patchBroker(ctx context.Context) error {
	for _, patch := range []struct{ object, file string }{
		{"deployment/liqo-gateway", "gateway.yaml"},
		{"deployment/" + networkManager, "network-manager.yaml"},
		{"service/" + networkManager, "network-manager-service.yaml"},
	} {
		_, err := f.Broker.Kubectl(ctx, "patch", "--namespace="+liqoNamespace, patch.object,
			"--patch-file="+f.path("patches", "liqo-install", patch.file))
		if err != nil {
			return err
		}
	}
	if err := f.Broker.rollout(ctx, liqoNamespace, "liqo-gateway"); err != nil {
		return err
	}
	if err := f.useImage(ctx, f.Broker, liqoNamespace, networkManager, "liqo-broker-network-manager"); err != nil {
		return err
	}
	patch, err := os.ReadFile(f.path("patches", "liqo-install", "controller-manager-broker.json"))
	if err != nil {
		return err
	}
	return f.Broker.patchControllerManager(ctx, patch)
}

// patchRole gives the virtual kubelets of a cluster the rights that ours need besides those that Liqo gives them, unless they have
// them.
func (f *Federation) patchRole(ctx context.Context, c *Cluster) error {
	const role = "clusterrole/liqo-virtual-kubelet-local"
	rules, err := c.Kubectl(ctx, "get", role, "--output=jsonpath={.rules[*].resources[*]}")
	if err != nil || slices.Contains(strings.Fields(rules), "subjectaccessreviews") {
		return err
	}
	_, err = c.Kubectl(ctx, "patch", role, "--type=json",
		"--patch-file="+f.path("patches", "liqo-install", "virtual-kubelet-role.json"))
	return err
}

func (f *Federation) offerNetworkManager(ctx context.Context) error {
	_, err := f.Broker.Kubectl(ctx, "apply", "-f", f.path("deploy", "liqo", "namespaceoffloading.yaml"))
	return err
}

// configureConsumer does what the README asks of the consumer: it takes the address of the reflected Service and gives it, with
// our image, to Liqo's controller manager.
func (f *Federation) configureConsumer(ctx context.Context) error {
	var address string
	err := Until(ctx, patience, func(ctx context.Context) error {
		service, err := f.ReflectedNetworkManager(ctx)
		if err == nil {
			address = fmt.Sprintf("%s.%s.svc.cluster.local", service.Name, service.Namespace)
		}
		return err
	})
	if err != nil {
		return err
	}
	patch, err := os.ReadFile(f.path("patches", "liqo-install", "controller-manager-consumer.json"))
	if err != nil {
		return err
	}
	return f.Consumer.patchControllerManager(ctx, bytes.ReplaceAll(patch, []byte("REMOTE_IPAM"), []byte(address)))
}

// ReflectedNetworkManager returns the Service by which the consumer reaches the broker's remote IPAM.
func (f *Federation) ReflectedNetworkManager(ctx context.Context) (*corev1.Service, error) {
	var twins corev1.NamespaceList
	if err := f.Consumer.List(ctx, &twins, client.MatchingLabels{liqo.LabelRemoteClusterID: string(f.Broker.ID)}); err != nil {
		return nil, err
	}
	for i := range twins.Items {
		if !liqo.TwinOfLiqo(twins.Items[i].Name, cluster.Identity{ID: f.Broker.ID, Name: f.Broker.Name}) {
			continue
		}
		var service corev1.Service
		if err := f.Consumer.Get(ctx, client.ObjectKey{Namespace: twins.Items[i].Name, Name: networkManager}, &service); err != nil {
			return nil, err
		}
		return &service, nil
	}
	return nil, fmt.Errorf("the consumer has no twin of namespace %s of %s", liqoNamespace, f.Broker.Name)
}

// waitForOffer waits until the consumer's virtual node for the broker has the sum of what the providers offer, and the tunnels are
// there again that the patch of the gateway took away.
func (f *Federation) waitForOffer(ctx context.Context) error {
	return Until(ctx, patience, func(ctx context.Context) error {
		for _, c := range f.Clusters() {
			if err := c.NodesReady(ctx); err != nil {
				return err
			}
		}
		return f.CheckOffer(ctx)
	})
}

// CheckOffer returns an error unless the consumer's virtual node for the broker has, in cpu, memory and pods, the sum of what the
// providers offer the broker.
func (f *Federation) CheckOffer(ctx context.Context) error {
	want, err := f.OfferedToBroker(ctx)
	if err != nil {
		return err
	}
	got, err := f.OfferedToConsumer(ctx)
	if err != nil {
		return err
	}
	var wrong []string
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		g, w := got[name], want[name]
		if g.Cmp(w) != 0 {
			wrong = append(wrong, fmt.Sprintf("%s %s instead of %s", name, g.String(), w.String()))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("the consumer's node for the broker has %s", strings.Join(wrong, ", "))
	}
	return nil
}

// OfferedToBroker returns the sum of what the providers that are active offer the broker.
func (f *Federation) OfferedToBroker(ctx context.Context) (corev1.ResourceList, error) {
	var offers liqo.ResourceOfferList
	if err := f.Broker.List(ctx, &offers); err != nil {
		return nil, err
	}
	sum := corev1.ResourceList{}
	for i := range offers.Items {
		from := liqo.OfferedBy(&offers.Items[i])
		if !slices.ContainsFunc(f.Providers(), func(p *Cluster) bool { return p.ID == from }) {
			continue
		}
		var provider v1alpha1.Provider
		if err := f.Broker.Get(ctx, client.ObjectKey{Name: string(from)}, &provider); err != nil {
			return nil, err
		}
		if provider.EffectiveScheduling() != v1alpha1.SchedulingActive {
			continue
		}
		resources, accepted := liqo.Accepted(&offers.Items[i])
		if !accepted {
			continue
		}
		for name, quantity := range resources {
			total := sum[name]
			total.Add(quantity)
			sum[name] = total
		}
	}
	return sum, nil
}

// OfferedToConsumer returns what the consumer's virtual node for the broker can take.
func (f *Federation) OfferedToConsumer(ctx context.Context) (map[corev1.ResourceName]resource.Quantity, error) {
	node, err := f.Consumer.VirtualNode(ctx, f.Broker)
	if err != nil {
		return nil, err
	}
	return node.Status.Allocatable, nil
}

// VirtualNode returns the node that stands for another cluster.
func (c *Cluster) VirtualNode(ctx context.Context, other *Cluster) (*corev1.Node, error) {
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes, client.MatchingLabels{liqo.LabelRemoteClusterID: string(other.ID)}); err != nil {
		return nil, err
	}
	if len(nodes.Items) != 1 {
		return nil, fmt.Errorf("cluster %s has %d nodes for %s, want 1", c.Name, len(nodes.Items), other.Name)
	}
	return &nodes.Items[0], nil
}
