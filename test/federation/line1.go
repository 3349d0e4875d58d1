// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// line1 is Liqo 1.x: virtual kubelets are Liqo's own, each tunnel has a gateway, and it is liqoctl that peers clusters.
type line1 struct{}

func (line1) traits() Traits {
	return Traits{
		Lacks: map[Trait]string{ //nolint:gosec // Some are about tokens, and none is one.
			CommandsOfPages: "the commands of pages are for Liqo 0.9, but for those of docs/liqo-1.md",
			DirectPaths:     "with Liqo 1.x consumers reach all providers through the broker",
			ExitCodes:       "Liqo 1.2's virtual kubelets do not pass on with what a program exits",
			GatewayShare:    "with Liqo 1.x the gateway has no share of its own",
			HostilePeers:    "with Liqo 1.x test/stock does that",
			IDInTwins:       "with Liqo 1.x the ID of a cluster is its name",
			JoinPeers:       "with Liqo 1.x TestFrontDoor1 does that",
			KubeletsAskIPAM: "with Liqo 1.x no virtual kubelet asks Liqo's IPAM",
			LetIn:           "with Liqo 1.x whoever peers may consume",
			LiveOffers:      "a provider with stock Liqo 1.x takes nothing back while the peering lasts",
			OneGateway:      "with Liqo 1.x each tunnel has a gateway",
			OurKubelets:     "with Liqo 1.x virtual kubelets are Liqo's own",
			PreparedBrokers: "with Liqo 1.x a broker needs nothing of what unprepare removes",
			ProviderLabels:  "with Liqo 1.x the node of a single provider has no labels of that",
			RefusesClaims:   "Liqo 1.x knows claims, and takes pods that have some",
			RemoteIPAM:      "with Liqo 1.x there is no remote IPAM",
			Storage:         "Liqo's storage is not tried with 1.x",
			TokensPass:      "with Liqo 1.x tokens for the API server of a consumer do not pass",
			Trade:           "the trade is not there with Liqo 1.x",
			TwinsOfLiqo:     "with Liqo 1.x namespace liqo is offloaded to nobody",
			Usage:           "the agent by which Liqo 1.x passes usage on shows each peer that of all, and is off",
		},
		ForeignClusters: "core.liqo.io/v1beta1", ClusterLabel: "liqo.io/remote-cluster-id",
		ShadowPods: "offloading.liqo.io/v1beta1", KubeletLabel: "offloading.liqo.io/component",
		Kinds: []schema.GroupVersionKind{
			{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
			{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
			{Group: "networking.liqo.io", Version: "v1beta1", Kind: "FirewallConfiguration"},
			{Group: "ipam.liqo.io", Version: "v1alpha1", Kind: "IP"},
			{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"},
		},
		offloadings: "offloading.liqo.io/v1beta1",
	}
}

func (line1) gateway(c, other *Cluster) Process {
	return Process{c, tenantOf(other), gatewayOf(other), "wireguard"}
}

func (line1) credentials(ctx context.Context, peer, broker *Cluster) (*Credentials, error) {
	tenant, err := peer.Tenant(ctx, broker)
	if err != nil {
		return nil, err
	}
	key, _, err := v1.IdentityAt(ctx, peer, broker.ID, tenant)
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
		// The lab knows those of the first broker.
		if err := f.ensurePeering(ctx, f.Consumer, f.Broker); err != nil {
			return err
		}
		for _, provider := range f.Providers() {
			if err := f.ensurePeering(ctx, f.Broker, provider); err != nil {
				return err
			}
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

func (line1) stations(f *Federation) []station {
	object := f.Broker.NodeName()
	slice := func(o client.Object) corev1.ResourceList {
		if s, is := o.(*api.ResourceSlice); is {
			return s.Status.Resources
		}
		return nil
	}
	return []station{
		{"the ResourceSlice at the broker", f.Broker, &api.ResourceSliceList{}, tenantOf(f.Consumer), object, slice},
		{"the ResourceSlice at the consumer", f.Consumer, &api.ResourceSliceList{}, tenantOf(f.Broker), object, slice},
		{"the VirtualNode", f.Consumer, &api.VirtualNodeList{}, tenantOf(f.Broker), object, func(o client.Object) corev1.ResourceList {
			if n, is := o.(*api.VirtualNode); is {
				return n.Spec.ResourceQuota.Hard
			}
			return nil
		}},
	}
}

func (line1) viewsAcknowledged(ctx context.Context, f *Federation) error {
	var slice api.ResourceSlice
	if err := f.Broker.Get(ctx, client.ObjectKey{Namespace: tenantOf(f.Consumer), Name: f.Broker.NodeName()}, &slice); err != nil {
		return err
	}
	told, err := f.agentTold(ctx)
	if err != nil {
		return err
	}
	if granted, _ := liqo.ViewsOf(slice.Status.NodeLabels); !maps.Equal(granted, told.Views) {
		return fmt.Errorf("the consumer has acknowledged the views %v, of %v", told.Views, granted)
	}
	return nil
}

// endNodes has nothing to do: the agent of the consumer gives the nodes up when their pods are gone.
func (line1) endNodes(context.Context, *Federation) error { return nil }

func (line1) quotaUser(ctx context.Context, f *Federation) (string, error) {
	return f.Broker.Kubectl(ctx, "get", "quotas.offloading.liqo.io", "--namespace="+tenantOf(f.Consumer),
		"--output=jsonpath={.items[0].spec.user}")
}

func (line1) relays(ctx context.Context, f *Federation) (int, error) {
	var all api.IPList
	err := f.Broker.List(ctx, &all)
	return len(all.Items), err
}

// tenantOf returns the namespace that Liqo 1.x has for a cluster in its peers.
func tenantOf(c *Cluster) string { return "liqo-tenant-" + string(c.ID) }

// gatewayOf returns the Deployment by which Liqo 1.x on other clusters has a tunnel to a cluster.
func gatewayOf(c *Cluster) string { return "gw-" + string(c.ID) }
