// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// What the page knows, by kind and key, and how events change it. It knows no network and no screen.

import { batch, signal, type Signal } from "@preact/signals";
import type { Activity, Advice, Consumer, Decision, Event, Flow, Link, Offer, Policy, Provider, Status, Workload } from "./api";
import type { Message } from "./events";
import type { Contract, Market, OwnOffer, Registry, Request } from "./trade";

export interface Things {
  providers: Provider;
  consumers: Consumer;
  offers: Offer;
  policies: Policy;
  decisions: Decision;
  workloads: Workload;
  links: Link;
  flows: Flow;
  advice: Advice;
  status: Status;
  activity: Activity;
  contracts: Contract;
  requests: Request;
  ownoffers: OwnOffer;
  registries: Registry;
  market: Market;
}

/** An event, also of a cluster that trades. */
type Told = Omit<Event, "kind"> & { kind: string; contract?: Contract; request?: Request; ownOffer?: OwnOffer; registry?: Registry; market?: Market };

export type Kind = keyof Things;
type Maps = { [K in Kind]: Map<string, Things[K]> };

/** Under which name an event has the thing itself. */
const fields: Record<Kind, keyof Told> = {
  providers: "provider", consumers: "consumer", offers: "offer", policies: "policy", decisions: "decision", workloads: "workload",
  links: "link", flows: "flow", advice: "advice", status: "status", activity: "activity",
  contracts: "contract", requests: "request", ownoffers: "ownOffer", registries: "registry", market: "market",
};

export const kinds = Object.keys(fields) as Kind[];

function empty(): Maps {
  return Object.fromEntries(kinds.map((kind) => [kind, new Map()])) as Maps;
}

/**
 * Keeps what a stream has told. What it shows changes at most once for each call of later, which a browser does before it draws. What
 * was known stays until a stream that began again has told everything.
 */
export class Store {
  private maps = empty();
  private coming: Maps | undefined;
  private readonly changed = new Set<Kind>();
  private planned = false;
  private readonly versions = Object.fromEntries(kinds.map((kind) => [kind, signal(0)])) as Record<Kind, Signal<number>>;
  /** True once a stream has told all that there is. */
  readonly synced = signal(false);
  /** How far the page has come: whoever calls again goes on from there. Empty as long as not everything was told. */
  last = "";

  constructor(private readonly later: (task: () => void) => void) {}

  /** All of a kind, by key, in the order of keys' first coming. Whoever draws it draws again when it changes. */
  all<K extends Kind>(kind: K): ReadonlyMap<string, Things[K]> {
    void this.versions[kind].value;
    return this.maps[kind];
  }

  /** The values of a kind. */
  list<K extends Kind>(kind: K): Things[K][] {
    return [...this.all(kind).values()];
  }

  /** Takes what was told. What is no event of a kind that is known is passed over. */
  take(message: Message): void {
    switch (message.name) {
      case "reset":
        this.coming = empty();
        return;
      case "synced":
        if (this.coming) {
          this.maps = this.coming;
          this.coming = undefined;
          kinds.forEach((kind) => this.changed.add(kind));
          this.plan();
        }
        break;
      case "set":
      case "deleted":
        this.change(message);
        break;
    }
    if (!this.coming) this.last = message.id || this.last;
  }

  /** A stream has ended: what it had not told to the end does not count. */
  ended(): void {
    this.coming = undefined;
  }

  private change(message: Message): void {
    let event: Told;
    try {
      event = JSON.parse(message.data) as Told;
    } catch {
      return;
    }
    if (!Object.hasOwn(fields, event?.kind)) return;
    const field = fields[event.kind as Kind];
    const map = (this.coming ?? this.maps)[event.kind as Kind] as Map<string, unknown>;
    if (message.name === "deleted") map.delete(event.key);
    else if (event[field]) map.set(event.key, event[field]);
    if (!this.coming) {
      this.changed.add(event.kind as Kind);
      this.plan();
    }
  }

  private plan(): void {
    if (this.planned) return;
    this.planned = true;
    this.later(() => {
      this.planned = false;
      const now = [...this.changed];
      this.changed.clear();
      batch(() => {
        now.forEach((kind) => this.versions[kind].value++);
        this.synced.value = true;
      });
    });
  }
}
