// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// The picture of a consumer: itself, its brokers, and the providers behind them as far as it knows them. It is a function of what is known,
// and draws nothing.

import type { Cluster, Flow } from "../api";
import { thickness } from "../map/layout";
import { compare } from "../map/model";
import { count, cut, plain } from "../map/text";

/** How many pods are where and are reached how. provider is missing where nobody tells it. */
export interface Place { key: string; broker: Cluster; provider?: Cluster; direct: number; relay: number; unknown: number; ready: number; pods: number }

export interface Shape { key: string; x: number; y: number; w: number; h: number; name: string; sub: string; title: string; query?: Record<string, string> }
export interface Stroke { key: string; kind: "direct" | "relay" | "unknown" | "idle"; d: string; width: number }
export interface Picture { width: number; height: number; own: Shape; brokers: Shape[]; places: Shape[]; lines: Stroke[]; headings: { text: string; x: number; anchor: "start" | "middle" | "end" }[] }

/** How many providers are drawn; the table has all of them. */
export const mostDrawn = 40;

const byName = (a: Cluster, b: Cluster) => compare(named(a), named(b)) || compare(a.id, b.id);
const named = (c: Cluster | undefined) => plain(c?.name || c?.id);

/** Adds up flows: those with most pods come first, for each broker. */
export function placesOf(flows: readonly Flow[]): Place[] {
  const all = new Map<string, Place>();
  for (const f of flows) {
    const broker = f.broker ?? { id: "" };
    const key = JSON.stringify([broker.id, f.provider?.id]);
    const place = all.get(key) ?? { key, broker, ...(f.provider ? { provider: f.provider } : {}), direct: 0, relay: 0, unknown: 0, ready: 0, pods: 0 };
    place[f.path ?? "unknown"] += f.pods;
    place.pods += f.pods;
    place.ready += f.ready;
    all.set(key, place);
  }
  return [...all.values()].sort((a, b) => byName(a.broker, b.broker) || b.pods - a.pods || compare(a.key, b.key));
}

const brokersOf = (places: readonly Place[]) => [...new Set(places.map((p) => p.broker.id))];

/** Where everything is in so many px. Brokers are drawn also without pods. */
export function draw(own: string, brokers: readonly Cluster[], places: readonly Place[], width: number): Picture {
  // Lines that go past a broker come from above.
  const told = places.some((p) => p.provider); // Who is told of none sees brokers alone.
  const first = told ? places.slice(0, mostDrawn) : [];
  const drawn = brokersOf(first).flatMap((id) => first.filter((p) => p.broker.id === id && p.direct > 0).concat(first.filter((p) => p.broker.id === id && p.direct === 0)));
  const shown = new Map([...brokers, ...drawn.map((p) => p.broker)].map((b) => [b.id, b]));
  const narrow = width < 620;
  const edge = narrow ? 8 : 24;
  const w = narrow ? Math.floor(width * 0.27) : Math.min(Math.floor(width * 0.22), 220);
  const [h, gap, top] = [48, 12, 36];
  const direct = drawn.some((p) => p.direct > 0);
  const lane = top + 14;
  const head = direct ? 44 : 0; // What goes past the brokers has the room above them.
  const rows = Math.max(drawn.length, shown.size, 1);
  const column = rows * (h + gap) - gap;
  const height = top + head + Math.max(column, 96) + 24;
  const middle = top + head + (height - 24 - top - head) / 2;
  const [left, center, right] = [edge, told ? (width - w) / 2 : width - edge - w, width - edge - w];
  const inside = w - 20;
  const shape = (key: string, x: number, y: number, name: string, pods: number, what: string, query?: Record<string, string>): Shape => ({
    key, x, y, w, h, name: cut(name, inside, 13), sub: cut(count(pods, "pod"), inside, 12), title: `${what} ${name}: ${count(pods, "pod")}`, ...(query ? { query } : {}),
  });

  const sum = (all: readonly Place[]) => all.reduce((n, p) => n + p.pods, 0);
  const at = shape("own", left, middle - h / 2, own, sum(places), "This cluster", {});
  let y = middle - (drawn.length * (h + gap) - gap) / 2;
  const ends = drawn.map((p) => {
    const box = shape(p.key, right, y, p.provider ? named(p.provider) : "not told", p.pods, p.provider ? "Provider" : "A provider that is not told, at", { ...(p.provider ? { provider: p.provider.id } : {}) });
    y += h + gap;
    return { p, box };
  });
  const each = (height - 24 - top - head) / shown.size;
  const boxes = [...shown.values()].sort(byName).map((b, i) => shape(b.id, center, top + head + each * (i + 0.5) - h / 2, named(b), 0, "Broker"));

  const lines: Stroke[] = [];
  const line = (key: string, kind: Stroke["kind"], pods: number, d: string) => lines.push({ key: `${kind}/${key}`, kind, width: thickness(pods), d });
  const curve = (x1: number, y1: number, x2: number, y2: number) => `M${x1} ${y1}C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}`;
  for (const b of boxes) {
    const there = places.filter((p) => p.broker.id === b.key);
    const [relay, unknown] = [there.reduce((n, p) => n + p.relay, 0), there.reduce((n, p) => n + p.unknown, 0)];
    const kind = relay > 0 ? "relay" : unknown > 0 ? "unknown" : "idle";
    b.sub = cut(narrow ? relay.toLocaleString("en") : `${relay.toLocaleString("en")} relayed`, inside, 12);
    b.title = `Broker ${b.name}: ${count(relay, "pod")} relayed`;
    line(b.key, kind, relay || unknown, curve(left + w, middle, center, b.y + h / 2));
  }
  for (const { p, box } of ends) {
    const from = boxes.find((b) => b.key === p.broker.id)!;
    for (const kind of ["relay", "unknown"] as const) {
      const beside = p.relay > 0 && p.unknown > 0 ? (kind === "relay" ? -7 : 7) : 0;
      if (p[kind] > 0) line(p.key, kind, p[kind], curve(center + w, from.y + h / 2, right, box.y + h / 2 + beside));
    }
    if (p.direct > 0) line(p.key, "direct", p.direct, curve(center + w, lane, right, box.y + 12));
  }
  const past = drawn.reduce((n, p) => n + p.direct, 0);
  if (past > 0) line("own", "direct", past, `${curve(left + w, middle - 12, center, lane)}H${center + w}`);
  const providers = new Set(drawn.flatMap((p) => p.provider?.id ?? [])).size;
  return {
    width, height, own: at, brokers: boxes, places: ends.map((e) => e.box), lines,
    headings: [
      { text: cut("this cluster", w, 12), x: left, anchor: "start" }, { text: cut(count(shown.size, "broker"), w, 12), x: center + w / 2, anchor: "middle" },
      { text: !told ? "" : cut(drawn.length < places.length ? `${drawn.length} of ${count(places.length, "provider")}` : count(providers, "provider"), w, 12), x: width - edge, anchor: "end" },
    ],
  };
}
