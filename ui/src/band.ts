// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// The band in which a KPI is to stay, as it is drawn and told. It knows nothing of the page.

import type { Scaling } from "./api";
import { digits, plain, span } from "./format";

/** Where a band and a value are drawn, in percent of a scale that has both with some room. */
export function bandOf(s: Scaling): { from: number; to: number; at?: number } {
  const all = [s.unoffloadBelow, s.offloadAbove, ...(s.value === undefined ? [] : [s.value])].filter(Number.isFinite);
  const [low, high] = [Math.min(...all, Infinity), Math.max(...all, -Infinity)];
  const room = (high - low) / 4 || Math.abs(high) || 1;
  const place = (value: number) => Math.min(Math.max((100 * (value - low + room)) / (high - low + 2 * room), 0), 100) || 0;
  return { from: place(s.unoffloadBelow), to: place(s.offloadAbove), at: s.value === undefined ? undefined : place(s.value) };
}

/** What a band says, in words. */
export function bandWords(s: Scaling, at: number): string {
  const number = (value: number) => `${digits(value)} ${plain(s.unit)}`.trim();
  const lasting = s.since ? ` for ${span((at - Date.parse(s.since)) / 1000)}` : "";
  const needed = s.windowSeconds ? ` of the ${span(s.windowSeconds)} that it takes` : "";
  const what = s.groupBy ? "group" : "provider";
  if (s.unknown) return `There is no value now: ${plain(s.unknown)}. The number of ${what}s holds.`;
  if (s.direction === "Up") return `Above ${number(s.offloadAbove)}${lasting}${needed}: then one ${what} more is used.`;
  if (s.direction === "Down") return `Below ${number(s.unoffloadBelow)}${lasting}${needed}: then one ${what} less is used.`;
  return s.value === undefined ? "No value is known yet." : `Between ${number(s.unoffloadBelow)} and ${number(s.offloadAbove)}: the number of ${what}s holds.`;
}
