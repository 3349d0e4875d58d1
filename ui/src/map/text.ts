// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Texts of the map: made harmless, measured and cut, because text in SVG does not wrap. It knows nothing of clusters.

// Longest text that is looked at: names of Kubernetes have at most 253 characters.
const longest = 300;

/** A text of somebody else on one line: control, bidi and invisible characters are "?", and a letter has at most one mark. */
export function plain(text: string | undefined): string {
  return (text ?? "")
    .slice(0, longest)
    .replace(/[\s\p{Zl}\p{Zp}]/gu, " ")
    .replace(/[\p{C}\u2800\u3164\uffa0\u115f\u1160]/gu, "?")
    .replace(/(\p{M})\p{M}+/gu, "$1");
}

/** How wide a text is at most, in px, in a usual sans-serif of that size: rather too much than too little. */
export function widthOf(text: string, size: number): number {
  let em = 0;
  for (const c of text) em += emOf(c);
  return em * size;
}

function emOf(c: string): number {
  if (/[ijlI.,:;'|!()[\]ft ·]/.test(c)) return 0.4;
  if (/[mwMW@%…—]/.test(c)) return 1.12;
  if (/[A-Z_&#?+<>=~]/.test(c)) return 0.8;
  if (/[ -~\u00a0-\u024f]/.test(c)) return 0.64;
  return /\p{M}/u.test(c) ? 0.2 : 1.5; // Scripts of which the page has no measure, and pictures.
}

/** The beginning of a text that is at most so wide, in px, with an ellipsis if something is left out. */
export function cut(text: string, width: number, size: number): string {
  const whole = plain(text);
  if (widthOf(whole, size) <= width) return whole;
  let kept = "";
  let room = width / size - emOf("…");
  for (const c of whole) {
    room -= emOf(c);
    if (room < 0) break;
    kept += c;
  }
  return kept.trimEnd() + "…";
}

/** A count with its noun. */
export function count(n: number, one: string): string {
  return `${n.toLocaleString("en")} ${n === 1 ? one : one + "s"}`;
}

/** A round trip, with at most three digits that count; undefined if it was not measured. */
export function trip(seconds: number | undefined): string | undefined {
  if (seconds === undefined || !(seconds > 0)) return undefined;
  const ms = seconds * 1000;
  return `${Number(ms.toFixed(ms >= 100 ? 0 : ms >= 10 ? 1 : 2)).toLocaleString("en")} ms`;
}
