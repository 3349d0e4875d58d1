// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Where the states of a contract are drawn, and which of them it went through. It knows no screen.

import type { Contract } from "../trade";

export const box = { width: 104, height: 32, across: 128, down: 56, edge: 4 };

/** The places of all states: the way that goes well is the middle row, what interrupts it is above, and other ends are below. */
const places: Record<string, [column: number, row: number]> = {
  Proposed: [0, 1], Reserved: [1, 1], Signed: [2, 1], Provisioning: [3, 1], Active: [4, 1], Terminating: [5, 1], Ended: [6, 1],
  Resizing: [4, 0], Suspended: [5, 0], Rejected: [0, 2], Expired: [1, 2], Failed: [3, 2],
};

/** What can follow what, of what is drawn: from most states the buyer or a notice leads to the end, and that is drawn from Active alone. */
const arrows: [from: string, to: string][] = [
  ["Proposed", "Reserved"], ["Reserved", "Signed"], ["Signed", "Provisioning"], ["Provisioning", "Active"], ["Active", "Terminating"], ["Terminating", "Ended"],
  ["Active", "Resizing"], ["Resizing", "Active"], ["Active", "Suspended"], ["Suspended", "Active"], ["Resizing", "Suspended"],
  ["Proposed", "Rejected"], ["Proposed", "Expired"], ["Reserved", "Expired"], ["Signed", "Failed"], ["Provisioning", "Failed"],
];

export interface Drawn {
  width: number;
  height: number;
  states: { name: string; x: number; y: number; when: "past" | "now" | "other" }[];
  /** The taken ones come last: they are drawn over the others. */
  arrows: { d: string; taken: boolean }[];
}

/** Draws the states of a contract; a way that it took and that is none of the known ones is drawn too. */
export function drawn(of: Pick<Contract, "state" | "steps">): Drawn {
  const steps = (of.steps ?? []).filter((step) => Object.hasOwn(places, step.to));
  const seen = new Set(steps.flatMap((step) => [step.from ?? "", step.to]));
  const took = new Set(steps.filter((step) => Object.hasOwn(places, step.from ?? "") && step.from !== step.to).map((step) => `${step.from} ${step.to}`));
  const all = new Set([...arrows.map((one) => one.join(" ")), ...took]);
  const lines = [...all].map((name) => {
    const [from, to] = name.split(" ") as [string, string];
    return { d: line(places[from]!, places[to]!), taken: took.has(name) };
  });
  return {
    width: 6 * box.across + box.width + 2 * box.edge, height: 2 * box.down + box.height + 2 * box.edge,
    states: Object.entries(places).map(([name, [column, row]]) => ({
      name, x: box.edge + column * box.across, y: box.edge + row * box.down, when: name === of.state ? "now" : seen.has(name) ? "past" : "other",
    })),
    arrows: lines.sort((a, b) => Number(a.taken) - Number(b.taken)),
  };
}

/** A line from the edge of a box to that of another. */
function line([c1, r1]: [number, number], [c2, r2]: [number, number]): string {
  const middle = (c: number, r: number) => [box.edge + c * box.across + box.width / 2, box.edge + r * box.down + box.height / 2] as const;
  const [x1, y1] = middle(c1, r1), [x2, y2] = middle(c2, r2);
  const right = Math.sign(c2 - c1), down = Math.sign(r2 - r1);
  if (r1 === r2) {
    const [from, to] = [x1 + (right * box.width) / 2, x2 - (right * box.width) / 2];
    // What passes over other states goes below them.
    return Math.abs(c2 - c1) === 1 ? `M${from} ${y1}H${to}` : `M${x1} ${y1 + box.height / 2}Q${(x1 + x2) / 2} ${y1 + box.height * 1.6} ${x2} ${y2 + box.height / 2}`;
  }
  // A way and the way back are side by side.
  const shift = c1 === c2 ? -8 * down : 0;
  return `M${x1 + right * 24 + shift} ${y1 + (down * box.height) / 2}L${x2 - right * 24 + shift} ${y2 - (down * box.height) / 2}`;
}
