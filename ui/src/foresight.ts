// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// What is made of the preview of a drain for people. It knows nothing of the page.

import type { DrainedPod, DrainPreview } from "./api";
import { count, nameOf, plain } from "./format";

/** How many pods of a preview are shown. */
export const mostPods = 250;

export type Verdict = DrainedPod["verdict"];

/** The verdicts in the order in which they matter: what hinders a drain first. */
export const verdicts: readonly Verdict[] = ["Stays", "Later", "Moves"];

/** Pods of one namespace of one consumer. */
export interface Namespace {
  /** The namespace as the broker calls it. */
  key: string;
  name: string;
  /** The consumer's name; empty if it is of none. */
  consumer: string;
  pods: DrainedPod[];
}

export interface Foresight {
  namespaces: Namespace[];
  /** How many pods are not among them. */
  more: number;
}

function rank(pod: DrainedPod): number {
  const found = verdicts.indexOf(pod.verdict);
  return found < 0 ? verdicts.length : found;
}

/** The pods that fit by namespace: first those namespaces of which pods would stay, and in each those pods. */
export function foresee(preview: DrainPreview, fits: (pod: DrainedPod) => boolean = () => true): Foresight {
  const all = Array.isArray(preview.pods) ? preview.pods : [];
  const shown = all.toSorted((a, b) => rank(a) - rank(b)).slice(0, mostPods);
  const namespaces = new Map<string, Namespace>();
  for (const pod of shown.filter(fits)) {
    const key = pod.brokerNamespace;
    const known = namespaces.get(key) ?? { key, name: plain(pod.namespace || key), consumer: pod.consumer?.id ? nameOf(pod.consumer) : "", pods: [] };
    known.pods.push(pod);
    namespaces.set(key, known);
  }
  return { namespaces: [...namespaces.values()], more: (preview.more ?? 0) + all.length - shown.length };
}

/** Where a pod can go, in words; empty if that is not known. */
export function whereTo(pod: DrainedPod): string {
  const names = (pod.candidates ?? []).map(nameOf);
  if (names.length === 0) return "";
  return names.join(", ") + (pod.moreCandidates ? `, and ${count(pod.moreCandidates, "more", "more")}` : "");
}

/** A sentence of somebody else, from a capital letter to a point. */
export function sentence(text: string | undefined): string {
  const all = plain(text).trim();
  return all && all[0]!.toUpperCase() + all.slice(1) + (/[.!?…]$/.test(all) ? "" : ".");
}

/** Why it cannot be said what a drain would do. status is the answer of the server, undefined if there was none. */
export function unsaid(status: number | undefined, detail: string): string {
  const because = sentence(detail);
  switch (status) {
    case 403: return `You may not see what it would do. ${because}`.trim();
    case 404: return `What it would do cannot be said here. ${because}`.trim();
    case undefined: return "What it would do was not said: the server did not answer in time.";
    default: return `What it would do cannot be said now. ${because}`.trim();
  }
}
