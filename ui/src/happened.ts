// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// What has happened, in words and in order. It knows nothing of the page.

import type { Activity, Cluster } from "./api";
import { nameOf, plain } from "./format";

/** The newest first; what happened at the same time stays as it is. */
export function newestFirst(all: [string, Activity][]): [string, Activity][] {
  return all.toSorted(([, a], [, b]) => (Date.parse(b.time) || 0) - (Date.parse(a.time) || 0));
}

/** What is said of it. Who did it is said besides, and is left out. */
export function wordsOf(a: Activity): string {
  const message = plain(a.message);
  return (a.by ? message.replace(/^(?:"[^"]*"|\S+) (?=.)/, "") : message) || plain(a.reason);
}

/** Who did it: a person, or a program. */
export function whoOf(a: Activity): string {
  return plain(a.by || a.source) || "unknown";
}

/** The kind and the key of what it is about, and its screen if that is another; undefined where there is no screen of that. */
export function placeOf(a: Activity): [kind: "providers" | "consumers" | "policies" | "contracts" | "requests" | "ownoffers" | "registries", key: string, screen?: string[]] | undefined {
  switch (a.kind) {
    case "Provider": return ["providers", a.name];
    case "Consumer": return ["consumers", a.name];
    case "PlacementPolicy": return ["policies", a.name];
    case "Purchase": return ["contracts", `buys/${a.name}`, ["contracts", "buys", a.name]];
    case "Sale": return ["contracts", `sells/${a.name}`, ["contracts", "sells", a.name]];
    case "CapacityRequest": return ["requests", a.name, ["contracts", "needs", a.name]];
    case "Offer": return ["ownoffers", a.name, ["offers"]];
    case "Registry": return ["registries", a.name, ["registries"]];
  }
  return undefined;
}

/** What it is about is called so. */
export function aboutOf(a: Activity): string {
  const cluster: Cluster | undefined = a.provider ?? a.consumer;
  return cluster ? nameOf(cluster) : plain(a.name);
}

/** The kind as people say it: PlacementPolicy is a policy. */
export function kindOf(a: Activity): string {
  const known: Record<string, string> = { PlacementPolicy: "policy", ProviderQuery: "query", CapacityRequest: "need" };
  return Object.hasOwn(known, a.kind) ? known[a.kind]! : plain(a.kind).toLowerCase();
}
