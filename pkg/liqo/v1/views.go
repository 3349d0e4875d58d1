// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/core/views"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

const (
	// annotationBroker is on the ForeignClusters of peers that are brokers: people put it there.
	annotationBroker = "brokering.liqo.io/broker"
	// annotationViews is on the Configurations of brokers, with what has to be known again of their views, as JSON.
	annotationViews = "brokering.liqo.io/views"
	// labelComponent is on virtual kubelets, with the value componentKubelet (liqo/pkg/vkMachinery@v1.2.0).
	labelComponent   = "offloading.liqo.io/component"
	componentKubelet = "virtual-kubelet"
)

// BrokerViews is what there is on a consumer of the views of one broker.
type BrokerViews struct {
	// Broker is the broker, and Tenant the namespace here of what concerns it.
	Broker cluster.ID
	Tenant string
	// State is all but what the program itself has to know: Looked and Now.
	State views.State
	// Unreadable is why what the broker grants cannot be read, by keys.
	Unreadable map[string]string
	// configuration has the list.
	configuration *api.Configuration
}

// BrokerViewsIn returns what there is of the views of a broker whose Configuration has a name; nil if it is none of a broker. Objects are
// those of this cluster, which is called own.
func BrokerViewsIn(ctx context.Context, objects client.Reader, own cluster.ID, name client.ObjectKey) (*BrokerViews, error) {
	// Which broker.
	var c api.Configuration
	if err := objects.Get(ctx, name, &c); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	broker := leadsTo(c.Labels)
	all, err := records(ctx, objects, client.UnsafeDisableDeepCopy)
	if err != nil || !c.DeletionTimestamp.IsZero() || !slices.ContainsFunc(all, func(r api.ForeignCluster) bool {
		return r.Spec.ClusterID == string(broker) && isSaidBroker(&r) && concerns(c.Namespace, &r)
	}) {
		return nil, err
	}
	b := &BrokerViews{Broker: broker, Tenant: c.Namespace, configuration: &c}

	// What it grants, and what is listed.
	if err := b.readList(ctx, objects, own); err != nil {
		return nil, err
	}

	// What must not be taken for it, and what has read it.
	if err := b.readTaken(ctx, objects); err != nil {
		return nil, err
	}
	return b, b.readPods(ctx, objects)
}

// readList notes what the broker grants to this cluster, which is called own, and what of that is listed.
func (b *BrokerViews) readList(ctx context.Context, objects client.Reader, own cluster.ID) error {
	c := b.configuration
	var slicesOf api.ResourceSliceList
	if err := objects.List(ctx, &slicesOf, client.InNamespace(c.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list ResourceSlices in namespace %s: %w", c.Namespace, err)
	}
	b.State.Granted, b.Unreadable = grantedViews(slicesOf.Items, b.Broker, own)
	b.State.Networks, b.State.Generation = listedNetworks(c), c.Generation
	b.State.Observed, b.State.Decided = observed(c), isDecided(c)
	if err := json.Unmarshal([]byte(c.Annotations[annotationViews]), &b.State.Record); err != nil {
		b.State.Record = views.Record{} // Nobody knows anything: virtual kubelets are replaced rather than believed.
	}
	return nil
}

// concerns reports whether a namespace here is that of what concerns a peer: another peer may write into its own namespace what looks like
// it. Where Liqo does not say which one it is, there are no credentials by which anything could be told to the peer.
func concerns(namespace string, record *api.ForeignCluster) bool {
	local := record.Status.TenantNamespace.Local
	return local == "" || local == namespace
}

// isBroker reports whether people have said that a peer is a broker.
func isBroker(ctx context.Context, objects client.Reader, id cluster.ID) (bool, error) {
	all, err := records(ctx, objects, client.UnsafeDisableDeepCopy)
	return slices.ContainsFunc(all, func(r api.ForeignCluster) bool {
		return r.Spec.ClusterID == string(id) && isSaidBroker(&r)
	}), err
}

// grantedViews returns what a broker grants by all ResourceSlices of this cluster in its tenant namespace: they have the same views, or
// those of one provider each.
func grantedViews(all []api.ResourceSlice, broker, own cluster.ID) (granted map[string]netip.Prefix, unreadable map[string]string) {
	labels := map[string]string{}
	for i := range all {
		s := &all[i]
		if FromConsumer(s) || !s.DeletionTimestamp.IsZero() || CheckSlice(s, broker, own) != nil {
			continue
		}
		for name, value := range s.Status.NodeLabels {
			labels[name] = max(labels[name], value) // While one is told and the other not yet, any will do: the next look sees it.
		}
	}
	return liqo.ViewsOf(labels)
}

// listedNetworks returns the networks of pods that are reached through a peer.
func listedNetworks(c *api.Configuration) []addressing.View {
	seen := remapped(c).Pod
	var all []addressing.View
	for i, text := range c.Spec.Remote.CIDR.Pod {
		own, err := netip.ParsePrefix(text)
		if err != nil {
			continue // Liqo does not take it either.
		}
		v := addressing.View{Own: own}
		if i < len(seen) {
			if v.Seen, err = netip.ParsePrefix(seen[i]); err != nil {
				v.Seen = netip.Prefix{}
			}
		}
		all = append(all, v)
	}
	return all
}

// isDecided reports whether Liqo has decided about all networks of a Configuration as it is
// (AreConfigurationNetworkCIDRsConfigured in liqo/pkg/liqo-controller-manager/networking/utils@v1.2.0).
func isDecided(c *api.Configuration) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, api.NetworkCIDRsConfigured) && observed(c) == c.Generation &&
		len(remapped(c).Pod) == len(c.Spec.Remote.CIDR.Pod)
}

// observed returns the generation of a Configuration about which Liqo has said last whether it has decided; zero if it never has.
func observed(c *api.Configuration) int64 {
	if said := meta.FindStatusCondition(c.Status.Conditions, api.NetworkCIDRsConfigured); said != nil {
		return said.ObservedGeneration
	}
	return 0
}

// readTaken notes the networks of this cluster, and those under which other peers are seen.
func (b *BrokerViews) readTaken(ctx context.Context, objects client.Reader) error {
	own, err := ownPrefixes(ctx, objects)
	if err != nil {
		return err
	}
	others, err := configurationsIn(ctx, objects)
	if err != nil {
		return err
	}
	for _, of := range ownNetworkTypes() {
		b.State.Taken = append(b.State.Taken, own[of]...)
	}
	for i := range others {
		if c := &others[i]; client.ObjectKeyFromObject(c) != client.ObjectKeyFromObject(b.configuration) {
			b.State.Taken = append(b.State.Taken, seenPrefixes(c)...)
		}
	}
	b.State.Taken = append(b.State.Taken, prefixesOf(remapped(b.configuration).External...)...)
	return nil
}

// readPods notes the virtual kubelets of the broker's nodes, the addresses of the pods on them, and those of this cluster's own nodes.
func (b *BrokerViews) readPods(ctx context.Context, objects client.Reader) error {
	var nodes api.VirtualNodeList
	if err := objects.List(ctx, &nodes, client.InNamespace(b.Tenant), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list VirtualNodes in namespace %s: %w", b.Tenant, err)
	}
	on := map[string]bool{}
	for i := range nodes.Items {
		on[nodes.Items[i].Name] = nodes.Items[i].Spec.ClusterID == string(b.Broker)
	}
	var pods corev1.PodList
	if err := objects.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Pods: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		switch {
		case pod.Namespace == b.Tenant && pod.Labels[labelComponent] == componentKubelet:
			if pod.DeletionTimestamp.IsZero() {
				b.State.Kubelets = append(b.State.Kubelets, views.Kubelet{
					Name: pod.Name, Made: pod.CreationTimestamp.Time, Ready: podstate.Ready(pod),
				})
			}
		case on[pod.Spec.NodeName]:
			for _, ip := range pod.Status.PodIPs {
				if a, err := netip.ParseAddr(ip.IP); err == nil {
					b.State.Shown = append(b.State.Shown, a)
				}
			}
		}
	}
	return b.noteHosts(ctx, objects, pods.Items)
}

// noteHosts notes the addresses of nodes, as pods tell them, but for those in networks that Liqo knows as ones of this cluster: what
// overlaps these it shows under another prefix.
func (b *BrokerViews) noteHosts(ctx context.Context, objects client.Reader, pods []corev1.Pod) error {
	hosts := map[netip.Addr]bool{}
	for i := range pods {
		for _, ip := range pods[i].Status.HostIPs {
			if a, err := netip.ParseAddr(ip.IP); err == nil {
				hosts[a] = true
			}
		}
	}
	var networks api.NetworkList
	if err := objects.List(ctx, &networks, client.HasLabels{api.LabelNetworkType}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the networks of this cluster: %w", err)
	}
	var known []netip.Prefix
	for i := range networks.Items {
		known = append(known, prefixesOf(networks.Items[i].Status.CIDR)...)
	}
	for _, host := range slices.SortedFunc(maps.Keys(hosts), netip.Addr.Compare) {
		if !slices.ContainsFunc(known, func(p netip.Prefix) bool { return p.Contains(host) }) {
			b.State.Hosts = append(b.State.Hosts, host)
		}
	}
	return nil
}

// Planned returns the Configuration as it is and as a plan wants it; the latter is nil if it is so already. Whoever writes it must see that
// nobody has written in between.
func (b *BrokerViews) Planned(p *views.Plan) (before, planned client.Object, err error) {
	record, err := json.Marshal(p.Record)
	if err != nil {
		return nil, nil, fmt.Errorf("write what is known of the views: %w", err)
	}
	list := make([]string, len(p.List))
	for i, prefix := range p.List {
		list[i] = prefix.String()
	}
	was := b.configuration
	if len(list) == 0 || slices.Equal(was.Spec.Remote.CIDR.Pod, list) && was.Annotations[annotationViews] == string(record) {
		return was, nil, nil
	}
	is := was.DeepCopy()
	is.Spec.Remote.CIDR.Pod = list
	if is.Annotations == nil {
		is.Annotations = map[string]string{}
	}
	is.Annotations[annotationViews] = string(record)
	return was, is, nil
}

// NewConfiguration returns an empty Configuration, for who watches them.
func NewConfiguration() client.Object { return &api.Configuration{} }

// ViewKinds returns the kinds whose objects say what becomes of views, besides Configurations and Pods.
func ViewKinds() []client.Object {
	return []client.Object{&api.ForeignCluster{}, &api.ResourceSlice{}, &api.VirtualNode{}, &api.Network{}}
}

// BrokerNetworks returns the names of the Configurations in which views of brokers may be listed.
func BrokerNetworks(ctx context.Context, objects client.Reader) ([]client.ObjectKey, error) {
	all, err := configurationsIn(ctx, objects)
	if err != nil {
		return nil, err
	}
	names := make([]client.ObjectKey, len(all))
	for i := range all {
		names[i] = client.ObjectKeyFromObject(&all[i])
	}
	return names, nil
}

// IdentityAt returns the Secret with this cluster's credentials at a broker, by its name here, and the namespace there that the broker has
// for it. Both are empty until Liqo has them.
func IdentityAt(
	ctx context.Context, objects client.Reader, broker cluster.ID, tenant string,
) (secret client.ObjectKey, at string, err error) {
	var all api.IdentityList
	if err := objects.List(ctx, &all, client.InNamespace(tenant), client.UnsafeDisableDeepCopy); err != nil {
		return client.ObjectKey{}, "", fmt.Errorf("list Identities in namespace %s: %w", tenant, err)
	}
	for i := range all.Items {
		id := &all.Items[i]
		ref := id.Status.KubeconfigSecretRef
		if id.Spec.ClusterID == string(broker) && id.Spec.Type == api.IdentityControlPlane && ref != nil && id.Spec.Namespace != nil {
			return client.ObjectKey{Namespace: tenant, Name: ref.Name}, *id.Spec.Namespace, nil
		}
	}
	return client.ObjectKey{}, "", nil
}

// KubeconfigOf returns what reaches another cluster, as Liqo keeps it in a Secret.
func KubeconfigOf(secret *corev1.Secret) []byte { return secret.Data[kubeconfigField] }

// kubeconfigField is where it is (liqo/pkg/consts/authentication.go@v1.2.0).
const kubeconfigField = "kubeconfig"

// Links returns the networks towards all peers.
func Links(ctx context.Context, objects client.Reader) ([]liqo.Link, error) {
	return reader{objects: objects}.Links(ctx)
}
