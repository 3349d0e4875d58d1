// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiv1 is what the HTTP API v1 answers: its types, from which the OpenAPI document is generated, how they are made of the
// broker's objects, and what of them a consumer may see. It works on values.
//
// It does not know of HTTP, nor who asks.
package apiv1

import "time"

// Cluster is what a cluster is called.
type Cluster struct {
	ID   string `json:"id" doc:"Liqo's cluster ID."`
	Name string `json:"name,omitempty" doc:"The name for people. It need not be unique."`
}

// Resources are quantities as Kubernetes writes them, by the name of the resource.
type Resources map[string]string

// Condition is what is true of an object, as in Kubernetes.
type Condition struct {
	Type    string    `json:"type"`
	Status  string    `json:"status" enum:"True,False,Unknown"`
	Reason  string    `json:"reason" doc:"A word for programs."`
	Message string    `json:"message,omitempty" doc:"A sentence for people. A consumer that must not learn of providers does not get it."`
	Since   time.Time `json:"since"`
}

// Provider is a cluster that shares its resources with the broker.
type Provider struct {
	Cluster

	Scheduling       string      `json:"scheduling" enum:"Active,Cordoned,Drained"`
	Ready            bool        `json:"ready" doc:"Pods can be placed there."`
	Reason           string      `json:"reason,omitempty" doc:"Why it is ready or not."`
	UnreachableSince time.Time   `json:"unreachableSince,omitzero" doc:"Since when it is out of reach."`
	Capacity         Capacity    `json:"capacity"`
	Price            *Price      `json:"price,omitempty" doc:"What people have written that it costs. What it offers itself is among the KPIs."`
	KPIs             []KPI       `json:"kpis,omitempty" nullable:"false"`
	Link             *Link       `json:"link,omitempty" doc:"The broker's tunnel to it."`
	Labels           Labels      `json:"labels,omitempty" doc:"By which policies choose it: those that people gave to it, and then those that Liqo shows of it; 32 at most."`
	History          []Window    `json:"history,omitempty" nullable:"false" doc:"How available it was, in the last hour, day and month that the broker watched."`
	Conditions       []Condition `json:"conditions,omitempty" nullable:"false"`
	Created          time.Time   `json:"created"`
}

// Labels are labels as in Kubernetes.
type Labels map[string]string

// Window is for how long a provider was available in slots of equal length. It is made of watched time: what passes while nobody watches is
// in no slot.
type Window struct {
	Name        string  `json:"name" doc:"The KPI that is made of it."`
	SlotSeconds float64 `json:"slotSeconds" doc:"How long a slot is."`
	Slots       int     `json:"slots" doc:"How many there are when the window is full."`
	UpSeconds   []int64 `json:"upSeconds" nullable:"false" doc:"For how long it was available in each slot, the oldest first."`
	LastSeconds float64 `json:"lastSeconds" doc:"How long the last slot is yet. All others are full."`
}

// Capacity is what a provider has.
type Capacity struct {
	Rule              string    `json:"rule,omitempty" doc:"Whom the broker believes: Measured, Declared or Min."`
	Declared          Resources `json:"declared,omitempty" doc:"What people say that it has."`
	OvercommitPercent int32     `json:"overcommitPercent" doc:"How much of it the broker offers."`
	Measured          Resources `json:"measured,omitempty" doc:"What it offers to the broker through Liqo."`
	Offered           Resources `json:"offered,omitempty" doc:"What it adds to what the broker offers."`
	Used              Resources `json:"used,omitempty" doc:"What the pods there request."`
	Free              Resources `json:"free,omitempty" doc:"What is offered and not used."`
	LargestPod        Resources `json:"largestPod,omitempty" doc:"The largest pod that can be placed there."`
}

// Price is what a provider costs.
type Price struct {
	Currency      string  `json:"currency" doc:"ISO 4217."`
	PeriodSeconds float64 `json:"periodSeconds" doc:"The time that the amounts are for."`
	CPU           string  `json:"cpu,omitempty" doc:"One core."`
	Memory        string  `json:"memory,omitempty" doc:"One GiB."`
}

// KPI is a measured value. It counts until it expires.
type KPI struct {
	Name     string    `json:"name"`
	Value    float64   `json:"value"`
	Unit     string    `json:"unit"`
	Source   string    `json:"source" enum:"Broker,Prometheus" doc:"Who measures it."`
	Measured time.Time `json:"measured"`
	Expires  time.Time `json:"expires"`
}

// Link is a tunnel between two clusters.
type Link struct {
	From             Cluster   `json:"from"`
	To               Cluster   `json:"to"`
	Kind             string    `json:"kind" enum:"Broker,Direct" doc:"Broker: between the broker and a peer. Direct: between a consumer and a provider, as the consumer has told the broker."`
	Connected        bool      `json:"connected"`
	RoundTripSeconds float64   `json:"roundTripSeconds,omitempty" doc:"Missing if nothing was measured."`
	Measured         time.Time `json:"measured,omitzero"`
	Outgoing         string    `json:"outgoing,omitempty" enum:"None,Pending,Established,Ending" doc:"The peering by which the peer provides."`
	Incoming         string    `json:"incoming,omitempty" enum:"None,Pending,Established,Ending" doc:"The peering by which the peer consumes."`
}

// Consumer is a cluster that uses the broker.
type Consumer struct {
	Cluster

	Mode       string      `json:"mode,omitempty" doc:"Orchestrated or Aggregated; missing while the broker does not serve it."`
	Scheduling string      `json:"scheduling" enum:"Active,Suspended"`
	Ready      bool        `json:"ready"`
	Reason     string      `json:"reason,omitempty" doc:"Why it is ready or not."`
	Nodes      string      `json:"nodes,omitempty" doc:"One or PerProvider: by which virtual nodes it sees the providers."`
	Reserved   Resources   `json:"reserved,omitempty" doc:"What is kept for it."`
	Limit      Resources   `json:"limit,omitempty" doc:"The most that it is offered."`
	Share      int32       `json:"sharePercent" doc:"The part that it is offered of what is free."`
	Offered    Resources   `json:"offered,omitempty" doc:"What the broker offers to it."`
	Used       Resources   `json:"used,omitempty" doc:"What its pods on the providers request."`
	Conditions []Condition `json:"conditions,omitempty" nullable:"false"`
	Created    time.Time   `json:"created"`
}

// Offer is what a consumer is offered.
type Offer struct {
	Consumer Cluster     `json:"consumer"`
	Offered  Resources   `json:"offered,omitempty" doc:"What the broker offers now."`
	Granted  Resources   `json:"granted,omitempty" doc:"What Liqo has told the consumer last."`
	Used     Resources   `json:"used,omitempty"`
	Nodes    []NodeOffer `json:"nodes,omitempty" nullable:"false" doc:"What each of several virtual nodes is offered."`
}

// NodeOffer is what a virtual node of a consumer is offered.
type NodeOffer struct {
	Node     string    `json:"node,omitempty" doc:"Missing for the one that stands for the broker."`
	Provider string    `json:"provider,omitempty" doc:"The ID of the only provider to which its pods go."`
	Offered  Resources `json:"offered,omitempty"`
}

// Policy says which providers are chosen for whom.
type Policy struct {
	Name         string           `json:"name"`
	Scope        string           `json:"scope" enum:"Default,Consumers,Namespaces,OnRequest"`
	Consumers    []string         `json:"consumers,omitempty" nullable:"false" doc:"The IDs of the consumers to which it applies; missing for all."`
	Namespaces   []string         `json:"namespaces,omitempty" nullable:"false" doc:"The names of namespaces to which it applies."`
	Priority     int32            `json:"priority"`
	Filters      []string         `json:"filters,omitempty" nullable:"false" doc:"CEL expressions that a provider must fulfil."`
	Weights      map[string]int32 `json:"weights,omitempty" doc:"How much each KPI counts."`
	MaxProviders int32            `json:"maxProviders,omitempty"`
	Decided      int32            `json:"decided" doc:"For how many consumers it has decided."`
	Summary      string           `json:"summary,omitempty" doc:"Some of the providers that it has chosen."`
	Conditions   []Condition      `json:"conditions,omitempty" nullable:"false"`
	Created      time.Time        `json:"created"`
}

// Decision is what a policy has decided for a consumer, and why.
type Decision struct {
	Policy    string      `json:"policy"`
	Consumer  Cluster     `json:"consumer"`
	Complete  bool        `json:"complete" doc:"All providers are explained."`
	Providers []Candidate `json:"providers" nullable:"false" doc:"The best first, then those that are excluded."`
	Better    []Better    `json:"better,omitempty" nullable:"false" doc:"Providers that are better than a chosen one by the margin of the policy."`
	Scaling   *Scaling    `json:"scaling,omitempty" doc:"Where the KPI stands by which the policy uses more or fewer providers; missing if there is none."`
}

// Better is a provider that takes the place of a chosen one when it has been better for long enough.
type Better struct {
	Cluster

	Since time.Time `json:"since" doc:"Since when it is better."`
	Due   time.Time `json:"due" doc:"When it takes the place, if it is better until then."`
}

// Scaling is where a KPI stands between two thresholds, outside of which more or fewer providers are used.
type Scaling struct {
	Unit           string    `json:"unit" doc:"That of the value and of the thresholds."`
	Value          *float64  `json:"value,omitempty" doc:"The last known value."`
	Measured       time.Time `json:"measured,omitzero"`
	Unknown        string    `json:"unknown,omitempty" doc:"Why there is no value now, so that the count holds."`
	UnoffloadBelow float64   `json:"unoffloadBelow" doc:"Below it one provider less is used."`
	OffloadAbove   float64   `json:"offloadAbove" doc:"Above it one provider more is used."`
	WindowSeconds  float64   `json:"windowSeconds,omitempty" doc:"For how long the value must be outside."`
	Direction      string    `json:"direction,omitempty" enum:"Up,Down" doc:"Whether more or fewer are about to be used: the value is outside."`
	Since          time.Time `json:"since,omitzero" doc:"Since when it is outside."`
	Count          int32     `json:"count" doc:"How many providers, or groups of them, are used because of it."`
	Min            int32     `json:"min,omitempty"`
	Max            int32     `json:"max,omitempty" doc:"Missing if there is no limit."`
	GroupBy        string    `json:"groupBy,omitempty" doc:"The label by which providers are used in groups."`
}

// Candidate is a provider that a policy has looked at.
type Candidate struct {
	Cluster

	Chosen   bool     `json:"chosen" doc:"New pods may go there."`
	Score    *float64 `json:"score,omitempty" doc:"Up to 100; missing if it has none."`
	Excluded string   `json:"excluded,omitempty" doc:"Why it does not come into question."`
	Why      []string `json:"why,omitempty" nullable:"false" doc:"What excludes it, or what its score is made of."`
	Terms    []Term   `json:"terms,omitempty" nullable:"false" doc:"What its score is made of, as numbers."`
}

// Term is what one KPI adds to a score.
type Term struct {
	Name       string   `json:"name" doc:"That of the KPI."`
	Value      *float64 `json:"value,omitempty" doc:"Missing if it is not known."`
	Unit       string   `json:"unit,omitempty"`
	Unknown    string   `json:"unknown,omitempty" doc:"Why there is no value that counts."`
	Normalized float64  `json:"normalized" doc:"1 for the best provider that passes the filters, 0 for the worst."`
	Weight     int32    `json:"weight" doc:"How much it counts: less is better if it is negative."`
	Points     float64  `json:"points" doc:"What it adds to the score: all points together make the score."`
}

// Workload is a pod of a consumer.
type Workload struct {
	Consumer        Cluster   `json:"consumer"`
	Namespace       string    `json:"namespace" doc:"As the consumer calls it."`
	BrokerNamespace string    `json:"brokerNamespace" doc:"As the broker calls it."`
	Pod             string    `json:"pod"`
	Provider        *Cluster  `json:"provider,omitempty" doc:"Missing while it is on none, and for who must not learn of providers."`
	Path            string    `json:"path,omitempty" enum:"direct,relay" doc:"By which path the consumer reaches it, as far as the broker knows."`
	Broker          *Cluster  `json:"broker,omitempty" doc:"Whose virtual node it is on. A consumer that is asked itself says so."`
	Node            string    `json:"node,omitempty" doc:"The virtual node that it is on. A consumer that is asked itself says so."`
	Address         string    `json:"address,omitempty" doc:"Under which the cluster that is asked reaches it. A consumer's own cluster knows it by another one than the broker's."`
	Status          string    `json:"status" doc:"Its phase, or Waiting or Terminating."`
	Ready           bool      `json:"ready"`
	Since           time.Time `json:"since,omitzero" doc:"Since when it is bound to its node; with a consumer that is asked itself, since when by its path, if that is known."`
	Requests        Resources `json:"requests,omitempty" doc:"What it takes of its node."`
	Policy          string    `json:"policy,omitempty" doc:"The policy that its namespace follows. Missing if it follows none, and for consumers."`
	Why             string    `json:"why,omitempty" doc:"Why it waits, or why it stays where it is not to be, as far as that is known. Missing for consumers."`
}

// Flow is how many pods of a consumer are at a provider and are reached by one path: what pictures are drawn of.
type Flow struct {
	Consumer Cluster  `json:"consumer"`
	Provider *Cluster `json:"provider,omitempty" doc:"Missing for pods that are on none."`
	Broker   *Cluster `json:"broker,omitempty" doc:"As of workloads."`
	Path     string   `json:"path,omitempty" enum:"direct,relay" doc:"As of workloads."`
	Pods     int      `json:"pods" doc:"How many workloads."`
	Ready    int      `json:"ready" doc:"How many of them are ready."`
}

// Status is the broker at one moment, and what should be looked at; a consumer that is asked itself says what of its own should be.
type Status struct {
	Healthy   bool      `json:"healthy" doc:"Nothing in next is a problem."`
	Modes     []string  `json:"modes" nullable:"false" doc:"Those that the broker runs: catalog, orchestrator, aggregator."`
	Brokers   []Cluster `json:"brokers,omitempty" nullable:"false" doc:"Those whose virtual nodes there are. A consumer that is asked itself says so."`
	Providers Group     `json:"providers"`
	Consumers Group     `json:"consumers"`
	Policies  Group     `json:"policies"`
	Queries   Group     `json:"queries"`
	Decisions Decisions `json:"decisions"`
	Offered   Resources `json:"offered,omitempty" doc:"What all providers add to what the broker offers."`
	Used      Resources `json:"used,omitempty" doc:"What pods request there."`
	Free      Resources `json:"free,omitempty" doc:"What is offered and not used."`
	Next      []Finding `json:"next" nullable:"false" doc:"What should be looked at, problems first."`
	More      int       `json:"more,omitempty" doc:"How many further findings there are."`
}

// Group is how many objects there are of one kind.
type Group struct {
	Total  int            `json:"total"`
	States map[string]int `json:"states,omitempty" doc:"How many, by the reason of their main condition; Unknown are those that the broker has not looked at."`
}

// Decisions is how many decisions there are.
type Decisions struct {
	Total int `json:"total"`
	Empty int `json:"empty" doc:"How many of them have chosen no provider."`
}

// Finding is something that should be looked at.
type Finding struct {
	Problem bool   `json:"problem" doc:"False where it may be meant to be so."`
	What    string `json:"what" doc:"A sentence for people."`
	Do      string `json:"do" doc:"What to do about it, often a command."`
}

// Advice says with which providers a consumer should have a peering of its own now.
type Advice struct {
	Consumer Cluster `json:"consumer"`
	Done     bool    `json:"done" doc:"There is nothing to do: the consumer has told the broker of a tunnel to each of the peers."`
	Message  string  `json:"message" doc:"A sentence for people."`
	Peers    []Peer  `json:"peers" nullable:"false" doc:"First those to which there is no tunnel yet, and that run most of its pods."`
	More     int     `json:"more,omitempty" doc:"How many further peers there are."`
}

// Peer is a provider with which a consumer should have a peering.
type Peer struct {
	Provider  Cluster  `json:"provider"`
	Running   int      `json:"running" doc:"How many pods of the consumer are there."`
	Policies  []string `json:"policies,omitempty" nullable:"false" doc:"Those that have chosen it for the consumer."`
	Reasons   []string `json:"reasons" nullable:"false" doc:"Why, for people."`
	Connected bool     `json:"connected" doc:"The consumer has told the broker of its tunnel. False also where it has not told."`
	AuthURL   string   `json:"authURL,omitempty" doc:"Where the provider authenticates who peers with it."`
	Check     string   `json:"check" doc:"How the consumer sees whether the peering is there: a command on the consumer."`
}

// Me is who calls, and what it may do.
type Me struct {
	Name     string      `json:"name" doc:"What the cluster calls it."`
	May      []string    `json:"may" nullable:"false" doc:"What it may do with the resources of brokering.liqo.io, as verb and resource, such as update providers."`
	Broker   *Cluster    `json:"broker,omitempty" doc:"The cluster, if it is a broker."`
	Cluster  *Cluster    `json:"cluster,omitempty" doc:"The cluster, whatever it is."`
	Consumes bool        `json:"consumes,omitempty" doc:"The cluster is no broker: workloads are its own pods at brokers, if it uses any."`
	Version  string      `json:"version,omitempty" doc:"That of the program that answers."`
	Context  string      `json:"context,omitempty" doc:"That of the kubeconfig by which a program for one person reaches the cluster."`
	ReadOnly bool        `json:"readOnly,omitempty" doc:"Nothing can be changed here, whatever it may do."`
	Expires  time.Time   `json:"expires,omitzero" doc:"When the token expires, if it says so."`
	Kinds    []Watchable `json:"kinds" nullable:"false" doc:"All kinds of events."`
}

// Watchable is a kind of events, and whether it can be watched.
type Watchable struct {
	Kind    string   `json:"kind"`
	Missing []string `json:"missing,omitempty" nullable:"false" doc:"The rights that lack to watch it, such as watch workloads."`
}

// DrainPreview is what would become of the pods on a provider that people let be drained, or cordoned, as the broker plans at this moment.
// It takes for granted that what is placed elsewhere becomes ready there.
type DrainPreview struct {
	Provider   Cluster      `json:"provider"`
	Scheduling string       `json:"scheduling" enum:"Cordoned,Drained" doc:"What the provider would be."`
	Message    string       `json:"message" doc:"A sentence for people."`
	Moves      int          `json:"moves" doc:"How many pods would move at once."`
	Later      int          `json:"later" doc:"How many would follow."`
	Stays      int          `json:"stays" doc:"How many would stay."`
	Remembers  bool         `json:"remembers" doc:"Who says this has planned for all their namespaces before, as the replica that leads has. Another one takes pods that are ready to have served for long."`
	Pods       []DrainedPod `json:"pods" nullable:"false" doc:"At most 250: first those that would stay, then those that would move later."`
	More       int          `json:"more,omitempty" doc:"How many further pods there are."`
}

// DrainedPod is what would become of one pod.
type DrainedPod struct {
	Consumer        Cluster   `json:"consumer" doc:"Without an ID if the pod is of no consumer."`
	Namespace       string    `json:"namespace" doc:"As the consumer calls it."`
	BrokerNamespace string    `json:"brokerNamespace" doc:"As the broker calls it."`
	Pod             string    `json:"pod"`
	Verdict         string    `json:"verdict" enum:"Moves,Later,Stays"`
	Why             string    `json:"why,omitempty" doc:"Why it does not move at once, or how it goes otherwise."`
	Candidates      []Cluster `json:"candidates,omitempty" nullable:"false" doc:"At most 8 of the providers that have room for it when it moves."`
	MoreCandidates  int       `json:"moreCandidates,omitempty" doc:"How many further ones there are."`
}
