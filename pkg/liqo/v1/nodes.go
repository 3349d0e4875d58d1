// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
	"github.com/capacitorset/liqo-broker/pkg/core/nodes"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// annotationNode is on the ResourceSlices that the agent of a consumer makes, with the provider whose node it is.
const annotationNode = "brokering.liqo.io/node"

// fieldNode is by which the API server finds pods that are bound to a node.
const fieldNode = "spec.nodeName"

// BrokerNodes is what there is on a consumer of the nodes of single providers of one broker.
type BrokerNodes struct {
	// Broker is the broker.
	Broker cluster.ID
	// State is all but what the program itself has to know: Unwanted and Now.
	State nodes.State
	// tenant is the namespace here of what concerns the broker, and slices the ResourceSlices by which it is asked, by name.
	tenant string
	slices map[string]*api.ResourceSlice
}

// BrokerNodesOf returns what there is of the nodes of a broker of which Liqo has a record of a name; nil if it is no broker.
// Objects are those of this cluster, which is called own.
func BrokerNodesOf(ctx context.Context, objects client.Reader, own cluster.ID, record string) (*BrokerNodes, error) {
	var fc api.ForeignCluster
	if err := objects.Get(ctx, client.ObjectKey{Name: record}, &fc); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !isSaidBroker(&fc) || !fc.DeletionTimestamp.IsZero() {
		return nil, nil //nolint:nilnil // That there is none is an answer.
	}
	b := &BrokerNodes{Broker: cluster.ID(fc.Spec.ClusterID), tenant: fc.Status.TenantNamespace.Local, slices: map[string]*api.ResourceSlice{}}
	b.State = nodes.State{
		Broker: b.Broker, Own: own, Wanted: map[string]cluster.ID{}, Asked: map[string]nodes.Asked{}, Taken: map[string]string{},
	}

	// What the broker tells, by whatever it is asked, and what is asked.
	var all api.ResourceSliceList
	if err := objects.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ResourceSlices: %w", err)
	}
	for i := range all.Items {
		b.read(&all.Items[i])
	}

	// Who else has the name of a node, and where pods are.
	var virtual api.VirtualNodeList
	if err := objects.List(ctx, &virtual, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list VirtualNodes: %w", err)
	}
	for i := range virtual.Items {
		if n := &virtual.Items[i]; b.State.Taken[n.Name] == "" {
			b.State.Taken[n.Name] = "VirtualNode " + n.Namespace + "/" + n.Name
		}
	}
	var pods corev1.PodList
	if err := objects.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Pods: %w", err)
	}
	for i := range pods.Items {
		if on, is := b.State.Asked[pods.Items[i].Spec.NodeName]; is && !IsOfDaemonSet(&pods.Items[i]) {
			on.Pods = true
			b.State.Asked[pods.Items[i].Spec.NodeName] = on
		}
	}
	return b, nil
}

// read notes what a ResourceSlice says.
func (b *BrokerNodes) read(s *api.ResourceSlice) {
	asks := s.Namespace == b.tenant && !FromConsumer(s) && CheckSlice(s, b.Broker, b.State.Own) == nil
	switch {
	case asks && s.Labels[liqo.LabelBrokerManaged] == liqo.BrokerManaged && s.Annotations[annotationNode] != "":
		b.slices[s.Name] = s
		b.State.Asked[s.Name] = nodes.Asked{Ending: !s.DeletionTimestamp.IsZero()}
		return
	case s.Namespace == b.tenant || !FromConsumer(s): // Liqo makes a node of one alone of a name.
		b.State.Taken[s.Name] = "ResourceSlice " + s.Namespace + "/" + s.Name
	}
	if _, ofProvider := nodename.MarkOf(s.Name); !asks || ofProvider || !s.DeletionTimestamp.IsZero() {
		return
	}
	if decided := decision(s, api.SliceResources); decided.Accepted || decided.Denied {
		b.State.Told = true
		maps.Copy(b.State.Wanted, liqo.NodesOf(s.Status.NodeLabels))
	}
}

// IsOfDaemonSet reports whether a DaemonSet keeps a pod. No node is kept for it: nobody can have it go before the node.
func IsOfDaemonSet(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

// HoldNode reports whether a node is kept for pods that are bound to it, given what reads past all caches.
func HoldNode(ctx context.Context, live client.Reader, node string) (bool, error) {
	var pods corev1.PodList
	if err := live.List(ctx, &pods, client.MatchingFields{fieldNode: node}); err != nil {
		return false, fmt.Errorf("list the pods on node %s: %w", node, err)
	}
	for i := range pods.Items {
		if !IsOfDaemonSet(&pods.Items[i]) {
			return true, nil
		}
	}
	return false, nil
}

// Asking returns how the broker is asked for the node of a provider, and how it is to be asked: before is nil if it is not asked yet, and
// wanted if it is asked well already. How much is asked for is left to people, and else to the broker.
func (b *BrokerNodes) Asking(name string, provider cluster.ID) (before, wanted client.Object) {
	was := b.slices[name]
	is := &api.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: b.tenant, Name: name}}
	if was != nil {
		is = was.DeepCopy()
	} else {
		is.Spec.ConsumerClusterID, is.Spec.ProviderClusterID = new(string(b.State.Own)), new(string(b.Broker))
	}
	is.Spec.Class = api.SliceClassBroker
	// What liqoctl writes (MutateResourceSlice in liqo/pkg/liqo-controller-manager/authentication/forge@v1.2.0), and whose it is.
	for label, value := range map[string]string{
		liqo.LabelReplication: liqo.ReplicationValue, liqo.LabelDestination: string(b.Broker), liqo.LabelRemoteClusterID: string(b.Broker),
		liqo.LabelBrokerManaged: liqo.BrokerManaged,
	} {
		metav1.SetMetaDataLabel(&is.ObjectMeta, label, value)
	}
	metav1.SetMetaDataAnnotation(&is.ObjectMeta, api.AnnotationCreateNode, marked)
	metav1.SetMetaDataAnnotation(&is.ObjectMeta, annotationNode, string(provider))
	switch {
	case was == nil:
		return nil, is
	case was.Spec.Class == is.Spec.Class && maps.Equal(was.Labels, is.Labels) && maps.Equal(was.Annotations, is.Annotations):
		return was, nil
	default:
		return was, is
	}
}

// Asked returns the ResourceSlice by which the broker is asked for a node; nil if it is not.
func (b *BrokerNodes) Asked(name string) client.Object {
	if s, is := b.slices[name]; is {
		return s
	}
	return nil
}

// NodeKinds returns the kinds whose objects say what becomes of the nodes of single providers, besides the records of peers and Pods.
func NodeKinds() []client.Object { return []client.Object{&api.ResourceSlice{}, &api.VirtualNode{}} }

// NewRecord returns an empty record of a peer, for who watches them.
func NewRecord() client.Object { return &api.ForeignCluster{} }

// BrokerRecords returns the names of the records of brokers.
func BrokerRecords(ctx context.Context, objects client.Reader) ([]client.ObjectKey, error) {
	all, err := records(ctx, objects, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	var names []client.ObjectKey
	for i := range all {
		if isSaidBroker(&all[i]) {
			names = append(names, client.ObjectKeyFromObject(&all[i]))
		}
	}
	return names, nil
}
