// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// How texts, quantities and times are shown. It knows nothing of the page.

import type { Cluster } from "./api";

export type Resources = Record<string, string>;

/** What is shown of a text that others have written: what is no letter, and could hide or turn what follows, is a question mark. */
export function plain(text: string | undefined): string {
  text ??= "";
  return /^[ -~]*$/.test(text) ? text : text.replace(/[\n\t]/g, " ").replace(/(?! )[\p{C}\p{Z}\u2800\u3164\uffa0\u115f\u1160]/gu, "?");
}

/** The name of a cluster for people, which need not be unique; its ID if it has none. */
export function nameOf(c: Cluster | undefined): string {
  return c ? plain(c.name || c.id) : "none";
}

/** The name with the ID, for a title. */
export function titleOf(c: Cluster | undefined): string {
  return !c ? "" : c.name && c.name !== c.id ? `${plain(c.name)}, ID ${plain(c.id)}` : plain(c.id);
}

const units: Record<string, number> = {
  n: 1e-9, u: 1e-6, m: 1e-3, "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
};

/** The number that a quantity of Kubernetes is, about; undefined for what is none. */
export function amount(quantity: string | undefined): number | undefined {
  const parts = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d{1,3})|([KMGTPE]i|[numkMGTPE]))?$/.exec(quantity ?? "");
  if (!parts) return undefined;
  const value = Number(parts[1] + (parts[2] ?? "")) * (units[parts[3] ?? ""] ?? 1);
  return Number.isFinite(value) ? value : undefined;
}

/** A quantity as Kubernetes writes it, with bytes in a unit that people read; "unknown" without one. */
export function quantity(of: string | undefined, resource: string): string {
  const value = amount(of);
  if (of === undefined || value === undefined) return "unknown";
  if (value === 0) return "0";
  if (!/memory|storage|hugepages/.test(resource) || Math.abs(value) < 1024) {
    return of.length > 12 || (of.endsWith("m") && value >= 1) ? String(Number(value.toFixed(2))) : of;
  }
  const step = Math.min(Math.floor(Math.log2(Math.abs(value)) / 10), 6);
  return digits(value / 2 ** (10 * step)) + ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][step];
}

/** A number with at most three digits that count, none of those before the point left out. */
export function digits(value: number): string {
  const whole = Math.abs(value);
  if (whole !== 0 && whole < 0.001) return value.toPrecision(2);
  return String(Number(value.toFixed(whole >= 100 ? 0 : whole >= 10 ? 1 : whole >= 1 ? 2 : 3)));
}

/** The names of all resources, those of all clusters first. */
export function resourcesOf(...all: (Resources | undefined)[]): string[] {
  const first = ["cpu", "memory", "pods", "ephemeral-storage"];
  const rank = (name: string) => (first.includes(name) ? first.indexOf(name) : first.length);
  return [...new Set(all.flatMap((one) => Object.keys(one ?? {})))].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

/** What is used of a resource, also where only the rest is told; undefined if it is not known. */
export function usedOf(resource: string, of: { offered?: Resources; used?: Resources; free?: Resources }): number | undefined {
  const told = amount(of.used?.[resource]);
  if (told !== undefined) return told;
  const offered = amount(of.offered?.[resource]);
  const free = amount(of.free?.[resource]);
  return offered === undefined || free === undefined ? undefined : Math.max(offered - free, 0);
}

/** The same as a quantity. */
export function usedText(resource: string, of: { offered?: Resources; used?: Resources; free?: Resources }): string {
  const value = usedOf(resource, of);
  return of.used?.[resource] ?? (value === undefined ? "" : String(value));
}

/** How long a time is, as kubectl writes ages: at most two units. */
export function span(seconds: number): string {
  const s = Math.max(Math.round(seconds), 0);
  if (s < 120) return `${s}s`;
  if (s < 7200) return `${Math.floor(s / 60)}m`;
  if (s < 172800) return `${Math.floor(s / 3600)}h`;
  return `${Math.floor(s / 86400)}d`;
}

/** When something was or will be, seen from now. */
export function when(time: string | undefined, now: number): string {
  const at = Date.parse(time ?? "");
  if (Number.isNaN(at)) return "unknown";
  const seconds = (now - at) / 1000;
  return Math.abs(seconds) < 1 ? "now" : seconds > 0 ? `${span(seconds)} ago` : `in ${span(-seconds)}`;
}

/** A round trip in ms; "not measured" without one. */
export function trip(seconds: number | undefined): string {
  return seconds === undefined ? "not measured" : `${digits(seconds * 1000)} ms`;
}

/** A count with its noun. */
export function count(n: number, one: string, many = one + "s"): string {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

/** A word as a shell reads it. */
export function quoted(word: string): string {
  return /^[A-Za-z0-9_-][A-Za-z0-9_.,:@=/-]*$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** The texts of admission in a header Warning, which fetch joins by commas. */
export function warningsOf(header: string | null): string[] {
  return [...(header ?? "").matchAll(/\b\d{3} \S+ "((?:[^"\\]|\\.)*)"/g)].map((found) => plain((found[1] ?? "").replace(/\\(.)/g, "$1")));
}

/** The command that a sentence ends with, if it has one. */
export function commandIn(text: string): string {
  return /(?:^|[\s`(])(kubectl [^`]*?)[`.)]*$/.exec(text)?.[1] ?? "";
}
