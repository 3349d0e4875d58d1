// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Where everything of the map is: a pure function of what is known and of a few options. Places follow from sorted names alone, so that
// nothing moves because numbers change. It draws nothing.

import { compare, total, type Model, type Node, type Pair, type Path, type State, type Tunnel } from "./model";
import { count, cut, trip, widthOf } from "./text";

export type Grouping = "none" | "state" | "region";

export interface Options {
  /** Width of the picture, in px. */
  width: number;
  grouping: Grouping;
  /** Keys of clusters or groups whose own curves are drawn: what is selected, and what the pointer or the focus is on. */
  focus?: readonly string[];
}

/** A cluster, or a group of them. Its texts are cut so that they are inside. */
export interface Box {
  key: string;
  x: number; y: number; w: number; h: number;
  state: State | "group";
  name: string;
  /** A second line; empty where there is no room for it. */
  sub: string;
  /** All of it in words, beginning with what is written in it. */
  title: string;
  members: Node[];
  /** The members of a group as one path for each state. */
  tiles: { state: State; d: string }[];
  grid?: { x: number; y: number; columns: number; pitch: number };
  on: boolean;
}

export type LineKind = Path | "idle" | "down";

export interface Label { text: string; down?: boolean; x: number; y: number; anchor: "start" | "middle" | "end" }

/** A trunk to the broker, or a curve past it. consumer and provider are the only cluster at an end, if there is one. */
export interface Line {
  key: string;
  kind: LineKind;
  path?: Path;
  d: string;
  width: number;
  title: string;
  label?: Label;
  consumer?: Node;
  provider?: Node;
  on: boolean;
}

export interface Drawing {
  width: number; height: number;
  boxes: Box[];
  broker: { x: number; y: number; w: number; h: number; name: string; sub: string };
  /** Where pods wait that are on no provider, and the lines to there as one path. */
  waiting?: { x: number; y: number; w: number; h: number; text: string; d: string };
  headings: Label[];
  lines: Line[];
  /** Curves of what is in focus within groups, and how many there are in truth. */
  singles: { key: string; kind: Path; d: string; width: number }[];
  allSingles: number;
  /** Tiles in focus. */
  marks: { x: number; y: number; size: number }[];
  focused: boolean;
  /** How many elements of SVG it takes. */
  elements: number;
}

export const most = { single: 60, parts: 10, groups: 20, curves: 120, elements: 1500 };
const top = 40;
const bottom = 16;
const labelSize = 11;

/** Width of a line for so many pods, in px. */
export function thickness(pods: number): number {
  return pods > 0 ? Math.min(Math.round((1.2 + 1.1 * Math.log2(1 + pods)) * 10) / 10, 12) : 1.3;
}

/** What pods and tunnels are along a line, in words: "3 pods, tunnel up, 12 ms". */
export function say(pods: number | undefined, tunnel: Tunnel | undefined): string {
  const parts = [pods === undefined ? "pods unknown" : count(pods, "pod")];
  if (tunnel) parts.push({ up: "tunnel up", down: "tunnel down", unknown: "tunnel unknown" }[tunnel.state], trip(tunnel.seconds) ?? "round trip not measured");
  return parts.join(", ");
}

export function layOut(model: Model, options: Options): Drawing {
  const width = Math.max(Math.floor(options.width), 300);
  const narrow = width < 620;
  const used = Math.min(width - (narrow ? 12 : 32), 1320);
  const left = Math.floor((width - used) / 2);
  const focus = new Set(options.focus);

  const consumers = groupsOf(model.consumers, model.consumers.length > most.single ? "parts" : "none");
  const many = model.providers.length > most.single;
  const providers = groupsOf(model.providers, many && options.grouping === "none" ? "parts" : options.grouping, !many);
  const boxWidth = narrow ? Math.floor(used * 0.29) : Math.round(Math.min(Math.max(used * 0.2, 150), 230));
  const wide = many && !narrow ? Math.round(used * 0.28) : boxWidth;
  const tall = { consumers: stack(consumers, boxWidth), providers: stack(providers, wide) };
  const boxes = [...tall.consumers.boxes, ...tall.providers.boxes];
  const boxOf = new Map(boxes.flatMap((b) => b.members.map((m) => [m.key, b] as const)));

  // Both columns stand around the middle, and what goes past the broker has a lane of its own above or below it.
  const column = Math.max(tall.consumers.height, tall.providers.height);
  tall.consumers.boxes.forEach((b) => shift(b, left, (column - tall.consumers.height) / 2));
  tall.providers.boxes.forEach((b) => shift(b, left + used - wide, (column - tall.providers.height) / 2));
  const routes = past(model, boxOf, column / 2);
  const lanes = Math.max(routes.filter((r) => r.above).length, routes.filter((r) => !r.above).length);
  const ports = Math.max(tall.consumers.boxes.length, tall.providers.boxes.length);
  const brokerHeight = Math.min(Math.max(72, ports * 13 + 16), 240);
  const pill = model.waiting > 0 ? 40 : 0;
  const step = lanes <= 8 ? 26 : lanes <= 20 ? 16 : 200 / lanes;
  const height = top + bottom + Math.ceil(Math.max(column, brokerHeight + 2 * (pill + 16 + lanes * step), 200));
  const down = (height - top - bottom - column) / 2 + top;
  boxes.forEach((b) => shift(b, 0, down));
  const middle = (height - top - bottom) / 2 + top;

  const bw = narrow ? Math.floor(used * 0.25) : 132;
  const gap = (used - boxWidth - wide - bw) / 2;
  const bx = Math.round(left + boxWidth + gap);
  const by = Math.round(middle - brokerHeight / 2);
  const relayed = model.pairs.reduce((sum, p) => sum + p.pods.relay, 0);
  const broker = {
    x: bx, y: by, w: bw, h: brokerHeight, name: cut(model.broker, bw - 12, 13),
    sub: cut(model.counted ? `${relayed.toLocaleString("en")} relayed` : "broker", bw - 12, 12),
  };
  boxes.forEach((b) => write(b, model.counted, narrow));

  const related = relatedTo(model, boxes, focus);
  boxes.forEach((b) => (b.on = b.members.some((m) => related.has(m.key))));

  const lines: Line[] = [];
  const busy = new Set(routes.filter((r) => r.above).flatMap((r) => [r.from, r.to]));
  for (const side of [tall.consumers.boxes, tall.providers.boxes]) {
    const room = (brokerHeight - 16) / side.length;
    side.forEach((b, i) => {
      const line = trunk(b, broker, by + 8 + room * (i + 0.5), gap, model.counted, busy.has(b));
      line.width = Math.min(line.width, Math.max(room * 0.7, 2));
      lines.push(line);
    });
  }

  const center = bx + bw / 2;
  let above = 0;
  let below = 0;
  for (const r of routes) {
    const y = r.above ? by - 16 - step * (above++ + 0.5) : by + brokerHeight + 16 + pill + step * (below++ + 0.5);
    const name = (nodes: Node[], noun: string) => (nodes.length === 1 ? nodes[0]!.name : count(nodes.length, noun));
    const line: Line = {
      key: r.key, kind: kindOf(r.tunnel, r.pods, r.path), path: r.path,
      width: Math.min(widthFor(r.tunnel, r.pods), Math.max(step * 0.6, 1.3)), d: around(r.from, r.to, y, broker, r.above),
      title: `${name(r.consumers, "consumer")} to ${name(r.providers, "provider")}, ${r.path === "direct" ? "direct" : "path unknown"}: `
        + say(model.counted ? r.pods : undefined, r.path === "direct" ? r.tunnel : undefined),
      on: r.consumers.some((n) => focus.has(n.key)) || r.providers.some((n) => focus.has(n.key)) || focus.has(r.from.key) || focus.has(r.to.key),
    };
    if (r.consumers.length === 1) line.consumer = r.consumers[0]!;
    if (r.providers.length === 1) line.provider = r.providers[0]!;
    const text = labelOf(r.tunnel, r.tunnel && !r.bundle ? r.pods : 0, narrow);
    if (step >= 16 && !r.bundle && text) line.label = { text, down: r.tunnel?.state === "down", x: center, y: y - line.width / 2 - 4, anchor: "middle" };
    lines.push(line);
  }

  const drawing: Drawing = {
    width, height, boxes, broker, lines, singles: [], allSingles: 0, marks: [], focused: related.size > 0, elements: 0,
    headings: [
      { text: cut(count(model.consumers.length, "consumer"), boxWidth, 12), x: left, y: 20, anchor: "start" },
      { text: cut("broker", bw + gap, 12), x: center, y: 20, anchor: "middle" },
      { text: cut(count(model.providers.length, "provider"), wide, 12), x: left + used, y: 20, anchor: "end" },
    ],
  };
  if (model.waiting > 0) {
    const text = cut(narrow ? `${model.waiting.toLocaleString("en")} wait` : `${count(model.waiting, "pod")} ${model.waiting === 1 ? "waits" : "wait"}`, bw - 16, 12);
    const w = { x: bx, y: by + brokerHeight + 12, w: bw, h: 26 };
    const d = tall.consumers.boxes.filter((b) => b.members.some((m) => m.waiting > 0))
      .map((b) => curve(b.x + b.w, b.y + b.h / 2 + Math.min(20, b.h / 2 - 6), w.x, w.y + w.h / 2)).join("");
    drawing.waiting = { ...w, text, d };
  }
  if (focus.size > 0) addSingles(drawing, model, boxOf, focus);
  drawing.elements = elementsOf(drawing);
  return drawing;
}

/** The member of a group whose tile is at a place. */
export function memberAt(box: Box, x: number, y: number): Node | undefined {
  if (!box.grid) return undefined;
  const column = Math.floor((x - box.grid.x) / box.grid.pitch);
  const row = Math.floor((y - box.grid.y) / box.grid.pitch);
  return column < 0 || row < 0 || column >= box.grid.columns ? undefined : box.members[row * box.grid.columns + column];
}

interface Group { key: string; name: string; members: Node[] }

/** Puts clusters together: each alone, parts of about equal size in the order of names, or by what they have in common. */
function groupsOf(nodes: Node[], by: Grouping | "parts", apart = false): Group[] {
  if (by === "none") return nodes.map((n) => ({ key: n.key, name: n.name, members: [n] }));
  if (by === "parts") {
    const size = Math.ceil(nodes.length / most.parts);
    return Array.from({ length: Math.ceil(nodes.length / size) }, (_, i) => {
      const members = nodes.slice(i * size, (i + 1) * size);
      return { key: `part/${members[0]!.role}/${i}`, name: `${cut(members[0]!.name, 90, 13)} to ${members.at(-1)!.name}`, members };
    });
  }
  const nameOf = (n: Node) => (by === "state" ? n.word : n.region ?? "no region");
  const found = new Map<string, Node[]>();
  for (const n of nodes) found.set(nameOf(n), [...(found.get(nameOf(n)) ?? []).concat(n)]);
  const groups = [...found].sort(([a], [b]) => compare(a, b)).map(([name, members]) => ({ key: `${by}/${name}`, name, members }));
  if (apart) return groups.flatMap((g) => groupsOf(g.members, "none"));
  if (groups.length <= most.groups) return groups;
  const rest = groups.splice(most.groups - 1).flatMap((g) => g.members);
  return [...groups, { key: `${by}/`, name: "others", members: rest }];
}

/** Puts boxes below each other, from 0. */
function stack(groups: Group[], w: number): { boxes: Box[]; height: number } {
  const n = groups.length;
  const [h, space] = n <= 6 ? [56, 40] : n <= 12 ? [46, 16] : n <= 24 ? [38, 9] : [20, 5];
  const all = groups.reduce((sum, g) => sum + g.members.length, 0);
  const pitch = all > 400 ? 9 : 12;
  let y = 0;
  const boxes = groups.map((g): Box => {
    const box: Box = { key: g.key, x: 0, y, w, h, state: g.members[0]!.state, name: g.name, sub: "", title: "", members: g.members, tiles: [], on: false };
    if (g.members.length > 1 || g.key !== g.members[0]!.key) {
      const columns = Math.max(Math.floor((w - 20) / pitch), 1);
      box.state = "group";
      box.grid = { x: 10, y: y + 46, columns, pitch };
      box.h = 46 + Math.ceil(g.members.length / columns) * pitch + 8;
    }
    y += box.h + (box.grid ? 12 : space);
    return box;
  });
  return { boxes, height: Math.max(y - (boxes.at(-1)?.grid ? 12 : space), 0) };
}

function shift(b: Box, x: number, y: number): void {
  b.x += x;
  b.y = Math.round(b.y + y);
  if (b.grid) b.grid = { ...b.grid, x: b.grid.x + x, y: b.y + 46 };
}

/** Writes into a box what is said of its members, once it has its place. */
function write(b: Box, counted: boolean, narrow: boolean): void {
  const pods = b.members.reduce((sum, m) => sum + total(m.pods), 0);
  const waiting = b.members.reduce((sum, m) => sum + m.waiting, 0);
  const parts = counted ? [count(pods, "pod")] : narrow ? [] : ["pods unknown"];
  if (waiting > 0) parts.push(`${waiting.toLocaleString("en")} wait`);
  const one = b.members[0]!;
  if (b.grid) {
    const wrong = b.members.filter((m) => m.state === "problem").length;
    if (wrong > 0) parts.push(count(wrong, "problem"));
    const noun = one.role;
    const rest = [...(cut(b.name, b.w - 20, 13) === b.name ? [] : [b.name]), count(b.members.length, noun), ...parts].join(", ");
    b.sub = fitted([...parts, count(b.members.length, noun)], b.w - 20);
    b.name = cut(b.name, b.w - 20, 13);
    b.title = `${b.name} ${b.sub}: ${rest}`;
    for (const state of ["ok", "problem", "off", "unknown"] as const) {
      const d = b.members.map((m, i) => (m.state === state ? tile(b, i, state) : "")).join("");
      if (d) b.tiles.push({ state, d });
    }
    return;
  }
  const trips = trip(one.tunnel.seconds);
  if (narrow && trips) parts.push(trips);
  const state = one.state === "ok" ? [] : [one.word];
  const room = b.w - 34;
  if (b.h >= 36) {
    b.sub = fitted([...state, ...parts], room);
    b.name = cut(b.name, room, 13);
  } else {
    // One line: the name, and after it what is left of the room.
    const short = !narrow && counted && pods > 0 ? pods.toLocaleString("en") : "";
    b.sub = short;
    b.name = cut(b.name, room - widthOf(short, 12) - (short ? 8 : 0), 12);
  }
  const rest = [one.role, ...(b.name === one.name ? [] : [one.name]), one.word, say(counted ? pods : undefined, one.tunnel)];
  if (waiting > 0) rest.push(`${waiting} waiting`);
  b.title = `${[b.name, b.sub].filter(Boolean).join(" ")}: ${rest.join(", ")}`;
}

/** As many of the texts as there is room for, and at least the beginning of the first. */
function fitted(parts: string[], room: number): string {
  let text = cut(parts[0] ?? "", room, 12);
  for (const part of parts.slice(1)) if (widthOf(`${text} · ${part}`, 12) <= room) text += ` · ${part}`;
  return text;
}

/** A tile says by its form what its colour says: full, a triangle, hollow, a dot. */
function tile(b: Box, i: number, state: State): string {
  const { x, y, size } = placeOf(b, i);
  const s = size;
  switch (state) {
    case "ok": return `M${x} ${y}h${s}v${s}h${-s}z`;
    case "problem": return `M${x + s / 2} ${y - 1}l${s / 2 + 1} ${s + 1}h${-s - 2}z`;
    case "off": return `M${x} ${y}h${s}v${s}h${-s}zM${x + 2} ${y + 2}v${s - 4}h${s - 4}v${4 - s}z`;
    default: return `M${x + s / 2 - 1.5} ${y + s / 2 - 1.5}h3v3h-3z`;
  }
}

function placeOf(b: Box, i: number): { x: number; y: number; size: number } {
  const g = b.grid!;
  return { x: g.x + (i % g.columns) * g.pitch, y: g.y + Math.floor(i / g.columns) * g.pitch, size: g.pitch - 3 };
}

function curve(x1: number, y1: number, x2: number, y2: number): string {
  const half = (x1 + x2) / 2;
  return `M${n(x1)} ${n(y1)}C${n(half)} ${n(y1)} ${n(half)} ${n(y2)} ${n(x2)} ${n(y2)}`;
}

function n(value: number): number {
  return Math.round(value * 10) / 10;
}

/** A curve from a consumer to a provider by a lane past the broker. */
function around(from: Box, to: Box, y: number, broker: Drawing["broker"], above: boolean): string {
  const part = (b: Box) => b.y + b.h / 2 + (above ? -1 : 1) * Math.min(b.h / 4, 12);
  return curve(from.x + from.w, part(from), broker.x, y) + `H${broker.x + broker.w}` + curve(broker.x + broker.w, y, to.x, part(to)).replace(/^M[^C]+/, "");
}

/** Dots of a tunnel that is down are large enough to be seen. */
function widthFor(tunnel: Tunnel | undefined, pods: number): number {
  return Math.max(thickness(pods), tunnel?.state === "down" ? 3 : 0);
}

function kindOf(tunnel: Tunnel | undefined, pods: number, path: Path): LineKind {
  if (tunnel?.state === "down") return "down";
  if (path === "unknown") return "unknown";
  if (pods > 0) return path;
  return tunnel?.state === "up" ? "idle" : "unknown";
}

function labelOf(tunnel: Tunnel | undefined, pods: number, narrow: boolean): string {
  if (!tunnel) return "";
  const state = tunnel.state === "down" ? "down" : tunnel.state === "unknown" ? "tunnel unknown" : trip(tunnel.seconds) ?? "not measured";
  return pods > 0 && !narrow ? `${state} · ${count(pods, "pod")}` : state;
}

/** The tunnel of all members: down only if all are, unknown if none is known; round trips only of one. */
function common(members: Node[]): Tunnel {
  if (members.length === 1) return members[0]!.tunnel;
  const states = members.map((m) => m.tunnel.state);
  return { state: states.includes("up") ? "up" : states.includes("down") ? "down" : "unknown" };
}

function trunk(b: Box, broker: Drawing["broker"], port: number, gap: number, counted: boolean, below: boolean): Line {
  const consumer = b.members[0]!.role === "consumer";
  const y = b.y + b.h / 2;
  const x = consumer ? b.x + b.w : b.x;
  const pods = b.members.reduce((sum, m) => sum + m.pods.relay, 0);
  const tunnel = common(b.members);
  const one = b.members.length === 1 ? b.members[0]! : undefined;
  const lost = b.members.filter((m) => m.tunnel.state === "down").length;
  const line: Line = {
    key: `trunk/${b.key}`, kind: tunnel.state === "unknown" && pods > 0 ? "relay" : kindOf(tunnel, pods, "relay"), path: "relay",
    width: Math.min(widthFor(tunnel, pods), b.h < 36 ? 8 : 12), on: b.on,
    d: consumer ? curve(x, y, broker.x, port) : curve(broker.x + broker.w, port, x, y),
    title: `${one?.name ?? b.name} and the broker, relayed: ${say(counted ? pods : undefined, tunnel)}`,
  };
  if (one) line[one.role] = one;
  const text = one ? (b.h < 36 && tunnel.state === "up" ? trip(tunnel.seconds) ?? "? ms" : labelOf(tunnel, 0, true)) : lost > 0 ? `${lost} down` : "";
  if (text && widthOf(text, labelSize) + 16 < gap) {
    // On the side on which nothing leaves for a lane.
    const aside = below && b.h >= 36 ? line.width / 2 + 12 : -line.width / 2 - 4;
    line.label = { text, down: tunnel.state === "down" || lost > 0, x: consumer ? x + 8 : x - 8, y: n(y + aside), anchor: consumer ? "start" : "end" };
  }
  return line;
}

interface Route { key: string; from: Box; to: Box; consumers: Node[]; providers: Node[]; path: Path; pods: number; tunnel?: Tunnel; bundle: boolean; above: boolean }

/** What goes past the broker, from the outside to the inside of its lanes: pairs of boxes, or of tenths of them where these are too many. */
function past(model: Model, boxOf: Map<string, Box>, middle: number): Route[] {
  const lone = (p: Pair) => [boxOf.get(p.consumer.key)!, boxOf.get(p.provider.key)!] as const;
  let routes = routed(model.pairs, lone);
  if (routes.length > most.curves) {
    const part = (all: Node[], b: Box) => {
      const boxes = [...new Set(all.map((m) => boxOf.get(m.key)!))];
      const size = Math.ceil(boxes.length / most.parts);
      return boxes[Math.min(Math.floor(boxes.indexOf(b) / size) * size + (size >> 1), boxes.length - 1)]!;
    };
    const parts = new Map<string, Box>();
    for (const all of [model.consumers, model.providers]) {
      const of = new Map([...new Set(all.map((m) => boxOf.get(m.key)!))].map((b) => [b, part(all, b)]));
      all.forEach((m) => parts.set(m.key, of.get(boxOf.get(m.key)!)!));
    }
    routes = routed(model.pairs, (p) => [parts.get(p.consumer.key)!, parts.get(p.provider.key)!]);
  }
  const natural = (r: Route) => (r.from.y + r.from.h / 2 + r.to.y + r.to.h / 2) / 2;
  for (const r of routes) r.above = natural(r) <= middle;
  // Lanes are given out from the broker outwards.
  return routes.sort((a, b) => Math.abs(natural(a) - middle) - Math.abs(natural(b) - middle) || compare(a.key, b.key));
}

function routed(pairs: Pair[], ends: (p: Pair) => readonly [Box, Box]): Route[] {
  const found = new Map<string, Route>();
  for (const p of pairs) {
    for (const path of ["direct", "unknown"] as const) {
      if (p.pods[path] === 0 && !(path === "direct" && p.tunnel)) continue;
      const [from, to] = ends(p);
      const key = JSON.stringify([path, from.key, to.key]);
      const known = found.get(key);
      if (!known) {
        const tunnel: Tunnel | undefined = path === "direct" ? p.tunnel ?? { state: "unknown" } : undefined;
        found.set(key, { key, from, to, consumers: [p.consumer], providers: [p.provider], path, pods: p.pods[path], tunnel, bundle: false, above: true });
        continue;
      }
      known.pods += p.pods[path];
      known.bundle = true;
      if (!known.consumers.includes(p.consumer)) known.consumers.push(p.consumer);
      if (!known.providers.includes(p.provider)) known.providers.push(p.provider);
      if (known.tunnel) known.tunnel = { state: known.tunnel.state === "up" || p.tunnel?.state === "up" ? "up" : known.tunnel.state };
    }
  }
  return [...found.values()];
}

/** The keys of what is in focus, and of all with which it has pods. */
function relatedTo(model: Model, boxes: Box[], focus: ReadonlySet<string>): Set<string> {
  const own = new Set<string>();
  for (const b of boxes) for (const m of b.members) if (focus.has(m.key) || focus.has(b.key)) own.add(m.key);
  const related = new Set(own);
  for (const p of model.pairs) {
    if (own.has(p.consumer.key)) related.add(p.provider.key);
    if (own.has(p.provider.key)) related.add(p.consumer.key);
  }
  return related;
}

/** Adds the curves of what is in focus, those with most pods first, where boxes are groups or curves are bundled. */
function addSingles(drawing: Drawing, model: Model, boxOf: Map<string, Box>, focus: ReadonlySet<string>): void {
  const spot = new Map<string, { x: number; y: number }>();
  for (const b of drawing.boxes) {
    b.members.forEach((m, i) => {
      // Only what is in focus has its curves from its tile: they would cover the names of others.
      const at = b.grid && (focus.has(m.key) || focus.has(b.key)) ? placeOf(b, i) : undefined;
      const consumer = m.role === "consumer";
      spot.set(m.key, at ? { x: at.x + at.size / 2, y: at.y + at.size / 2 } : { x: consumer ? b.x + b.w : b.x, y: b.y + b.h / 2 });
      if (at && focus.has(m.key)) drawing.marks.push(at);
    });
  }
  const { broker } = drawing;
  const bundled = drawing.lines.some((l) => l.path !== "relay" && !(l.consumer && l.provider));
  const all = model.pairs.flatMap((p) => (["relay", "direct", "unknown"] as const).map((path) => ({ p, path, pods: p.pods[path] }))).filter(({ p, path, pods }) => {
    const ends = [p.consumer, p.provider];
    if (pods === 0 || !ends.some((m) => focus.has(m.key) || focus.has(boxOf.get(m.key)!.key))) return false;
    return ends.some((m) => boxOf.get(m.key)!.grid) || (bundled && path !== "relay");
  }).sort((a, b) => b.pods - a.pods || compare(a.p.key, b.p.key) || compare(a.path, b.path));
  drawing.allSingles = all.length;
  drawing.singles = all.slice(0, most.curves).map(({ p, path, pods }) => {
    const from = spot.get(p.consumer.key)!;
    const to = spot.get(p.provider.key)!;
    const y = path === "relay" ? broker.y + broker.h / 2 : from.y + to.y <= 2 * (broker.y + broker.h / 2) ? broker.y - 10 : broker.y + broker.h + 10;
    const d = curve(from.x, from.y, broker.x, y) + `H${broker.x + broker.w}` + curve(broker.x + broker.w, y, to.x, to.y).replace(/^M[^C]+/, "");
    return { key: `${path}/${p.key}`, kind: path, d, width: Math.min(thickness(pods), 6) };
  });
  drawing.marks.splice(most.curves);
}

/** How many elements screen.tsx draws, with the frame's own. */
function elementsOf(d: Drawing): number {
  let sum = 4 + d.headings.length + d.singles.length + d.marks.length + (d.waiting ? 4 : 0);
  for (const b of d.boxes) sum += 3 + (b.sub ? 1 : 0) + (b.grid ? b.tiles.length : 1);
  for (const l of d.lines) sum += 2 + (l.label ? 1 : 0);
  return sum;
}
