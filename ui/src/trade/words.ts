// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Words of trade. It knows no network and no screen.

import { count, plain, quantity, type Resources } from "../format";
import type { Contract, Money, Need, Party, Range } from "../trade";

/** Money as people write it. */
export function money(of: Money | undefined): string {
  return of ? `${plain(of.amount)} ${plain(of.currency)}` : "";
}

/** Sums of several currencies; nothing is 0. */
export function sums(of: Money[] | undefined): string {
  return of?.length ? of.map(money).join(" and ") : "0";
}

/** A party, never by its name alone: names are not distinct. */
export function partyText(of: Party): string {
  return [plain(of.name), plain(of.short)].filter(Boolean).join(" ");
}

export function amounts(of: Resources | undefined): string {
  return Object.entries(of ?? {}).map(([name, value]) => `${plain(name)} ${quantity(value, name)}`).join(", ");
}

/** What a plan with a range can be bought in. */
export function rangeText(of: Range): string {
  return Object.keys(of.max).sort().map((name) => `${plain(name)} ${quantity(of.min[name] ?? "0", name)} to ${quantity(of.max[name], name)} by ${quantity(of.step[name], name)}`).join(", ");
}

/** The way of a contract that goes well; others leave it. */
export const way = ["Proposed", "Reserved", "Signed", "Provisioning", "Active", "Terminating", "Ended"];
const aside: Record<string, string> = { Resizing: "Active", Suspended: "Active", Rejected: "Reserved", Expired: "Reserved", Failed: "Provisioning" };
export const over = ["Ended", "Rejected", "Expired", "Failed"];

/** The states of a contract in order: those that it went through, with a later one that it has or will have if all goes well. */
export function track(of: Contract): { state: string; when: "past" | "now" | "next" }[] {
  const seen = (of.steps ?? []).map((step) => step.to);
  const state = of.state ?? "";
  const at = way.indexOf(aside[state] ?? state);
  const past = way.filter((name, i) => name !== state && seen.includes(name) && (i <= at || over.includes(state)));
  const next = over.includes(state) ? [] : way.filter((name, i) => i > at && name !== state && !(name === "Proposed" || (name === "Reserved" && at >= 0)));
  return [...past.map((name) => ({ state: name, when: "past" as const })), { state: state || "Asked", when: "now" },
    ...next.map((name) => ({ state: name, when: "next" as const }))];
}

/** Who may want to look at a contract first: what waits for a decision, then what is wrong, then what is over. */
export function rank(of: Contract): number {
  if (of.waits) return 0;
  if (over.includes(of.state ?? "")) return 3;
  return of.ready.status === "False" ? 1 : 2;
}

/** What a need is in the address of the page. */
export function needOf(query: Record<string, string>): Need {
  const list = (text: string | undefined) => (text ?? "").split(",").map((word) => word.trim()).filter(Boolean);
  const resources: Resources = {};
  for (const name of ["cpu", "memory", "pods"]) if (query[name]) resources[name] = query[name];
  for (const pair of list(query.resource)) {
    const at = pair.lastIndexOf("=");
    if (at > 0) resources[pair.slice(0, at)] = pair.slice(at + 1);
  }
  const need: Need = {};
  if (Object.keys(resources).length) need.resources = resources;
  if (query.for) need.duration = query.for;
  if (query.price) need.maxPrice = query.price;
  if (list(query.region).length) need.regions = list(query.region);
  if (list(query.arch).length) need.architectures = list(query.arch);
  if (list(query.seller).length) need.sellers = list(query.seller);
  if (query.filter) need.expression = query.filter;
  return need;
}

/** The flags of the plugin that say the same. */
export function flagsOf(need: Need): string[] {
  const flags: string[] = [];
  for (const [name, value] of Object.entries(need.resources ?? {})) flags.push(...(["cpu", "memory", "pods"].includes(name) ? [`--${name}`, value] : ["--resource", `${name}=${value}`]));
  if (need.duration) flags.push("--for", need.duration);
  if (need.maxPrice) flags.push("--max-price", need.maxPrice);
  for (const region of need.regions ?? []) flags.push("--region", region);
  for (const arch of need.architectures ?? []) flags.push("--architecture", arch);
  for (const seller of need.sellers ?? []) flags.push("--seller", seller);
  if (need.expression) flags.push("--filter", need.expression);
  return flags;
}

/** How long something lasts, without the parts that are 0. */
export function lasting(duration: string | undefined): string {
  return plain(duration).replace(/(?<=[hm])0s$/, "").replace(/(?<=h)0m$/, "");
}

/** Why a contract is as it is, in a sentence: its condition Ready. */
export function why(of: { status: string; reason: string; message?: string }): string {
  return [plain(of.reason), plain(of.message)].filter(Boolean).join(": ");
}

export function attention(of: Contract[]): string {
  const waiting = of.filter((c) => c.waits).length;
  return waiting ? `${count(waiting, "contract")} ${waiting === 1 ? "waits" : "wait"} for your decision` : count(of.length, "contract");
}
