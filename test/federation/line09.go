// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// line09 is Liqo 0.9: virtual kubelets are of this project, and one gateway holds all tunnels.
type line09 struct{}

func (line09) traits() Traits {
	return Traits{
		Lacks: map[Trait]string{
			Agents:         "with Liqo 0.9 virtual kubelets tell what consumers run",
			Fenced:         "with Liqo 0.9 the gateway lets peers pass to all pods of the broker's",
			HeldGoals:      "with Liqo 0.9 goals of speed are no promises",
			LiqoctlPeers:   "TestFrontDoor does so with Liqo 0.9",
			SilentGateways: "with Liqo 0.9 only the pods of the gateway say whether it runs",
		},
		ForeignClusters: "discovery.liqo.io/v1alpha1", ClusterLabel: "discovery.liqo.io/cluster-id",
		ShadowPods: "virtualkubelet.liqo.io/v1alpha1", KubeletLabel: "app.kubernetes.io/component",
		offloadings: "offloading.liqo.io/v1alpha1", nodes: "liqo-",
	}
}

func (line09) gateway(c, _ *Cluster) Process {
	return Process{c, liqoNamespace, "liqo-gateway", "gateway"}
}

func (line09) credentials(ctx context.Context, peer, broker *Cluster) (*Credentials, error) {
	var secrets corev1.SecretList
	if err := peer.List(ctx, &secrets, client.MatchingLabels{
		"discovery.liqo.io/local-identity": "true", "discovery.liqo.io/cluster-id": string(broker.ID),
	}); err != nil {
		return nil, err
	}
	if len(secrets.Items) != 1 {
		return nil, fmt.Errorf("%s has %d identities at %s, want 1", peer.Name, len(secrets.Items), broker.Name)
	}
	data := secrets.Items[0].Data
	return &Credentials{Data: data, Certificate: data["certificate"], Key: data["private-key"]}, nil
}

func (line09) peering(f *Federation, progress *Progress) step {
	return step{"all: kubectl liqo-broker join", func(ctx context.Context) error { return f.Join(ctx, progress) }}
}

// parted has Liqo look at once: 0.9.4 tries to let go of a deleted cluster after twice the time that it waited before, which comes to
// minutes: a changed label has it look every 5 s.
func (line09) parted(ctx context.Context, consumer, provider *Cluster) error {
	var peers v09.ForeignClusterList
	if err := consumer.List(ctx, &peers); err != nil {
		return err
	}
	for i := range peers.Items {
		if fc := &peers.Items[i]; v09.Identity(fc).ID == provider.ID && !fc.DeletionTimestamp.IsZero() {
			before := client.MergeFrom(fc.DeepCopy())
			metav1.SetMetaDataLabel(&fc.ObjectMeta, "federation.test/looked-at", strconv.FormatInt(time.Now().Unix()/5, 10))
			if err := consumer.Patch(ctx, fc, before); client.IgnoreNotFound(err) != nil {
				return err
			}
			return fmt.Errorf("cluster %s still removes what it knows of %s: finalizers %v, conditions %+v",
				consumer.Name, provider.Name, fc.Finalizers, fc.Status.PeeringConditions)
		}
	}
	return nil
}

func (line09) stations(*Federation) []station { return nil }

func (line09) viewsAcknowledged(context.Context, *Federation) error { return nil }

// endNodes removes offers, which Liqo keeps.
func (line09) endNodes(ctx context.Context, f *Federation) error {
	var offers v09.ResourceOfferList
	if err := f.Broker.List(ctx, &offers); err != nil {
		return err
	}
	for i := range offers.Items {
		if o := &offers.Items[i]; v09.OfferedTo(o) == f.Consumer.ID && o.Spec.NodeName != "" {
			if err := f.Broker.Delete(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (line09) quotaUser(_ context.Context, f *Federation) (string, error) {
	return string(f.Consumer.ID), nil
}

func (line09) relays(ctx context.Context, f *Federation) (int, error) {
	all, err := f.RelayMappings(ctx)
	return len(all), err
}

// RelayMappings returns the addresses that the broker's remote IPAM keeps for the consumer, by that which the broker shows for a pod.
func (f *Federation) RelayMappings(ctx context.Context) (map[string]string, error) {
	var mappings v09.NatMappingList
	if err := f.Broker.List(ctx, &mappings); err != nil {
		return nil, err
	}
	found := map[string]string{}
	for i := range mappings.Items {
		if mappings.Items[i].Spec.ClusterID == string(f.Consumer.ID) {
			maps.Copy(found, mappings.Items[i].Spec.ClusterMappings)
		}
	}
	return found, nil
}
