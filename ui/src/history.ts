// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// How available a provider was, as it is drawn. It knows nothing of the page.

import { span } from "./format";

/** One slot of a window of time: how long it is, and for which part of that the provider was available; no part where nobody watched. */
export interface Slot {
  seconds: number;
  share?: number;
}

/** A window of watched time. The latest slot is the last. */
export interface Ring {
  name: string;
  /** How long the window is, in words. */
  length: string;
  slots: Slot[];
  /** The part of the watched time in which it was available. */
  share: number;
  /** How much was watched, in seconds. */
  watched: number;
}

/** More is not drawn. */
const mostSlots = 366, mostRings = 8;

/** What can be drawn of windows that a server has told. What is no window is passed over. */
export function ringsOf(windows: unknown): Ring[] {
  if (!Array.isArray(windows)) return [];
  return windows.slice(0, mostRings).flatMap((w: unknown) => ringOf(w) ?? []);
}

function ringOf(window: unknown): Ring | undefined {
  if (typeof window !== "object" || window === null) return undefined;
  const w = window as Record<string, unknown>;
  const { slotSeconds, slots, upSeconds, lastSeconds } = w;
  if (!positive(slotSeconds) || !positive(slots) || slots > mostSlots || !Array.isArray(upSeconds) || upSeconds.length === 0) return undefined;
  const last = positive(lastSeconds) ? Math.min(lastSeconds, slotSeconds) : slotSeconds;
  const told = upSeconds.slice(-slots);
  const all: Slot[] = Array.from({ length: Math.floor(slots) - told.length }, () => ({ seconds: slotSeconds }));
  let [up, watched] = [0, 0];
  told.forEach((value: unknown, i) => {
    const seconds = i === told.length - 1 ? last : slotSeconds;
    if (typeof value !== "number" || !Number.isFinite(value)) {
      all.push({ seconds });
      return;
    }
    const was = Math.min(Math.max(value, 0), seconds);
    up += was;
    watched += seconds;
    all.push({ seconds, share: was / seconds });
  });
  return watched > 0 ? { name: String(w.name ?? ""), length: lengthOf(slots * slotSeconds), slots: all, share: up / watched, watched } : undefined;
}

function positive(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}

function lengthOf(seconds: number): string {
  return seconds % 3600 === 0 && seconds < 172_800 ? `${seconds / 3600}h` : span(seconds);
}

/** A part of the whole in percent. Only the whole is 100 %, and only nothing is 0 %. */
export function percent(share: number): string {
  if (share >= 1 || share <= 0) return share >= 1 ? "100 %" : "0 %";
  return `${Math.min(Math.max(Math.floor(share * 10_000) / 100, 0.01), 99.99)} %`;
}

/** The size of the picture of a ring, in its own units: each slot is so wide. */
export const picture = { height: 32, step: 10, gap: 2, least: 3 };

/** The paths of a picture: when it was available, when it was not, and what nobody has watched. */
export function draw(ring: Ring): { width: number; up: string; down: string; gap: string } {
  const { height, step, gap, least } = picture;
  const paths = { up: "", down: "", gap: "" };
  const full = Math.max(...ring.slots.map((slot) => slot.seconds));
  ring.slots.forEach((slot, i) => {
    const x = i * step;
    if (slot.share === undefined) {
      paths.gap += `M${x} ${height - 1}h${step - gap}`;
      return;
    }
    const w = round(Math.max(((step - gap) * slot.seconds) / full, 1));
    const lost = slot.share >= 1 ? 0 : Math.min(Math.max(round((1 - slot.share) * height), least), height); // A short time is to be seen as well.
    if (lost < height) paths.up += `M${x} ${lost}h${w}V${height}h${-w}z`;
    if (lost > 0) paths.down += `M${x} 0h${w}v${lost}h${-w}z`;
  });
  return { width: ring.slots.length * step - gap, ...paths };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

/** When a slot was, in watched time that has passed since. */
export function times(ring: Ring): string[] {
  let back = 0;
  return ring.slots.toReversed().map((slot) => {
    const from = back;
    back += slot.seconds;
    return from === 0 ? `the last ${span(slot.seconds)}` : `${span(back)} to ${span(from)} back`;
  }).toReversed();
}
