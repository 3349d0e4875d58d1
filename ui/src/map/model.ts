// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// What is known of a federation, added up for the map: clusters, their tunnels, and how many pods take which path. What is not told is
// unknown, and not zero. It knows nothing of pictures.

import { plain } from "./text";

// What the map reads of the types of the HTTP API.
export interface Cluster { id: string; name?: string }
export interface Member extends Cluster { ready: boolean; scheduling: string; reason?: string; labels?: Record<string, string> }
export interface Link { from: Cluster; to: Cluster; kind: string; connected: boolean; roundTripSeconds?: number; measured?: string }
export interface Flow { consumer: Cluster; provider?: Cluster; path?: string; pods: number; ready: number }

/** What there is to draw. A list that is missing could not be read, and is unknown; an empty one is empty. */
export interface Data {
  providers?: readonly Member[];
  consumers?: readonly Member[];
  links?: readonly Link[];
  flows?: readonly Flow[];
  brokerName: string;
}

export type Role = "consumer" | "provider";
export type State = "ok" | "problem" | "off" | "unknown";
export type Path = "relay" | "direct" | "unknown";
export type Counts = Record<Path, number>;

/** A tunnel as far as it is known. seconds is missing where nothing was measured. */
export interface Tunnel { state: "up" | "down" | "unknown"; seconds?: number; measured?: string }

/** A cluster in one of its roles. Its pods are those that it has elsewhere, or that are there. */
export interface Node {
  key: string;
  role: Role;
  id: string;
  name: string;
  state: State;
  /** The state in a word. */
  word: string;
  region?: string;
  tunnel: Tunnel;
  pods: Counts;
  /** How many of its pods are on no provider. */
  waiting: number;
}

/** A consumer and a provider that have pods or a tunnel of their own between them. */
export interface Pair { key: string; consumer: Node; provider: Node; pods: Counts; ready: Counts; tunnel?: Tunnel }

/** All of it, in the order of names, then IDs. */
export interface Model {
  broker: string;
  consumers: Node[];
  providers: Node[];
  pairs: Pair[];
  waiting: number;
  /** Whether the numbers of pods are known. */
  counted: boolean;
  /** Whether any provider has a label of its region. */
  regions: boolean;
}

export function total(c: Counts): number {
  return c.relay + c.direct + c.unknown;
}

export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Adds up what is known. The order of what comes in does not matter. */
export function read(data: Data): Model {
  const nodes = new Map<string, Node>();
  const node = (role: Role, c: Cluster): Node => {
    const key = keyOf(role, c.id);
    let found = nodes.get(key);
    if (!found) {
      found = {
        key, role, id: c.id, name: plain(c.name || c.id), state: "unknown", word: "Unknown", tunnel: { state: "unknown" }, pods: none(), waiting: 0,
      };
      nodes.set(key, found);
    }
    return found;
  };
  const member = (role: Role) => (m: Member) => {
    const n = node(role, m);
    const off = m.scheduling !== "Active";
    n.state = off ? "off" : m.ready ? "ok" : m.reason ? "problem" : "unknown";
    n.word = plain(off ? m.scheduling : m.ready ? "Ready" : m.reason || "Unknown");
    const region = m.labels?.["topology.kubernetes.io/region"];
    if (region) n.region = plain(region);
  };
  data.consumers?.forEach(member("consumer"));
  data.providers?.forEach(member("provider"));

  const pairs = new Map<string, Pair>();
  const pair = (consumer: Cluster, provider: Cluster): Pair => {
    const key = JSON.stringify([consumer.id, provider.id]);
    let found = pairs.get(key);
    if (!found) {
      found = { key, consumer: node("consumer", consumer), provider: node("provider", provider), pods: none(), ready: none() };
      pairs.set(key, found);
    }
    return found;
  };
  for (const flow of data.flows ?? []) {
    const pods = whole(flow.pods);
    if (!flow.provider) {
      node("consumer", flow.consumer).waiting += pods;
      continue;
    }
    const path = flow.path === "relay" || flow.path === "direct" ? flow.path : "unknown";
    const p = pair(flow.consumer, flow.provider);
    p.pods[path] += pods;
    p.ready[path] += whole(flow.ready);
    p.consumer.pods[path] += pods;
    p.provider.pods[path] += pods;
  }
  for (const link of data.links ?? []) {
    if (link.kind === "Direct") {
      const p = pair(link.from, link.to);
      p.tunnel = better(p.tunnel, link);
      continue;
    }
    for (const role of ["consumer", "provider"] as const) {
      const n = nodes.get(keyOf(role, link.to.id));
      if (n) n.tunnel = better(n.tunnel, link);
    }
  }
  const sorted = [...nodes.values()].sort((a, b) => compare(a.name, b.name) || compare(a.id, b.id));
  const providers = sorted.filter((n) => n.role === "provider");
  return {
    broker: plain(data.brokerName) || "broker",
    consumers: sorted.filter((n) => n.role === "consumer"),
    providers,
    pairs: [...pairs.values()].sort((a, b) => compare(a.key, b.key)),
    waiting: sorted.reduce((sum, n) => sum + n.waiting, 0),
    counted: data.flows !== undefined,
    regions: providers.some((n) => n.region !== undefined),
  };
}

/** The key of a cluster in a role: what a selection names. */
export function keyOf(role: Role, id: string): string {
  return `${role}/${id}`;
}

/** Of two that are told of one tunnel the one that is up, then the faster one. */
function better(known: Tunnel | undefined, link: Link): Tunnel {
  const told: Tunnel = { state: link.connected ? "up" : "down" };
  if (link.roundTripSeconds !== undefined && link.roundTripSeconds > 0) Object.assign(told, { seconds: link.roundTripSeconds, measured: link.measured });
  if (!known || known.state === "unknown" || known.state === told.state) return (known?.seconds ?? Infinity) < (told.seconds ?? Infinity) ? known! : told;
  return known.state === "up" ? known : told;
}

function none(): Counts {
  return { relay: 0, direct: 0, unknown: 0 };
}

function whole(n: number): number {
  return n > 0 && Number.isFinite(n) ? Math.trunc(n) : 0;
}
