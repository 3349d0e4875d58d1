// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// Observed is what a cluster has of a broker.
type Observed struct {
	// Liqo is the line of Liqo that runs.
	Liqo line.Known
	// Deployment is nil if there is none.
	Deployment *appsv1.Deployment
	// Running are the modes of a daemon that observes itself: it runs, and may see no Deployments, not even its own. Nil otherwise.
	Running []string
	// Gateways are those of Liqo; none if nobody may see them, or there are none.
	Gateways  []line.Gateway
	Providers []v1alpha1.Provider
	Consumers []v1alpha1.Consumer
	Policies  []v1alpha1.PlacementPolicy
	Queries   []v1alpha1.ProviderQuery
	Decisions []v1alpha1.PlacementDecision
	Offers    []liqo.Offer
}

// Status is a broker at one moment, for people and for programs.
type Status struct {
	// Healthy is true if nothing in Next is a problem.
	Healthy bool   `json:"healthy"`
	Broker  Broker `json:"broker"`
	// Gateway is all of Liqo's in which tunnels end; nil if nobody may see them, or there are none.
	Gateway   *Replicas `json:"gateway,omitempty"`
	Providers Group     `json:"providers"`
	Consumers Group     `json:"consumers"`
	Policies  Group     `json:"policies"`
	Queries   Group     `json:"queries"`
	Decisions Decisions `json:"decisions"`
	Offers    Offers    `json:"offers"`
	Capacity  Capacity  `json:"capacity"`
	// Next is what should be looked at, problems first.
	Next []Finding `json:"next"`
}

// Broker is the Deployment of the daemon.
type Broker struct {
	Installed bool     `json:"installed"`
	Image     string   `json:"image,omitempty"`
	Modes     []string `json:"modes,omitempty"`
	Ready     int32    `json:"ready"`
	Wanted    int32    `json:"wanted"`
}

// Replicas are how many pods of a Deployment are ready.
type Replicas struct {
	Ready  int32 `json:"ready"`
	Wanted int32 `json:"wanted"`
}

func replicasOf(d *appsv1.Deployment) Replicas {
	r := Replicas{Ready: d.Status.ReadyReplicas, Wanted: 1}
	if d.Spec.Replicas != nil {
		r.Wanted = *d.Spec.Replicas
	}
	return r
}

// replicasOfAll returns nil for no Deployment.
func replicasOfAll(all []line.Gateway) *Replicas {
	if len(all) == 0 {
		return nil
	}
	var sum Replicas
	for i := range all {
		r := replicasOf(&all[i].Deployment)
		sum.Ready, sum.Wanted = sum.Ready+r.Ready, sum.Wanted+r.Wanted
	}
	return &sum
}

// Group is some objects of one kind.
type Group struct {
	Total int `json:"total"`
	// States counts them by the reason of their main condition; those without it are Unknown.
	States map[string]int `json:"states,omitempty"`
}

// Decisions are the PlacementDecisions.
type Decisions struct {
	Total int `json:"total"`
	// Empty is how many of them have chosen no provider.
	Empty int `json:"empty"`
}

// Offers are Liqo's ResourceOffers.
type Offers struct {
	FromProviders Accepted `json:"fromProviders"`
	ToConsumers   Accepted `json:"toConsumers"`
}

// Accepted is how many of some offers are in force.
type Accepted struct {
	Accepted int `json:"accepted"`
	Total    int `json:"total"`
}

// Capacity is the sum over all providers.
type Capacity struct {
	Offered corev1.ResourceList `json:"offered,omitempty"`
	Used    corev1.ResourceList `json:"used,omitempty"`
	Free    corev1.ResourceList `json:"free,omitempty"`
}

// unknown is the state of an object that the broker has not looked at.
const unknown = "Unknown"

// Summarize returns the status of a broker.
func Summarize(o Observed) Status {
	s := Status{
		Broker:    o.broker(),
		Gateway:   replicasOfAll(o.Gateways),
		Providers: group(o.Providers, func(p *v1alpha1.Provider) []metav1.Condition { return p.Status.Conditions }, v1alpha1.ConditionReady),
		Consumers: group(o.Consumers, func(c *v1alpha1.Consumer) []metav1.Condition { return c.Status.Conditions }, v1alpha1.ConditionReady),
		Policies: group(o.Policies, func(p *v1alpha1.PlacementPolicy) []metav1.Condition { return p.Status.Conditions },
			v1alpha1.ConditionDecided),
		Queries: group(o.Queries, func(q *v1alpha1.ProviderQuery) []metav1.Condition { return q.Status.Conditions },
			v1alpha1.ConditionMeasured),
		Decisions: Decisions{Total: len(o.Decisions)},
		Next:      findings(o),
	}
	for i := range o.Decisions {
		if len(o.Decisions[i].Chosen) == 0 {
			s.Decisions.Empty++
		}
	}
	for i := range o.Offers {
		to := &s.Offers.ToConsumers
		if o.Offers[i].FromPeer {
			to = &s.Offers.FromProviders
		}
		to.Total++
		if o.Offers[i].Accepted {
			to.Accepted++
		}
	}
	// All providers together, and whether anything is wrong.
	for i := range o.Providers {
		p := &o.Providers[i].Status
		s.Capacity.Offered = resources.Sum(s.Capacity.Offered, p.Offered)
		s.Capacity.Used = resources.Sum(s.Capacity.Used, p.Used)
		s.Capacity.Free = resources.Sum(s.Capacity.Free, p.Free)
	}
	s.Healthy = !slices.ContainsFunc(s.Next, func(f Finding) bool { return f.Problem })
	return s
}

// modes are the flags of the daemon that begin like this.
const modes = "--with-"

// broker returns what is known of the daemon. Of one that observes itself nobody has asked how many replicas there are: it is one.
func (o *Observed) broker() Broker {
	d := o.Deployment
	if o.Running != nil {
		return Broker{Installed: true, Modes: o.Running, Ready: 1, Wanted: 1}
	}
	if d == nil {
		return Broker{}
	}
	r := replicasOf(d)
	b := Broker{Installed: true, Ready: r.Ready, Wanted: r.Wanted}
	for _, container := range d.Spec.Template.Spec.Containers {
		if b.Image == "" {
			b.Image = container.Image
		}
		for _, arg := range slices.Concat(container.Command, container.Args) {
			if mode, is := strings.CutPrefix(arg, modes); is && !strings.HasSuffix(mode, "=false") {
				b.Modes = append(b.Modes, strings.TrimSuffix(mode, "=true"))
			}
		}
	}
	return b
}

func group[T any](items []T, conditions func(*T) []metav1.Condition, of string) Group {
	g := Group{Total: len(items)}
	for i := range items {
		if g.States == nil {
			g.States = map[string]int{}
		}
		why := sheet.Reason(conditions(&items[i]), of)
		if why == "" {
			why = unknown
		}
		g.States[why]++
	}
	return g
}

// String returns the status as one screen of text.
func (s *Status) String() string {
	var out strings.Builder
	line := func(name, format string, values ...any) {
		fmt.Fprintf(&out, "%-11s%s\n", name, sheet.Plain(fmt.Sprintf(format, values...)))
	}
	// What there is, in one line for each kind.
	if s.Broker.Installed {
		line("Broker", "%d of %d replicas ready, image %s", s.Broker.Ready, s.Broker.Wanted, s.Broker.Image)
		line("Modes", "%s", strings.Join(s.Broker.Modes, ", "))
	} else {
		line("Broker", "not installed")
	}
	if s.Gateway != nil {
		line("Gateway", "%d of %d replicas of Liqo's ready", s.Gateway.Ready, s.Gateway.Wanted)
	}
	line("Providers", "%s", &s.Providers)
	line("Consumers", "%s", &s.Consumers)
	line("Policies", "%s", &s.Policies)
	line("Decisions", "%s", &s.Decisions)
	line("Queries", "%s", &s.Queries)
	line("Offers", "%d of %d from providers accepted, %d of %d to consumers accepted",
		s.Offers.FromProviders.Accepted, s.Offers.FromProviders.Total, s.Offers.ToConsumers.Accepted, s.Offers.ToConsumers.Total)
	if len(s.Capacity.Offered) > 0 {
		line("Capacity", "%s offered; %s used; %s free", sheet.Amount(s.Capacity.Offered), amountOrNothing(s.Capacity.Used),
			amountOrNothing(s.Capacity.Free))
	}
	// What to do about it: as much as fits a screen.
	if len(s.Next) == 0 {
		out.WriteString("\nNext: nothing, all is well\n")
		return out.String()
	}
	out.WriteString("\nNext:\n")
	for _, f := range s.Next[:min(len(s.Next), maxFindings)] {
		mark := "*"
		if f.Problem {
			mark = "!"
		}
		fmt.Fprintf(&out, "%s %s\n  %s\n", mark, f.What, f.Do)
	}
	if more := len(s.Next) - maxFindings; more > 0 {
		fmt.Fprintf(&out, "and %d more: kubectl liqo-broker status -o yaml\n", more)
	}
	return out.String()
}

// maxFindings is how many findings the screen has room for.
const maxFindings = 20

func amountOrNothing(of corev1.ResourceList) string {
	if text := sheet.Amount(of); text != "" {
		return text
	}
	return "nothing"
}

// String returns how many there are, and how many of them have chosen nobody.
func (d *Decisions) String() string {
	switch {
	case d.Total == 0:
		return "none"
	case d.Empty > 0:
		return fmt.Sprintf("%d, %d of them without a provider", d.Total, d.Empty)
	default:
		return strconv.Itoa(d.Total)
	}
}

// String returns how many there are, and how many in each state.
func (g *Group) String() string {
	if g.Total == 0 {
		return "none"
	}
	var states []string
	for _, name := range slices.Sorted(maps.Keys(g.States)) {
		states = append(states, fmt.Sprintf("%d %s", g.States[name], name))
	}
	return fmt.Sprintf("%d: %s", g.Total, strings.Join(states, ", "))
}
