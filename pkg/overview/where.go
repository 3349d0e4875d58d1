// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/binding"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// Placed is where one pod runs. What is not known is empty.
type Placed struct {
	// Namespace and Pod are how the consumer calls it.
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	// Consumer is whose pod it is; empty on the consumer itself.
	Consumer *Cluster `json:"consumer,omitempty"`
	// Twin is the namespace on the broker; empty on the consumer.
	Twin string `json:"twin,omitempty"`
	// Provider is nil while the pod is on none, and where the broker hides it.
	Provider *Cluster `json:"provider,omitempty"`
	// Path is by which path the consumer reaches it: direct or relay.
	Path    string `json:"path,omitempty"`
	Node    string `json:"node,omitempty"`
	Address string `json:"address,omitempty"`
	Status  string `json:"status"`
	Ready   bool   `json:"ready"`
	// Since is since when it is on its node or, on the consumer, since when by its path.
	Since metav1.Time `json:"since,omitzero"`
	// Object is the pod, as it was given.
	Object *corev1.Pod `json:"-"`
}

// Cluster is what a cluster is called.
type Cluster struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

func (c *Cluster) called() string {
	switch {
	case c == nil:
		return ""
	case c.Name != "":
		return c.Name
	default:
		return c.ID
	}
}

// OnBroker is what a broker's cluster has of consumers' pods.
type OnBroker struct {
	Providers  []v1alpha1.Provider
	Consumers  []v1alpha1.Consumer
	Namespaces []corev1.Namespace
	Nodes      []corev1.Node
	Pods       []corev1.Pod
}

// Placed returns where the pods are of a namespace, which is meant by its name on the broker or on its consumer; of all
// namespaces without a name.
func (o *OnBroker) Placed(namespace string) []Placed {
	providers, consumers := map[string]*Cluster{}, map[string]*Cluster{}
	for i := range o.Providers {
		p := &o.Providers[i]
		providers[p.Name] = &Cluster{ID: p.Name, Name: p.Status.ClusterName}
	}
	for i := range o.Consumers {
		c := &o.Consumers[i]
		consumers[c.Name] = &Cluster{ID: c.Name, Name: c.Status.ClusterName}
	}
	// A virtual node of a cluster that is no provider any more is still shown, by its ID.
	nodes := map[string]*Cluster{}
	for i := range o.Nodes {
		if id := liqo.NodeCluster(&o.Nodes[i]); id != "" {
			nodes[o.Nodes[i].Name] = cmp.Or(providers[string(id)], &Cluster{ID: string(id)})
		}
	}
	// Which namespaces are meant: one of the same name may be on several consumers.
	type twin struct {
		of   *Cluster
		name string
	}
	twins := map[string]twin{}
	for i := range o.Namespaces {
		if ns := &o.Namespaces[i]; called(ns, namespace) {
			id, _ := liqo.TwinOf(ns)
			twins[ns.Name] = twin{cmp.Or(consumers[string(id)], &Cluster{ID: string(id)}), liqo.OriginalName(ns)}
		}
	}
	// The pods in them that consumers have offloaded, and that have not ended.
	all := []Placed{}
	for i := range o.Pods {
		pod := &o.Pods[i]
		t, is := twins[pod.Namespace]
		if !is || podstate.Ended(pod) || !liqo.ShadowPodSelector().Matches(labels.Set(pod.Labels)) {
			continue
		}
		placed := placedOf(pod, boundSince(pod))
		placed.Consumer, placed.Namespace, placed.Twin, placed.Provider = t.of, t.name, pod.Namespace, nodes[pod.Spec.NodeName]
		all = append(all, placed)
	}
	return order(all)
}

// Whys returns what says why a pod waits, or why it stays where it is not to be. It says nothing of a pod of which nothing tells that.
func (o *OnBroker) Whys() func(*Placed) string {
	held := map[[2]string]string{}
	for i := range o.Providers {
		p := &o.Providers[i]
		if p.EffectiveScheduling() != v1alpha1.SchedulingDrained {
			continue // The status is of before.
		}
		for _, h := range p.Status.Held {
			held[[2]string{h.Namespace, h.Pod}] = "The provider is to be drained, and the pod stays: " + h.Reason
		}
	}
	return func(p *Placed) string { return cmp.Or(unscheduled(p.Object), held[[2]string{p.Twin, p.Pod}]) }
}

// unscheduled returns what the scheduler says of a pod that it has not placed.
func unscheduled(pod *corev1.Pod) string {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// Followed returns which of some policies the namespaces of consumers follow, by their names here. Those that follow none are missing. Pods
// wish for policies by labels, which they have from their ShadowPods.
func (o *OnBroker) Followed(policies []v1alpha1.PlacementPolicy) map[string]string {
	rules := snapshot.Rules(policies)
	wishes := map[string]map[string]bool{}
	for i := range o.Pods {
		pod := &o.Pods[i]
		wish := pod.Labels[liqo.LabelPolicy]
		if wish == "" || !liqo.ShadowPodSelector().Matches(labels.Set(pod.Labels)) {
			continue
		}
		if wishes[pod.Namespace] == nil {
			wishes[pod.Namespace] = map[string]bool{}
		}
		wishes[pod.Namespace][wish] = true
	}
	followed := map[string]string{}
	for i := range o.Namespaces {
		ns := &o.Namespaces[i]
		consumer, is := liqo.TwinOf(ns)
		if !is {
			continue
		}
		twin := binding.Twin{Consumer: consumer, OriginalName: liqo.OriginalName(ns), Labels: ns.Labels, Wishes: wishes[ns.Name]}
		if policy := binding.Follows(rules, twin); policy != "" {
			followed[ns.Name] = policy
		}
	}
	return followed
}

// Has reports whether a consumer has a namespace of a name, here or on its own cluster. All namespaces, without a name, are there.
func (o *OnBroker) Has(namespace string) bool {
	return namespace == "" || slices.ContainsFunc(o.Namespaces, func(ns corev1.Namespace) bool { return called(&ns, namespace) })
}

// called reports whether a namespace is a consumer's, and is meant by a name; empty means all.
func called(ns *corev1.Namespace, name string) bool {
	_, is := liqo.TwinOf(ns)
	return is && (name == "" || name == ns.Name || name == liqo.OriginalName(ns))
}

// OnConsumer returns where the pods are that run on virtual nodes of a broker, given how the consumer reaches pods at its brokers, its
// nodes and pods, and the clusters that it is peered with.
func OnConsumer(ways *liqo.Ways, nodes []corev1.Node, pods []corev1.Pod, peers []cluster.Identity) []Placed {
	names := map[cluster.ID]string{}
	for _, peer := range peers {
		names[peer.ID] = peer.Name
	}
	virtual := map[string]*corev1.Node{}
	for i := range nodes {
		if ways.IsOfBroker(&nodes[i]) {
			virtual[nodes[i].Name] = &nodes[i]
		}
	}
	all := []Placed{}
	for i := range pods {
		pod := &pods[i]
		node := virtual[pod.Spec.NodeName]
		if node == nil || podstate.Ended(pod) {
			continue
		}
		way := ways.To(pod, node)
		placed := placedOf(pod, boundSince(pod))
		if placed.Path = way.Path; !way.Since.IsZero() {
			placed.Since = metav1.NewTime(way.Since)
		}
		if by := way.Provider; by.ID != "" {
			// What a peer calls itself here counts for more than what the broker says.
			placed.Provider = &Cluster{ID: string(by.ID), Name: cmp.Or(names[by.ID], by.Name)}
		}
		all = append(all, placed)
	}
	return order(all)
}

func placedOf(pod *corev1.Pod, at metav1.Time) Placed {
	status := string(pod.Status.Phase)
	switch {
	case pod.DeletionTimestamp != nil:
		status = "Terminating"
	case pod.Spec.NodeName == "":
		status = "Waiting"
	}
	return Placed{
		Namespace: pod.Namespace, Pod: pod.Name, Node: pod.Spec.NodeName, Address: pod.Status.PodIP, Status: status,
		Ready: podstate.Ready(pod), Since: at, Object: pod,
	}
}

// boundSince returns since when a pod is bound to its node; the zero time if it is not.
func boundSince(pod *corev1.Pod) metav1.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime
		}
	}
	return metav1.Time{}
}

func order(all []Placed) []Placed {
	slices.SortFunc(all, func(a, b Placed) int {
		return cmp.Or(cmp.Compare(a.Consumer.called(), b.Consumer.called()), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Twin, b.Twin), cmp.Compare(a.Pod, b.Pod))
	})
	return all
}

// Pods returns a row for each pod, in their order: with the consumer on the broker, and with the path on a consumer.
func Pods(now time.Time, pods []Placed, broker bool) *metav1.Table {
	usual := func(name string, cell func(*Placed) string) sheet.Column[Placed] {
		return sheet.Column[Placed]{Name: name, Cell: cell}
	}
	wide := func(name string, cell func(*Placed) string) sheet.Column[Placed] {
		return sheet.Column[Placed]{Name: name, Wide: true, Cell: cell}
	}
	namespace, pod := usual("Namespace", func(p *Placed) string { return p.Namespace }), usual("Pod", func(p *Placed) string { return p.Pod })
	provider := usual("Provider", func(p *Placed) string { return p.Provider.called() })
	status, ready := usual("Status", func(p *Placed) string { return p.Status }),
		usual("Ready", func(p *Placed) string { return map[bool]string{true: "True", false: "False"}[p.Ready] })
	address, at := usual("Address", func(p *Placed) string { return p.Address }),
		usual("Since", func(p *Placed) string { return sheet.Since(now, p.Since) })
	node := wide("Node", func(p *Placed) string { return p.Node })
	if !broker {
		path := usual("Path", func(p *Placed) string { return p.Path })
		return sheet.Table(pods, []sheet.Column[Placed]{namespace, pod, provider, path, status, ready, address, at, node})
	}
	consumer := usual("Consumer", func(p *Placed) string { return p.Consumer.called() })
	twin := wide("Here", func(p *Placed) string { return p.Twin })
	return sheet.Table(pods, []sheet.Column[Placed]{consumer, namespace, pod, provider, status, ready, address, at, node, twin})
}
