// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// observation is what the broker sees of a provider, and what people chose for it.
type observation struct {
	scheduling v1alpha1.Scheduling
	// consumes tells that it is drained because it uses the broker.
	consumes    bool
	established bool
	// withdrawn tells that the cluster offers nothing any more.
	withdrawn bool
	// ending tells that the peering with it ends.
	ending   bool
	capacity v1alpha1.ProviderCapacity
	// unreadable says what of the capacity could not be read.
	unreadable string
	offers     []offered
	// refused are the offers that count for nothing.
	refused []snapshot.Refusal
	// namesake is the name of an older foreign cluster that Liqo cannot tell apart from
	// this one; empty if there is none.
	namesake string
	leaving  leaving
	// reachable is the condition Reachable.
	reachable metav1.Condition
	// silent is when the gateway to it said last that the tunnel is up, which it does not say any more; zero if it does.
	silent time.Time
	// used is what pods use of each of its virtual nodes.
	used map[string]corev1.ResourceList
}

// offered is one offer that is in force.
type offered struct {
	resources corev1.ResourceList
	node      string
	nodeReady bool
	// nodeUnknown is whether nobody reports how the node is.
	nodeUnknown bool
	// says is the other cluster that the node says it is of; empty if it does not.
	says cluster.ID
}

// leaving is what is left on a provider that is to be drained.
type leaving struct {
	// pods counts the pods that are still there.
	pods int
	// held are those that do not move at the moment, by namespace and name.
	held []v1alpha1.HeldPod
}

// String says how many pods are left.
func (l leaving) String() string {
	if l.pods == 1 {
		return "1 pod is left on the provider"
	}
	return fmt.Sprintf("%d pods are left on the provider", l.pods)
}

// assess returns what the provider offers to the broker on virtual nodes that are
// ready, and the Ready condition that explains it; nothing if the condition is false for
// another reason than that the provider is cordoned, which all others go before.
func assess(o observation) (corev1.ResourceList, metav1.Condition) {
	not := func(reason, message string) (corev1.ResourceList, metav1.Condition) {
		return nil, metav1.Condition{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message,
		}
	}
	var declared corev1.ResourceList // As far as it matters.
	if o.capacity.Rule == v1alpha1.CapacityDeclared || o.capacity.Rule == v1alpha1.CapacityMin {
		declared = corev1.ResourceList(o.capacity.Declared)
	}
	// What speaks against the provider as a whole, the weightiest first: people read one reason.
	switch {
	case o.ending:
		return not(v1alpha1.ReasonPeeringEnds, "One of the two clusters ends the peering, and Liqo evicts all pods")
	case o.namesake != "":
		return not(v1alpha1.ReasonClusterNameTaken, fmt.Sprintf(
			"Liqo has the same unique name for the cluster of ForeignCluster %s, which is older: the two cannot be told apart", o.namesake))
	case o.scheduling == v1alpha1.SchedulingDrained && o.leaving.pods > 0:
		return not(v1alpha1.ReasonDraining, o.leaving.String()+", which takes no new ones")
	case o.scheduling == v1alpha1.SchedulingDrained && o.consumes:
		return not(v1alpha1.ReasonDrained, "The cluster uses the broker, and provides only if somebody sets spec.scheduling to Active")
	case o.scheduling == v1alpha1.SchedulingDrained:
		return not(v1alpha1.ReasonDrained, "The provider is drained: it takes no pods, and none is left there")
	case o.withdrawn:
		return not(v1alpha1.ReasonWithdrawn, "The cluster no longer offers anything, and pods leave it")
	case !o.established:
		return not(v1alpha1.ReasonNotPeered, "The outgoing peering with the cluster is not established")
	// Nothing is offered that could be used.
	case len(o.offers) == 0 && len(o.refused) > 0:
		return not(v1alpha1.ReasonInvalidOffer, refusals(o))
	case len(o.offers) == 0:
		return not(v1alpha1.ReasonNoOffer, "The cluster has made no offer that Liqo accepted")
	case o.unreadable != "":
		return not(v1alpha1.ReasonInvalidDeclaration, "It cannot be read: "+o.unreadable)
	case resources.Validate(declared) != nil:
		return not(v1alpha1.ReasonInvalidDeclaration, "In spec.capacity.declared: "+resources.Validate(declared).Error())
	case o.capacity.Rule == v1alpha1.CapacityDeclared && len(declared) == 0:
		return not(v1alpha1.ReasonNothingDeclared, "The rule is Declared, and spec.capacity.declared is empty")
	}
	// An offer counts where its virtual node is ready.
	var sum []corev1.ResourceList
	var down []string
	for _, of := range o.offers {
		if of.nodeReady {
			sum = append(sum, of.resources)
		} else {
			down = append(down, of.node)
		}
	}
	switch slices.Sort(down); {
	case len(sum) == 0 && slices.ContainsFunc(o.offers, offered.lies):
		return not(v1alpha1.ReasonNodeRefused, refusals(o))
	case len(sum) == 0 && !slices.ContainsFunc(o.offers, offered.watched):
		return not(v1alpha1.ReasonNodeUnknown, "This cluster's virtual kubelet does not report: virtual node "+strings.Join(down, ", "))
	case len(sum) == 0:
		return not(v1alpha1.ReasonNodeNotReady, "Not ready: virtual node "+strings.Join(down, ", "))
	case !o.silent.IsZero():
		return not(v1alpha1.ReasonGatewaySilent, silence(o.silent))
	}
	// What it offers, of which a provider that is cordoned keeps what is there.
	measured := resources.Sum(sum...)
	if err := resources.Validate(measured); err != nil { // Many offers have more than one.
		return not(v1alpha1.ReasonInvalidOffer, err.Error())
	}
	if o.scheduling == v1alpha1.SchedulingCordoned {
		_, cordoned := not(v1alpha1.ReasonCordoned, "The provider is cordoned: it takes no new pods, and those that are there stay")
		return measured, cordoned
	}
	return measured, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonOffering, Message: "Workloads can be placed on the provider",
	}
}

// silence says that the gateway to a provider said last at some time that the tunnel is up.
func silence(said time.Time) string {
	return "The tunnel to the cluster is called connected, but its gateway has not said so since " + said.UTC().Format(time.RFC3339) +
		": it has stopped, or cannot write"
}

// watched reports whether somebody says how the node of an offer is.
func (of offered) watched() bool { return !of.nodeUnknown }

// lies reports whether the node of an offer says that it is another cluster's.
func (of offered) lies() bool { return of.says != "" }

// shownRefusals is how many refusals a message has.
const shownRefusals = 5

// refusals says which offers and nodes count for nothing, and why.
func refusals(o observation) string {
	var all []string
	for _, r := range o.refused {
		all = append(all, r.String())
	}
	for _, of := range o.offers {
		if of.lies() {
			all = append(all, fmt.Sprintf("node %s: it says that it is of cluster %q", of.node, of.says))
		}
	}
	return shorten(slices.Sorted(slices.Values(all)), shownRefusals)
}

// refusal returns the ObjectsRefused condition; without a status if there is nothing to
// tell.
func refusal(o observation) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionObjectsRefused, Message: refusals(o)}
	switch {
	case len(o.refused) > 0:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonInvalidOffer
	case slices.ContainsFunc(o.offers, offered.lies):
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonNodeRefused
	}
	return c
}

// shorten joins the first texts, and says how many there are besides.
func shorten(texts []string, shown int) string {
	text := strings.Join(texts[:min(len(texts), shown)], "; ")
	if more := len(texts) - shown; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// reachability returns the Reachable condition of a provider whose nodes are given. If it is
// false, it has the time since when: that of the last node that turned. A time that is
// known already stays, unless the clock was set back behind it: Liqo calls a node not ready
// for one reason after the other, and each begins again. Who only offers nothing is in reach.
//
// A node of which nobody says how it is does not count while the provider is peered: the
// virtual kubelet does not report, and looks again soon. Otherwise there is none any more.
//
// What is said of nodes that are ready counts for nothing if the gateway to the provider is silent, as which the time says: Liqo calls
// them ready for as long as it calls the tunnel connected. The provider is lost since this is noticed.
func reachability(now time.Time, known *metav1.Time, nodes []corev1.Node, peered bool, silent time.Time) metav1.Condition {
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionReachable, Status: status, Reason: reason, Message: message}
	}
	// Is one in reach, and if not, when was the last one lost?
	var since time.Time
	ready, bare := false, false
	for i := range nodes {
		ready, bare = ready || liqo.NodeReady(&nodes[i]), bare || liqo.OnlyBare(&nodes[i])
		if peered && liqo.NodeReadiness(&nodes[i]) == corev1.ConditionUnknown {
			continue
		}
		if began := liqo.NotReadySince(&nodes[i]); began.After(since) {
			since = began
		}
	}
	// What that means, and since when a provider that is lost has been.
	lost := is(metav1.ConditionFalse, v1alpha1.ReasonNodesNotReady, "No virtual node of the cluster is ready")
	switch {
	case ready && !silent.IsZero():
		lost, since = is(metav1.ConditionFalse, v1alpha1.ReasonGatewaySilent, silence(silent)), now
	case ready:
		return is(metav1.ConditionTrue, v1alpha1.ReasonNodeReady, "A virtual node of the cluster is ready")
	case bare:
		return is(metav1.ConditionTrue, v1alpha1.ReasonNothingOffered, "The cluster offers nothing any more; what runs there goes on")
	case len(nodes) == 0:
		return is(metav1.ConditionUnknown, v1alpha1.ReasonNoNode, "The cluster has no virtual node")
	case since.IsZero():
		return is(metav1.ConditionUnknown, v1alpha1.ReasonNodeUnknown, "This cluster's virtual kubelets do not report")
	}
	switch {
	case known != nil && !known.After(now):
		since = known.Time
	case since.After(now):
		since = now
	}
	lost.LastTransitionTime = metav1.Time{Time: since.Truncate(time.Second)}
	return lost
}

// account writes into the status what the provider has, and what is used of it, in mebibytes:
// what is free is not more than there is, and the difference of the two others.
func account(status *v1alpha1.ProviderStatus, o observation, measured corev1.ResourceList) {
	var used, has, free, largest corev1.ResourceList
	for _, of := range o.used {
		used = resources.Sum(used, of)
	}
	used = resources.ReadableUse(used)
	if len(measured) > 0 {
		has = resources.Readable(
			capacity.Has(rules[o.capacity.Rule], measured, corev1.ResourceList(o.capacity.Declared), o.capacity.Overcommit()),
		)
		if o.scheduling == v1alpha1.SchedulingCordoned {
			has = resources.Min(has, used)
		} else {
			largest = resources.Readable(largestPod(o, resources.Subtract(has, used)))
		}
		free = resources.Subtract(has, used)
	}
	for _, f := range []struct {
		field *corev1.ResourceList
		value corev1.ResourceList
	}{
		{&status.Measured, resources.Readable(measured)}, {&status.Offered, has}, {&status.Used, used}, {&status.Free, free},
		{&status.LargestPod, largest},
	} {
		if !resources.Identical(*f.field, f.value) {
			*f.field = f.value
		}
	}
}

// rules are the rules by the names that people use.
var rules = map[v1alpha1.CapacityRule]capacity.Rule{
	v1alpha1.CapacityMeasured: capacity.Measured,
	v1alpha1.CapacityDeclared: capacity.Declared,
	v1alpha1.CapacityMin:      capacity.Min,
}

// largestPod returns what is free on the virtual node on which the largest pod fits,
// by cpu and then by memory, and no more than what is free of the provider.
func largestPod(o observation, free corev1.ResourceList) corev1.ResourceList {
	var largest corev1.ResourceList
	for _, of := range o.offers {
		if !of.nodeReady {
			continue
		}
		room := resources.Min(resources.Subtract(of.resources, o.used[of.node]), free)
		if room.Pods().Sign() <= 0 {
			continue
		}
		delete(room, corev1.ResourcePods)
		if larger := room.Cpu().Cmp(*largest.Cpu()); largest == nil || larger > 0 || larger == 0 && room.Memory().Cmp(*largest.Memory()) > 0 {
			largest = room
		}
	}
	return largest
}

// shownHeld is how many pods a Draining message names; more make it unreadable.
const shownHeld = 5

// drain returns the conditions Draining and Drained, of which each says the contrary of the
// other while the provider is to be drained, and both are false otherwise.
func drain(o observation) (draining, drained metav1.Condition) {
	c := metav1.Condition{Type: v1alpha1.ConditionDraining, Status: metav1.ConditionFalse}
	var held []string
	for _, h := range o.leaving.held {
		held = append(held, h.String())
	}
	switch {
	case o.scheduling != v1alpha1.SchedulingDrained:
		c.Reason, c.Message = v1alpha1.ReasonNotDraining, "Pods may stay on the provider"
	case o.leaving.pods == 0:
		c.Reason, c.Message = v1alpha1.ReasonDrained, "No pod is left on the provider"
	case len(held) == 0:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonPodsLeaving
		c.Message = o.leaving.String()
	default:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonPodsHeld
		c.Message = o.leaving.String() + "; " + shorten(held, shownHeld)
	}
	drained = c
	drained.Type, drained.Status = v1alpha1.ConditionDrained, metav1.ConditionFalse
	if c.Reason == v1alpha1.ReasonDrained {
		drained.Status = metav1.ConditionTrue
	}
	return c, drained
}
