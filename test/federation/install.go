// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// patience is how long a step may take that waits for Kubernetes or Liqo: four clusters share two cores.
const patience = 3 * time.Minute

// step is one of those to a working broker.
type step struct {
	name string
	do   func(context.Context) error
}

// Install makes a working broker out of stock Liqo, as the plugin of kubectl does. What was done before changes nothing.
func (f *Federation) Install(ctx context.Context, progress *Progress) error {
	options, err := f.images()
	if err != nil {
		return err
	}
	for _, step := range []step{
		{"load the images into the clusters", func(ctx context.Context) error { return f.LoadImages(ctx, options.Tag) }},
		{"broker: kubectl liqo-broker install", func(ctx context.Context) error { return f.InstallBroker(ctx, progress) }},
		{"broker: expose the HTTP API on the node, for an operator (deploy/examples)", f.ExposeAPI},
		f.Broker.line().peering(f, progress),
		{"wait until the consumer sees what the providers offer", f.waitForOffer},
	} {
		if err := progress.Step(ctx, step.name, step.do); err != nil {
			return err
		}
	}
	return nil
}

// InstallBroker installs the broker, as `kubectl liqo-broker install` does. Its images must be loaded.
func (f *Federation) InstallBroker(ctx context.Context, progress *Progress) error {
	options, err := f.images()
	if err != nil {
		return err
	}
	return f.Broker.with(ctx, options, progress, (*install.Installer).Install)
}

// Prepare makes a cluster a consumer of the broker, with which it peers, as `kubectl liqo-broker prepare` does. Images must be loaded.
func (f *Federation) Prepare(ctx context.Context, c *Cluster, progress *Progress) error {
	return f.asConsumer(ctx, c, progress, (*install.Installer).Prepare)
}

// Unprepare undoes it.
func (f *Federation) Unprepare(ctx context.Context, c *Cluster, progress *Progress) error {
	return f.asConsumer(ctx, c, progress, (*install.Installer).Unprepare)
}

func (f *Federation) asConsumer(
	ctx context.Context, c *Cluster, progress *Progress, do func(*install.Installer, context.Context, *install.Setup) error,
) error {
	options, err := f.images()
	if err != nil {
		return err
	}
	options.Broker = string(f.Broker.ID)
	return c.with(ctx, options, progress, do)
}

// Join peers the broker with its providers and with the consumer, and prepares the consumer, as `kubectl liqo-broker join` does. The
// consumer also peers with provider-a, if that is another cluster than provider-b.
func (f *Federation) Join(ctx context.Context, progress *Progress) error {
	options, err := f.images()
	if err != nil {
		return err
	}
	as := func(c *Cluster) install.Joiner { return install.Joiner{Called: c.Name, Client: c} }
	joins := []install.Joining{{Providers: []install.Joiner{as(f.ProviderB)}, Consumers: []install.Joiner{as(f.Consumer)}}}
	if f.ProviderA != f.ProviderB {
		direct := install.Joining{Providers: []install.Joiner{as(f.ProviderA)}, Consumers: []install.Joiner{as(f.Consumer)}, Direct: true}
		joins = []install.Joining{direct, {Providers: []install.Joiner{as(f.ProviderB)}}}
	}
	for _, joining := range joins {
		joining.Broker = as(f.Broker)
		if err := install.Join(ctx, joining, options, progress); err != nil {
			return err
		}
	}
	return nil
}

// with has an Installer do something with a cluster.
func (c *Cluster) with(
	ctx context.Context, options install.Options, progress *Progress,
	do func(*install.Installer, context.Context, *install.Setup) error,
) error {
	installer, err := install.New(c, options, progress)
	if err != nil {
		return err
	}
	setup, err := installer.Look(ctx)
	if err != nil {
		return err
	}
	return do(installer, ctx, &setup)
}

// ourImages are those of the broker, and which clusters run them.
var ourImages = []struct {
	name string
	on   func(*Federation) []*Cluster
}{
	{"liqo-broker", func(f *Federation) []*Cluster { return []*Cluster{f.Broker} }},
	{"liqo-broker-network-manager", (*Federation).Clusters}, // Its pods at providers test the network.
	{"liqo-broker-vk", func(f *Federation) []*Cluster {
		if !f.Broker.Has(OurKubelets) {
			return nil
		}
		return []*Cluster{f.Broker, f.Consumer}
	}},
}

// images returns the options by which the images are installed as they were built last: their tag is made of their content.
func (f *Federation) images() (install.Options, error) {
	sum, names := sha256.New(), []string{connector, "liqo-broker-registry"}
	for _, image := range ourImages {
		names = append(names, image.name)
	}
	for _, name := range names {
		archive, err := os.Open(f.archive(name))
		if err != nil {
			return install.Options{}, err
		}
		_, err = io.Copy(sum, archive)
		if err := errors.Join(err, archive.Close()); err != nil {
			return install.Options{}, err
		}
	}
	return install.Options{Tag: "lab-" + hex.EncodeToString(sum.Sum(nil))[:12], Timeout: patience}, nil
}

// archive returns the path of one of our images.
func (f *Federation) archive(image string) string {
	return f.path("bin", "images", image+".tar")
}

// Load loads one of our images into a cluster, as it was built last.
func (f *Federation) Load(ctx context.Context, image string, into *Cluster) error {
	options, err := f.images()
	if err != nil {
		return err
	}
	return into.load(ctx, f.archive(image), options.Tag)
}

// LoadImages loads the images of the broker into the clusters that run them, under a tag.
func (f *Federation) LoadImages(ctx context.Context, tag string) error {
	for _, image := range ourImages {
		for _, c := range image.on(f) {
			if err := c.load(ctx, f.archive(image.name), tag); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Cluster) load(ctx context.Context, path, tag string) error {
	archive, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }()
	_, err = c.Lab.Load(ctx, archive, tag)
	return err
}

// ReflectedNetworkManager returns the Service by which the consumer reaches the broker's remote IPAM.
func (f *Federation) ReflectedNetworkManager(ctx context.Context) (*corev1.Service, error) {
	var twins corev1.NamespaceList
	if err := f.Consumer.List(ctx, &twins, client.MatchingLabels{liqo.LabelRemoteClusterID: string(f.Broker.ID)}); err != nil {
		return nil, err
	}
	for i := range twins.Items {
		if !v09.TwinOfLiqo(twins.Items[i].Name, cluster.Identity{ID: f.Broker.ID, Name: f.Broker.Name}) {
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

// OfferedToBroker returns the sum of what the providers that are active offer the broker, of each as the broker counts it: bytes in whole
// mebibytes.
func (f *Federation) OfferedToBroker(ctx context.Context) (corev1.ResourceList, error) {
	offers, err := f.Broker.Liqo().Offers(ctx)
	if err != nil {
		return nil, err
	}
	sum := corev1.ResourceList{}
	for i := range offers {
		from := offers[i].By()
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
		if !offers[i].Accepted {
			continue
		}
		for name, quantity := range resources.Readable(offers[i].Resources) {
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

// InstallFlags returns the flags by which the plugin of kubectl installs the images as they were built last, which are loaded.
func (f *Federation) InstallFlags(ctx context.Context) ([]string, error) {
	options, err := f.images()
	if err != nil {
		return nil, err
	}
	return []string{"--tag=" + options.Tag}, f.LoadImages(ctx, options.Tag)
}
