// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// Brokers returns the peers that people have said to be brokers, in order of ID.
func Brokers(ctx context.Context, objects client.Reader) ([]cluster.Identity, error) {
	all, err := records(ctx, objects, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	var brokers []cluster.Identity
	for i := range all {
		if isSaidBroker(&all[i]) {
			brokers = append(brokers, Identity(all[i].Spec.ClusterID))
		}
	}
	slices.SortFunc(brokers, func(a, b cluster.Identity) int { return cmp.Compare(a.ID, b.ID) })
	return brokers, nil
}

// RecordOf returns Liqo's record of a peer, which may be changed; nil if there is none.
func RecordOf(ctx context.Context, objects client.Reader, id cluster.ID) (*api.ForeignCluster, error) {
	all, err := records(ctx, objects)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Spec.ClusterID == string(id) {
			return &all[i], nil
		}
	}
	return nil, nil //nolint:nilnil // That there is none is an answer.
}

// records returns Liqo's records of all peers.
func records(ctx context.Context, objects client.Reader, options ...client.ListOption) ([]api.ForeignCluster, error) {
	var all api.ForeignClusterList
	if err := objects.List(ctx, &all, options...); err != nil {
		return nil, fmt.Errorf("list ForeignClusters: %w", err)
	}
	return all.Items, nil
}

// SayBroker writes into Liqo's record of a peer that the peer is a broker, or that it is none.
func SayBroker(record client.Object, is bool) {
	annotations := maps.Clone(record.GetAnnotations())
	if !is {
		delete(annotations, annotationBroker)
	} else {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotationBroker] = marked
	}
	record.SetAnnotations(annotations)
}

// isSaidBroker reports whether people have said that a peer is a broker.
func isSaidBroker(record *api.ForeignCluster) bool {
	return record.Annotations[annotationBroker] == marked
}

const (
	// BrokerAnnotation is how people write that a peer is a broker, as kubectl annotate takes it.
	BrokerAnnotation = annotationBroker + "=" + marked
	// BrokerRecordKind are the objects on which they write it.
	BrokerRecordKind = "foreignclusters." + api.CoreGroup
)

// GrantedSlice is a ResourceSlice that has a node on its consumer.
type GrantedSlice struct {
	Name     client.ObjectKey
	Consumer cluster.ID
}

// GrantedByLiqo returns the ResourceSlices that Liqo itself has granted to consumers, in order of name. Nothing looks at their class again:
// a consumer's Liqo writes only what differs from its own, and Liqo here the status.
func GrantedByLiqo(ctx context.Context, objects client.Reader) ([]GrantedSlice, error) {
	var all api.ResourceSliceList
	if err := objects.List(ctx, &all, client.MatchingLabels{liqo.LabelReplicated: liqo.ReplicationValue}); err != nil {
		return nil, fmt.Errorf("list the ResourceSlices of consumers: %w", err)
	}
	var granted []GrantedSlice
	for i := range all.Items {
		s := &all.Items[i]
		of := GrantOf(s)
		if of.Resources.Accepted && (of.Class == "" || of.Class == api.SliceClassDefault) && s.DeletionTimestamp.IsZero() {
			granted = append(granted, GrantedSlice{client.ObjectKeyFromObject(s), cluster.ID(s.Labels[liqo.LabelOrigin])})
		}
	}
	slices.SortFunc(granted, func(a, b GrantedSlice) int { return cmp.Compare(a.Name.String(), b.Name.String()) })
	return granted, nil
}

// GrantedAlone returns the names of the ResourceSlices of this cluster that a provider has granted as Liqo does by itself, in order: it is
// no broker, or was none yet (liqo/pkg/liqo-controller-manager/authentication/remoteresourceslice-controller@v1.2.0).
func GrantedAlone(ctx context.Context, objects client.Reader, provider cluster.ID) ([]string, error) {
	const reason = "ResourceSliceResourcesAccepted"
	var all api.ResourceSliceList
	if err := objects.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("list ResourceSlices: %w", err)
	}
	var names []string
	for i := range all.Items {
		s := &all.Items[i]
		asked, of := s.Spec.ProviderClusterID, GrantOf(s).Resources
		if !FromConsumer(s) && asked != nil && *asked == string(provider) && of.Accepted && of.Reason == reason {
			names = append(names, client.ObjectKeyFromObject(s).String())
		}
	}
	slices.Sort(names)
	return names, nil
}

// SaidOtherwise returns what is written in the place of BrokerAnnotation on the records of peers, by their IDs: it says of nobody that it
// is a broker. That one is none, as "false" says, is not among it.
func SaidOtherwise(ctx context.Context, objects client.Reader) (map[cluster.ID]string, error) {
	all, err := records(ctx, objects, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	said := map[cluster.ID]string{}
	for i := range all {
		if value, is := all[i].Annotations[annotationBroker]; is && value != marked && value != "false" {
			said[cluster.ID(all[i].Spec.ClusterID)] = value
		}
	}
	return said, nil
}

// TransitKept returns what is kept for the transit, for all peers: tables of gateways, opened addresses and endpoints that providers are
// told of.
func TransitKept(ctx context.Context, objects client.Reader) ([]client.Object, error) {
	var kept []client.Object
	for _, list := range []client.ObjectList{&api.FirewallConfigurationList{}, &api.IPList{}, &discoveryv1.EndpointSliceList{}} {
		if err := objects.List(ctx, list, client.MatchingLabels{liqo.LabelBrokerManaged: liqo.BrokerManaged}); err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
		err := line.Each(list, func(o client.Object) {
			if strings.HasPrefix(o.GetName(), TransitPrefix) {
				kept = append(kept, o)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// Gateways returns the pods of Liqo's gateways to peers.
func Gateways(ctx context.Context, objects client.Reader) ([]corev1.Pod, error) {
	var gateways []corev1.Pod
	err := eachOfGateways(ctx, objects, func() client.ObjectList { return &corev1.PodList{} }, func(_ *corev1.Namespace, o client.Object) {
		if pod, is := o.(*corev1.Pod); is {
			gateways = append(gateways, *pod)
		}
	})
	return gateways, err
}

// Gateways implements line.Line: there is one for each peer. Liqo writes on none whose it is: its namespace says it.
func (Line) Gateways(ctx context.Context, objects client.Reader, _ string) ([]line.Gateway, error) {
	var gateways []line.Gateway
	list := func() client.ObjectList { return &appsv1.DeploymentList{} }
	err := eachOfGateways(ctx, objects, list, func(in *corev1.Namespace, o client.Object) {
		to, is := TenantOf(in)
		if d, may := o.(*appsv1.Deployment); is && may {
			gateways = append(gateways, line.Gateway{Deployment: *d, To: Identity(string(to))})
		}
	})
	return gateways, err
}

// OfLiqo reports whether a pod in the tenant namespace of a peer is a virtual kubelet of Liqo, or a gateway.
func OfLiqo(pod *corev1.Pod) bool {
	return pod.Labels[labelComponent] == componentKubelet || pod.Labels[labelNetworking] == componentGateway
}

// GatewayDeployment returns the name of the Deployment that keeps a gateway's pod, which is called like the gateway
// (liqo/pkg/gateway/forge/utils.go@v1.2.0).
func GatewayDeployment(pod *corev1.Pod) string { return "gw-" + pod.Labels[labelGateway] }

const (
	// labelGateway is on the pods of gateways, with the name of the gateway (liqo/deployments/liqo/templates/_helpers.tpl@v1.2.0).
	labelGateway = "networking.liqo.io/gateway-name"
	// labelNetworking is on gateways, with the value componentGateway (liqo/pkg/gateway/label.go@v1.2.0).
	labelNetworking  = "networking.liqo.io/component"
	componentGateway = "gateway"
	// GatewayLabel is the same, as kubectl takes it.
	GatewayLabel = labelNetworking + "=" + componentGateway
)

// eachOfGateways calls a function with each object of a kind that is of Liqo's gateways, and its namespace. They are in tenant namespaces:
// a consumer may put the label on its own objects.
func eachOfGateways(
	ctx context.Context, objects client.Reader, list func() client.ObjectList, do func(in *corev1.Namespace, o client.Object),
) error {
	var namespaces corev1.NamespaceList
	if err := objects.List(ctx, &namespaces, client.HasLabels{liqo.LabelTenantNamespace}); err != nil {
		return fmt.Errorf("list the tenant namespaces: %w", err)
	}
	for i := range namespaces.Items {
		all := list()
		of := client.MatchingLabels{labelNetworking: componentGateway}
		if err := objects.List(ctx, all, client.InNamespace(namespaces.Items[i].Name), of); err != nil {
			return fmt.Errorf("list the gateways in namespace %s: %w", namespaces.Items[i].Name, err)
		}
		if err := line.Each(all, func(o client.Object) { do(&namespaces.Items[i], o) }); err != nil {
			return err
		}
	}
	return nil
}
