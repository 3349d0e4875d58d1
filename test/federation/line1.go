// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
)

// line1 is Liqo 1.x: virtual kubelets are Liqo's own, each tunnel has a gateway, and it is liqoctl that peers clusters.
type line1 struct{}

func (line1) traits() Traits {
	return Traits{
		ForeignClusters: "core.liqo.io/v1beta1", ClusterLabel: "liqo.io/remote-cluster-id",
		ShadowPods: "offloading.liqo.io/v1beta1", KubeletLabel: "offloading.liqo.io/component", Fenced: true,
		offloadings: "offloading.liqo.io/v1beta1",
	}
}

func (line1) gateway(c, other *Cluster) Process {
	return Process{c, tenantOf(other), gatewayOf(other), "wireguard"}
}

func (line1) credentials(ctx context.Context, peer, broker *Cluster) (*Credentials, error) {
	known, err := peer.Peer(ctx, broker)
	if err != nil {
		return nil, err
	}
	if known == nil {
		return nil, fmt.Errorf("%s has no peer %s", peer.Name, broker.Name)
	}
	key, _, err := v1.IdentityAt(ctx, peer, broker.ID, known.Tenant)
	if err != nil {
		return nil, err
	}
	var secret corev1.Secret
	if err := peer.Get(ctx, key, &secret); err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(v1.KubeconfigOf(&secret))
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of %s at %s in Secret %s: %w", peer.Name, broker.Name, key, err)
	}
	return &Credentials{Data: secret.Data, Certificate: config.CertData, Key: config.KeyData}, nil
}

func (line1) peering(f *Federation, progress *Progress) step {
	return step{"all: liqoctl peer; consumer: kubectl liqo-broker prepare", func(ctx context.Context) error {
		if err := f.PeerAll(ctx); err != nil {
			return err
		}
		return f.Prepare(ctx, f.Consumer, progress)
	}}
}

// parted lets the consumer's gateway start again where the provider still uses it: Liqo 1.2.0 takes its identity from it together with that
// of the virtual kubelet (docs/troubleshooting.md).
func (line1) parted(ctx context.Context, consumer, provider *Cluster) error {
	peer, err := consumer.Peer(ctx, provider)
	switch {
	case err != nil:
		return err
	case peer != nil && peer.Outgoing.Exists:
		return fmt.Errorf("cluster %s still uses %s: %+v", consumer.Name, provider.Name, peer.Outgoing)
	case peer == nil || !peer.Incoming.Exists:
		return nil
	}
	gateway := gatewayOf(provider)
	if _, err := consumer.Kubectl(ctx, "rollout", "restart", "--namespace="+tenantOf(provider), "deployment/"+gateway); err != nil {
		return err
	}
	return consumer.rollout(ctx, tenantOf(provider), gateway)
}

// tenantOf returns the namespace that Liqo 1.x has for a cluster in its peers.
func tenantOf(c *Cluster) string { return "liqo-tenant-" + string(c.ID) }

// gatewayOf returns the Deployment by which Liqo 1.x on other clusters has a tunnel to a cluster.
func gatewayOf(c *Cluster) string { return "gw-" + string(c.ID) }
