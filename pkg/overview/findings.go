// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// Finding is something that should be looked at.
type Finding struct {
	// Problem is false where it may be meant to be so.
	Problem bool   `json:"problem"`
	What    string `json:"what"`
	Do      string `json:"do"`
}

// remedy is what to do about a reason of a condition; the zero remedy is nothing.
type remedy struct {
	problem bool
	do      string
}

func problem(do string) remedy { return remedy{true, do} }
func hint(do string) remedy    { return remedy{false, do} }

const lookAtLog = "The log of the broker may say why: kubectl logs -n liqo-broker deploy/liqo-broker"

// providerRemedies are by the reason of the condition Ready of a provider; those reasons are missing that people have chosen.
func providerRemedies(p *v1alpha1.Provider, look *Commands) map[string]remedy {
	peering := "Look at the peering: " + look.Peering(p.Status.ClusterName)
	change := "kubectl edit provider.brokering.liqo.io " + p.Name
	return map[string]remedy{
		v1alpha1.ReasonNotPeered:   hint("Peer with it again, or, if it is not to return: kubectl delete provider.brokering.liqo.io " + p.Name),
		v1alpha1.ReasonPeeringEnds: hint("Wait until the peering has ended; pods are recreated elsewhere"),
		v1alpha1.ReasonNoOffer:     problem(peering + ". It may offer nothing, or Liqo has not accepted the offer: " + look.Offers),
		v1alpha1.ReasonInvalidOffer: problem(
			"Only its administrator can correct the offer: kubectl describe provider.brokering.liqo.io " + p.Name,
		),
		v1alpha1.ReasonInvalidDeclaration: problem("Correct spec.capacity.declared: " + change),
		v1alpha1.ReasonNothingDeclared:    problem("Declare what it has in spec.capacity.declared, or use another rule: " + change),
		v1alpha1.ReasonNodeNotReady:       problem(peering + ", and whether it can be reached"),
		v1alpha1.ReasonNodeUnknown: problem("Look at the virtual kubelet on this cluster, in the tenant namespace of the provider: " +
			look.kubelets),
		v1alpha1.ReasonGatewaySilent: problem(
			"Look at Liqo's gateway to it on this cluster, in its tenant namespace: kubectl liqo-broker diagnose",
		),
		v1alpha1.ReasonNodeRefused: problem(
			"Look at the labels of its virtual node: kubectl describe provider.brokering.liqo.io " + p.Name,
		),
		v1alpha1.ReasonWithdrawn:        hint("It has withdrawn its offer, and pods leave it; ask its administrator whether that is meant"),
		v1alpha1.ReasonClusterNameTaken: problem("One of the two clusters must get another name at Liqo, and peer again"),
		v1alpha1.ReasonCordoned:         {}, v1alpha1.ReasonDraining: {}, v1alpha1.ReasonDrained: {},
	}
}

func consumerRemedies(c *v1alpha1.Consumer, look *Commands) map[string]remedy {
	change := "kubectl edit consumer.brokering.liqo.io " + c.Name
	return map[string]remedy{
		v1alpha1.ReasonNotPeered:      hint("It has left. If it is not to return: kubectl delete consumer.brokering.liqo.io " + c.Name),
		v1alpha1.ReasonPeeringEnds:    hint("Wait until the peering has ended"),
		v1alpha1.ReasonPeeringPending: hint("Wait a moment. If it stays so: Look at the peering: " + look.Peering(c.Status.ClusterName)),
		v1alpha1.ReasonNoProvider: problem(
			"See which providers can be used, and what policies and limits leave: kubectl liqo-broker providers",
		),
		v1alpha1.ReasonModeNotServed: problem(
			"Let the broker run the mode (--with-orchestrator, --with-aggregator), or change spec.mode: " + change,
		),
		v1alpha1.ReasonClusterNameTaken: problem("One of the two clusters must get another name at Liqo, and peer again"),
		v1alpha1.ReasonSuspended:        {},
	}
}

// Argument returns the name of a cluster for a command that people copy: one that a shell would understand otherwise is left out.
func Argument(name string) string {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "NAME"
	}
	return name
}

// findings returns what should be looked at, problems first.
func findings(o Observed) []Finding {
	look := CommandsOf(o.Liqo)
	all := []Finding{}
	all = append(all, ofBroker(o.broker())...)
	all = append(all, OfGateways(o.Gateways)...)
	if len(o.Providers) == 0 {
		all = append(all, Finding{What: "No cluster provides", Do: "Peer with one: " + look.Peer})
	}
	for i := range o.Providers {
		all = append(all, ofProvider(&o.Providers[i], &look)...)
	}
	if len(o.Consumers) == 0 {
		all = append(all, Finding{What: "No cluster consumes", Do: "Let one peer with the broker: " + look.Peer})
	}
	for i := range o.Consumers {
		all = append(all, ofConsumer(&o.Consumers[i], &look)...)
	}
	for i := range o.Offers {
		all = append(all, ofOffer(&o.Offers[i])...)
	}
	// What people have asked the broker for, and it cannot do.
	for i := range o.Policies {
		all = append(all, ofPolicy(&o.Policies[i])...)
	}
	for i := range o.Queries {
		q := &o.Queries[i]
		if c := meta.FindStatusCondition(q.Status.Conditions, v1alpha1.ConditionMeasured); c != nil && c.Status == metav1.ConditionFalse {
			all = append(all, found("Query "+q.Name, c,
				problem("See what Prometheus answers, and correct the query: kubectl edit providerquery.brokering.liqo.io "+q.Name)))
		}
	}
	// Problems come first, each kind in the order above.
	slices.SortStableFunc(all, func(a, b Finding) int {
		switch {
		case a.Problem == b.Problem:
			return 0
		case a.Problem:
			return -1
		default:
			return 1
		}
	})
	return all
}

func ofBroker(b Broker) []Finding {
	switch {
	case !b.Installed:
		return []Finding{
			{true, "There is no Deployment liqo-broker in namespace liqo-broker", "Install the broker, or finish it: kubectl liqo-broker install"},
		}
	case b.Wanted == 0:
		return []Finding{
			{true, "The broker is scaled to zero: nothing is decided", "Start it: kubectl scale -n liqo-broker deploy/liqo-broker --replicas=1"},
		}
	case b.Ready < b.Wanted:
		return []Finding{
			{
				true, fmt.Sprintf("%d of %d replicas of the broker are ready", b.Ready, b.Wanted),
				"See why: kubectl describe pods -n liqo-broker. " + lookAtLog,
			},
		}
	case len(b.Modes) == 0:
		return []Finding{
			{true, "The broker has no mode among its flags", "Give it one of --with-catalog, --with-orchestrator and --with-aggregator"},
		}
	default:
		return nil
	}
}

// OfGateways returns what is wrong with Liqo's gateways: one for all peers, or one for each. Only a gateway itself writes how its tunnels
// are: while it does not run, Liqo goes on calling them connected, and with them nodes ready and providers reachable.
func OfGateways(gateways []line.Gateway) []Finding {
	var all []Finding
	for i := range gateways {
		g := &gateways[i]
		r := replicasOf(&g.Deployment)
		if r.Ready > 0 {
			continue
		}
		// With which clusters nobody speaks now, and how to see why. One for a single peer has several containers, in a namespace that has no
		// pods but those of Liqo.
		to, follows := "", "no tunnel works and nothing is relayed, though tunnels are called connected and providers reachable"
		do := fmt.Sprintf("See why: kubectl logs -n %[1]s deploy/%[2]s --previous; kubectl describe deployment -n %[1]s %[2]s",
			g.Namespace, g.Name)
		if g.To != (cluster.Identity{}) {
			to, follows = " to "+g.To.String(), "its tunnel does not work and nothing is relayed to or from the cluster, though the tunnel "+
				"may be called connected, and the cluster reachable"
			do = fmt.Sprintf("See why: kubectl describe pods -n %[1]s; kubectl logs -n %[1]s deploy/%[2]s --all-containers", g.Namespace, g.Name)
		}
		// Nothing has failed of one that is to have no pod. As long as it has none, Liqo leaves its Deployment alone.
		if r.Wanted == 0 {
			do = fmt.Sprintf("Start it: kubectl scale -n %s deploy/%s --replicas=1", g.Namespace, g.Name)
		}
		all = append(all, Finding{true, fmt.Sprintf("%d of %d replicas of Liqo's gateway%s are ready: %s", r.Ready, r.Wanted, to, follows), do})
	}
	return all
}

func ofProvider(p *v1alpha1.Provider, look *Commands) []Finding {
	var all []Finding
	of := "Provider " + ProviderIdentity(p).String()
	all = append(all, mainFinding(of, p.Status.Conditions, providerRemedies(p, look))...)
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionObjectsRefused); c != nil && c.Status == metav1.ConditionTrue {
		all = append(
			all, found(
				of, c, problem("Only its administrator can correct what Liqo has of it: kubectl describe provider.brokering.liqo.io "+p.Name),
			),
		)
	}
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionDraining); c != nil && c.Reason == v1alpha1.ReasonPodsHeld {
		all = append(
			all, found(
				of, c, problem("See why each stays, and make room elsewhere or allow gaps (spec.moveSingletons of the policy): kubectl describe "+
					"provider.brokering.liqo.io "+p.Name),
			),
		)
	}
	return all
}

func ofConsumer(c *v1alpha1.Consumer, look *Commands) []Finding {
	of := "Consumer " + ConsumerIdentity(c).String()
	all := mainFinding(of, c.Status.Conditions, consumerRemedies(c, look))
	if ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady); ready != nil &&
		ready.Reason == v1alpha1.ReasonProvidersHidden {
		all = append(all, found(of, ready, hint("Use spec.nodes One, or the mode Orchestrated: kubectl edit consumer.brokering.liqo.io "+c.Name)))
	}
	if met := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReservationMet); met != nil &&
		met.Status == metav1.ConditionFalse && c.IsServed() {
		all = append(all, found(of, met, problem("Change spec.capacity, or add providers: kubectl edit consumer.brokering.liqo.io "+c.Name)))
	}
	if agent := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionAgentReporting); agent != nil &&
		agent.Status == metav1.ConditionFalse && c.IsServed() {
		all = append(all, found(of, agent, problem(agentRemedy(agent.Reason))))
	}
	return all
}

// agentRemedy is what to do about the agent of a consumer of which something is missing, by the reason of the condition AgentReporting.
func agentRemedy(reason string) string {
	const logs = "kubectl logs -n liqo-broker-agent deploy/liqo-broker-agent"
	return "On that cluster: " + cmp.Or(map[string]string{
		v1alpha1.ReasonAgentMissing: "kubectl liqo-broker prepare",
		v1alpha1.ReasonSilent:       "look at the clock, at kubectl get pods -n liqo-broker-agent, and at " + logs,
		v1alpha1.ReasonUnreadable:   "kubectl liqo-broker version, which is to be the same as here",
		v1alpha1.ReasonViewsUnknown: "which networks its agent refuses, and why: " + logs,
	}[reason], logs)
}

// ofOffer returns what a consumer is denied, which may be right: it asks for more nodes than it is to have, or cannot use them yet.
func ofOffer(o *liqo.Offer) []Finding {
	if o.FromPeer || o.Denied == "" {
		return nil
	}
	return []Finding{{
		false, sheet.Sentence(fmt.Sprintf("A consumer is denied what it asks for by ResourceSlice %s/%s: %s", o.Tenant, o.Name, o.Denied)),
		"If that is not meant, look at the consumer, on its own cluster: kubectl liqo-broker diagnose",
	}}
}

func ofPolicy(p *v1alpha1.PlacementPolicy) []Finding {
	of, why := "Policy "+p.Name, "See why: kubectl liqo-broker explain "+p.Name
	var all []Finding
	for _, c := range p.Status.Conditions {
		switch bad := c.Status == metav1.ConditionFalse; {
		case c.Type == v1alpha1.ConditionDecided && bad:
			all = append(all, found(of, &c, problem(why)))
		case c.Type == v1alpha1.ConditionDecided && c.Reason == v1alpha1.ReasonNoConsumer:
			all = append(all, found(of, &c, hint("It waits for a consumer, or spec.appliesTo names none that there is")))
		case c.Type == v1alpha1.ConditionShadowed && c.Status == metav1.ConditionTrue:
			all = append(all, found(of, &c, hint("If that is not meant, change the scope or the priority of one of them")))
		case c.Type == v1alpha1.ConditionKPIsKnown && bad:
			all = append(all, found(of, &c, problem("Correct the name in spec.weights, or add a ProviderQuery of that name")))
		case c.Type == v1alpha1.ConditionMeasured && bad:
			all = append(all, found(of, &c, problem("See what Prometheus answers to the query of spec.scaling")))
		}
	}
	if meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionDecided) == nil {
		all = append(all, notSeen(of))
	}
	return all
}

// mainFinding returns what the condition Ready says that is not as it should be.
func mainFinding(of string, conditions []metav1.Condition, remedies map[string]remedy) []Finding {
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return []Finding{notSeen(of)}
	}
	if ready.Status == metav1.ConditionTrue {
		return nil
	}
	r, known := remedies[ready.Reason]
	switch {
	case !known:
		r = problem(lookAtLog)
	case r.do == "":
		return nil // People want it so.
	}
	return []Finding{found(of, ready, r)}
}

func notSeen(of string) Finding {
	return Finding{true, sheet.Sentence(of + ": the broker has not looked at it yet"), "If it stays so, the daemon does not run. " + lookAtLog}
}

func found(of string, c *metav1.Condition, r remedy) Finding {
	return Finding{r.problem, sheet.Sentence(fmt.Sprintf("%s: %s (%s)", of, c.Message, c.Reason)), r.do}
}
