// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Made of docs/api/openapi.yaml by build/tools/ui. DO NOT EDIT.

export interface Activity {
  /** The user who has changed the object, if it is told who. */
  by?: string;
  /** The consumer that it is about. */
  consumer?: Cluster;
  /** How many times it has happened. */
  count: number;
  /** When it happened first, if it has happened several times. */
  first?: string;
  /** The kind of the object that it is about, such as Provider. */
  kind: string;
  /** A sentence for people. */
  message: string;
  /** The name of the object; that of a provider or a consumer is its cluster ID. */
  name: string;
  /** The provider that it is about. */
  provider?: Cluster;
  /** A word for programs. */
  reason: string;
  /** The program that tells of it. */
  source?: string;
  /** When it happened, or happened last. */
  time: string;
  /** Somebody should look at it. */
  warning: boolean;
}

export interface Advice {
  consumer: Cluster;
  /** There is nothing to do: the consumer has told the broker of a tunnel to each of the peers. */
  done: boolean;
  /** A sentence for people. */
  message: string;
  /** How many further peers there are. */
  more?: number;
  /** First those to which there is no tunnel yet, and that run most of its pods. */
  peers: Peer[];
}

export interface Better {
  /** When it takes the place, if it is better until then. */
  due: string;
  /** Liqo's cluster ID. */
  id: string;
  /** The name for people. It need not be unique. */
  name?: string;
  /** Since when it is better. */
  since: string;
}

export interface Candidate {
  /** New pods may go there. */
  chosen: boolean;
  /** Why it does not come into question. */
  excluded?: string;
  /** Liqo's cluster ID. */
  id: string;
  /** The name for people. It need not be unique. */
  name?: string;
  /** Up to 100; missing if it has none. */
  score?: number;
  /** What its score is made of, as numbers. */
  terms?: Term[];
  /** What excludes it, or what its score is made of. */
  why?: string[];
}

export interface Capacity {
  /** What people say that it has. */
  declared?: Record<string, string>;
  /** What is offered and not used. */
  free?: Record<string, string>;
  /** The largest pod that can be placed there. */
  largestPod?: Record<string, string>;
  /** What it offers to the broker through Liqo. */
  measured?: Record<string, string>;
  /** What it adds to what the broker offers. */
  offered?: Record<string, string>;
  /** How much of it the broker offers. */
  overcommitPercent: number;
  /** Whom the broker believes: Measured, Declared or Min. */
  rule?: string;
  /** What the pods there request. */
  used?: Record<string, string>;
}

export interface Cluster {
  /** Liqo's cluster ID. */
  id: string;
  /** The name for people. It need not be unique. */
  name?: string;
}

export interface Condition {
  /** A sentence for people. A consumer that must not learn of providers does not get it. */
  message?: string;
  /** A word for programs. */
  reason: string;
  since: string;
  status: "True" | "False" | "Unknown";
  type: string;
}

export interface Consumer {
  conditions?: Condition[];
  created: string;
  /** Liqo's cluster ID. */
  id: string;
  /** The most that it is offered. */
  limit?: Record<string, string>;
  /** Orchestrated or Aggregated; missing while the broker does not serve it. */
  mode?: string;
  /** The name for people. It need not be unique. */
  name?: string;
  /** One or PerProvider: by which virtual nodes it sees the providers. */
  nodes?: string;
  /** What the broker offers to it. */
  offered?: Record<string, string>;
  ready: boolean;
  /** Why it is ready or not. */
  reason?: string;
  /** What is kept for it. */
  reserved?: Record<string, string>;
  scheduling: "Active" | "Suspended";
  /** The part that it is offered of what is free. */
  sharePercent: number;
  /** What its pods on the providers request. */
  used?: Record<string, string>;
}

export interface Decision {
  /** Providers that are better than a chosen one by the margin of the policy. */
  better?: Better[];
  /** All providers are explained. */
  complete: boolean;
  consumer: Cluster;
  policy: string;
  /** The best first, then those that are excluded. */
  providers: Candidate[];
  /** Where the KPI stands by which the policy uses more or fewer providers; missing if there is none. */
  scaling?: Scaling;
}

export interface Decisions {
  /** How many of them have chosen no provider. */
  empty: number;
  total: number;
}

export interface DrainPreview {
  /** How many would follow. */
  later: number;
  /** A sentence for people. */
  message: string;
  /** How many further pods there are. */
  more?: number;
  /** How many pods would move at once. */
  moves: number;
  /** At most 250: first those that would stay, then those that would move later. */
  pods: DrainedPod[];
  provider: Cluster;
  /** Who says this has planned for all their namespaces before, as the replica that leads has. Another one takes pods that are ready to have served for long. */
  remembers: boolean;
  /** What the provider would be. */
  scheduling: "Cordoned" | "Drained";
  /** How many would stay. */
  stays: number;
}

export interface DrainedPod {
  /** As the broker calls it. */
  brokerNamespace: string;
  /** At most 8 of the providers that have room for it when it moves. */
  candidates?: Cluster[];
  /** Without an ID if the pod is of no consumer. */
  consumer: Cluster;
  /** How many further ones there are. */
  moreCandidates?: number;
  /** As the consumer calls it. */
  namespace: string;
  pod: string;
  verdict: "Moves" | "Later" | "Stays";
  /** Why it does not move at once, or how it goes otherwise. */
  why?: string;
}

export interface ErrorDetail {
  /** Where the error occurred, e.g. 'body.items[3].tags' or 'path.thing-id' */
  location?: string;
  /** Error message text */
  message?: string;
  /** The value at the given location */
  value?: unknown;
}

export interface ErrorModel {
  /** A human-readable explanation specific to this occurrence of the problem. */
  detail?: string;
  /** Optional list of individual error details */
  errors?: ErrorDetail[] | null;
  /** A URI reference that identifies the specific occurrence of the problem. */
  instance?: string;
  /** HTTP status code */
  status?: number;
  /** A short, human-readable summary of the problem type. This value should not change between occurrences of the error. */
  title?: string;
  /** A URI reference to human-readable documentation for the error. */
  type?: string;
}

export interface Event {
  activity?: Activity;
  advice?: Advice;
  consumer?: Consumer;
  decision?: Decision;
  flow?: Flow;
  /** What the thing is known by in the stream. */
  key: string;
  kind: "providers" | "consumers" | "offers" | "policies" | "decisions" | "workloads" | "links" | "flows" | "advice" | "status" | "activity";
  link?: Link;
  offer?: Offer;
  policy?: Policy;
  provider?: Provider;
  status?: Status;
  workload?: Workload;
}

export interface Finding {
  /** What to do about it, often a command. */
  do: string;
  /** False where it may be meant to be so. */
  problem: boolean;
  /** A sentence for people. */
  what: string;
}

export interface Flow {
  /** As of workloads. */
  broker?: Cluster;
  consumer: Cluster;
  /** As of workloads. */
  path?: "direct" | "relay";
  /** How many workloads. */
  pods: number;
  /** Missing for pods that are on none. */
  provider?: Cluster;
  /** How many of them are ready. */
  ready: number;
}

export interface Group {
  /** How many, by the reason of their main condition; Unknown are those that the broker has not looked at. */
  states?: Record<string, number>;
  total: number;
}

export interface KPI {
  expires: string;
  measured: string;
  name: string;
  /** Who measures it. */
  source: "Broker" | "Prometheus";
  unit: string;
  value: number;
}

export interface Link {
  connected: boolean;
  from: Cluster;
  /** The peering by which the peer consumes. */
  incoming?: "None" | "Pending" | "Established" | "Ending";
  /** Broker: between the broker and a peer. Direct: between a consumer and a provider, as the consumer has told the broker. */
  kind: "Broker" | "Direct";
  measured?: string;
  /** The peering by which the peer provides. */
  outgoing?: "None" | "Pending" | "Established" | "Ending";
  /** Missing if nothing was measured. */
  roundTripSeconds?: number;
  to: Cluster;
}

export interface Me {
  /** The cluster, if it is a broker. */
  broker?: Cluster;
  /** The cluster, whatever it is. */
  cluster?: Cluster;
  /** The cluster is no broker: workloads are its own pods at brokers, if it uses any. */
  consumes?: boolean;
  /** That of the kubeconfig by which a program for one person reaches the cluster. */
  context?: string;
  /** When the token expires, if it says so. */
  expires?: string;
  /** All kinds of events. */
  kinds: Watchable[];
  /** What it may do with the resources of brokering.liqo.io, as verb and resource, such as update providers. */
  may: string[];
  /** What the cluster calls it. */
  name: string;
  /** Nothing can be changed here, whatever it may do. */
  readOnly?: boolean;
  /** That of the program that answers. */
  version?: string;
}

export interface NodeOffer {
  /** Missing for the one that stands for the broker. */
  node?: string;
  offered?: Record<string, string>;
  /** The ID of the only provider to which its pods go. */
  provider?: string;
}

export interface Offer {
  consumer: Cluster;
  /** What Liqo has told the consumer last. */
  granted?: Record<string, string>;
  /** What each of several virtual nodes is offered. */
  nodes?: NodeOffer[];
  /** What the broker offers now. */
  offered?: Record<string, string>;
  used?: Record<string, string>;
}

export interface Peer {
  /** Where the provider authenticates who peers with it. */
  authURL?: string;
  /** How the consumer sees whether the peering is there: a command on the consumer. */
  check: string;
  /** The consumer has told the broker of its tunnel. False also where it has not told. */
  connected: boolean;
  /** Those that have chosen it for the consumer. */
  policies?: string[];
  provider: Cluster;
  /** Why, for people. */
  reasons: string[];
  /** How many pods of the consumer are there. */
  running: number;
}

export interface Policy {
  conditions?: Condition[];
  /** The IDs of the consumers to which it applies; missing for all. */
  consumers?: string[];
  created: string;
  /** For how many consumers it has decided. */
  decided: number;
  /** CEL expressions that a provider must fulfil. */
  filters?: string[];
  maxProviders?: number;
  name: string;
  /** The names of namespaces to which it applies. */
  namespaces?: string[];
  priority: number;
  scope: "Default" | "Consumers" | "Namespaces" | "OnRequest";
  /** Some of the providers that it has chosen. */
  summary?: string;
  /** How much each KPI counts. */
  weights?: Record<string, number>;
}

export interface PolicyTrial {
  /** At most 100, those first for which something changes. Without any to which it applies, one without an ID. */
  consumers: TriedDecision[];
  /** Consumers for which the policy of this name decides today, and it would not; at most 20. */
  dropped?: Cluster[];
  /** There is a policy of this name, in whose place it is tried. */
  exists: boolean;
  /** How many further consumers it would decide for. */
  more?: number;
  /** How many further consumers there are of these. */
  moreDropped?: number;
  /** What the trial cannot say, and which policies go before it. */
  notes?: string[];
  /** Its name. */
  policy: string;
  /** What keeps it from deciding well, such as a KPI that no provider has. */
  problems?: string[];
}

export interface Price {
  /** One core. */
  cpu?: string;
  /** ISO 4217. */
  currency: string;
  /** One GiB. */
  memory?: string;
  /** The time that the amounts are for. */
  periodSeconds: number;
}

export interface Provider {
  capacity: Capacity;
  conditions?: Condition[];
  created: string;
  /** How available it was, in the last hour, day and month that the broker watched. */
  history?: Window[];
  /** Liqo's cluster ID. */
  id: string;
  kpis?: KPI[];
  /** By which policies choose it: those that people gave to it, and then those that Liqo shows of it; 32 at most. */
  labels?: Record<string, string>;
  /** The broker's tunnel to it. */
  link?: Link;
  /** The name for people. It need not be unique. */
  name?: string;
  /** What people have written that it costs. What it offers itself is among the KPIs. */
  price?: Price;
  /** Pods can be placed there. */
  ready: boolean;
  /** Why it is ready or not. */
  reason?: string;
  scheduling: "Active" | "Cordoned" | "Drained";
  /** Since when it is out of reach. */
  unreachableSince?: string;
}

export interface Scaling {
  /** How many providers, or groups of them, are used because of it. */
  count: number;
  /** Whether more or fewer are about to be used: the value is outside. */
  direction?: "Up" | "Down";
  /** The label by which providers are used in groups. */
  groupBy?: string;
  /** Missing if there is no limit. */
  max?: number;
  measured?: string;
  min?: number;
  /** Above it one provider more is used. */
  offloadAbove: number;
  /** Since when it is outside. */
  since?: string;
  /** That of the value and of the thresholds. */
  unit: string;
  /** Why there is no value now, so that the count holds. */
  unknown?: string;
  /** Below it one provider less is used. */
  unoffloadBelow: number;
  /** The last known value. */
  value?: number;
  /** For how long the value must be outside. */
  windowSeconds?: number;
}

export interface Scheduling {
  /** Active lets new pods come. Cordoned lets none come, and those stay that are there. Drained moves them to other providers. */
  scheduling: "Active" | "Cordoned" | "Drained";
}

export interface SchedulingOfConsumer {
  /** Active is offered what there is for it. Suspended keeps what it uses, and gets nothing new. */
  scheduling: "Active" | "Suspended";
}

export interface Status {
  /** Those whose virtual nodes there are. A consumer that is asked itself says so. */
  brokers?: Cluster[];
  consumers: Group;
  decisions: Decisions;
  /** What is offered and not used. */
  free?: Record<string, string>;
  /** Nothing in next is a problem. */
  healthy: boolean;
  /** Those that the broker runs: catalog, orchestrator, aggregator. */
  modes: string[];
  /** How many further findings there are. */
  more?: number;
  /** What should be looked at, problems first. */
  next: Finding[];
  /** What all providers add to what the broker offers. */
  offered?: Record<string, string>;
  policies: Group;
  providers: Group;
  queries: Group;
  /** What pods request there. */
  used?: Record<string, string>;
}

export interface Term {
  /** That of the KPI. */
  name: string;
  /** 1 for the best provider that passes the filters, 0 for the worst. */
  normalized: number;
  /** What it adds to the score: all points together make the score. */
  points: number;
  unit?: string;
  /** Why there is no value that counts. */
  unknown?: string;
  /** Missing if it is not known. */
  value?: number;
  /** How much it counts: less is better if it is negative. */
  weight: number;
}

export interface TriedDecision {
  decision: Decision;
  /** Today no policy decides for some of it: all providers that are ready come into question. */
  free: boolean;
  /** Providers that are chosen and are not today, at most 20. */
  in?: Cluster[];
  /** How many further providers come in. */
  moreIn?: number;
  /** How many further providers go out. */
  moreOut?: number;
  /** How many of its namespaces would follow the policy; missing if that is not known. */
  namespaces?: number;
  /** Providers that are chosen today and would not be, at most 20. */
  out?: Cluster[];
  /** How many pods of these namespaces are on providers that go out; missing if that is not known. */
  podsOut?: number;
  /** Why nothing can be chosen: what was chosen before stays. */
  problem?: string;
  /** The policies that decide for these namespaces today; without a namespace, for what it has in general. */
  today?: string[];
}

export interface Watchable {
  kind: string;
  /** The rights that lack to watch it, such as watch workloads. */
  missing?: string[];
}

export interface Window {
  /** How long the last slot is yet. All others are full. */
  lastSeconds: number;
  /** The KPI that is made of it. */
  name: string;
  /** How long a slot is. */
  slotSeconds: number;
  /** How many there are when the window is full. */
  slots: number;
  /** For how long it was available in each slot, the oldest first. */
  upSeconds: number[];
}

export interface Workload {
  /** Under which the cluster that is asked reaches it. A consumer's own cluster knows it by another one than the broker's. */
  address?: string;
  /** Whose virtual node it is on. A consumer that is asked itself says so. */
  broker?: Cluster;
  /** As the broker calls it. */
  brokerNamespace: string;
  consumer: Cluster;
  /** As the consumer calls it. */
  namespace: string;
  /** The virtual node that it is on. A consumer that is asked itself says so. */
  node?: string;
  /** By which path the consumer reaches it, as far as the broker knows. */
  path?: "direct" | "relay";
  pod: string;
  /** The policy that its namespace follows. Missing if it follows none, and for consumers. */
  policy?: string;
  /** Missing while it is on none, and for who must not learn of providers. */
  provider?: Cluster;
  ready: boolean;
  /** What it takes of its node. */
  requests?: Record<string, string>;
  /** Since when it is bound to its node; with a consumer that is asked itself, since when by its path, if that is known. */
  since?: string;
  /** Its phase, or Waiting or Terminating. */
  status: string;
  /** Why it waits, or why it stays where it is not to be, as far as that is known. Missing for consumers. */
  why?: string;
}
