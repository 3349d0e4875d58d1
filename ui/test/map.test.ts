// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// The layout of the map: the same data give the same picture, nothing lies on anything else, and names of others stay text in their boxes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { layOut, memberAt, most, thickness, type Box, type Drawing, type Grouping } from "../src/map/layout";
import { keyOf, read, type Data, type Flow, type Link, type Member } from "../src/map/model";
import { cut, plain, trip, widthOf } from "../src/map/text";

const broker = { id: "b", name: "broker" };

function random(seed: number): () => number {
  return () => (seed = (seed * 16807) % 2147483647) / 2147483647;
}

/** Clusters with tunnels to the broker, and pods between them of which a third is reached directly. */
function federation(consumers: number, providers: number, pods: number, name = (role: string, i: number) => `${role}-${i}`): Required<Data> {
  const next = random(consumers * 7919 + providers);
  const members = (role: string, n: number): Member[] => Array.from({ length: n }, (_, i) => ({
    id: `${role}${i}`, name: name(role, i), ready: i % 7 !== 3, reason: i % 7 === 3 ? "NodeNotReady" : "Offering",
    scheduling: i % 11 === 5 ? "Cordoned" : "Active", labels: { "topology.kubernetes.io/region": `region-${i % 12}` },
  }));
  const [cs, ps] = [members("c", consumers), members("p", providers)];
  const links: Link[] = [...cs, ...ps].map((to, i) => ({ from: broker, to, kind: "Broker", connected: i % 13 !== 6, roundTripSeconds: 0.001 + next() / 20 }));
  const flows = new Map<string, Flow>();
  for (let i = 0; i < pods; i++) {
    const [consumer, provider] = [cs[Math.floor(next() * consumers)]!, ps[Math.floor(next() * providers)]!];
    const path = next() < 0.33 ? "direct" : "relay";
    const key = `${consumer.id} ${provider.id} ${path}`;
    const flow = flows.get(key) ?? { consumer, provider, path, pods: 0, ready: 0 };
    flow.pods++;
    flow.ready++;
    flows.set(key, flow);
    if (path === "direct" && flow.pods === 1) links.push({ from: consumer, to: provider, kind: "Direct", connected: true, roundTripSeconds: 0.003 });
  }
  return { consumers: cs, providers: ps, links, flows: [...flows.values()], brokerName: "broker" };
}

function draw(data: Data, options: { width?: number; grouping?: Grouping; focus?: string[] } = {}): Drawing {
  return layOut(read(data), { width: 1200, grouping: "none", ...options });
}

function shuffled<T>(list: readonly T[], next: () => number): T[] {
  return list.map((value) => ({ value, at: next() })).sort((a, b) => a.at - b.at).map(({ value }) => value);
}

interface Area { x: number; y: number; w: number; h: number }

function inside(inner: Area, outer: Area, what: string): void {
  const is = inner.x >= outer.x && inner.y >= outer.y && inner.x + inner.w <= outer.x + outer.w && inner.y + inner.h <= outer.y + outer.h;
  if (!is) assert.fail(`${what} at ${inner.x} ${inner.y} is outside of ${outer.x} ${outer.y} ${outer.w} ${outer.h}`);
}

/** Everything that must not lie on something else: boxes, the broker, and what is written beside them. */
function apart(d: Drawing): void {
  const areas: [string, Area][] = [["the broker", d.broker], ...d.boxes.map((b): [string, Area] => [b.name, b])];
  if (d.waiting) areas.push(["waiting", d.waiting]);
  for (const { label } of d.lines) {
    if (!label) continue;
    const w = widthOf(label.text, 11);
    areas.push([label.text, { x: label.x - (label.anchor === "end" ? w : label.anchor === "middle" ? w / 2 : 0), y: label.y - 9, w, h: 11 }]);
  }
  for (const [i, [name, a]] of areas.entries()) {
    inside(a, { x: 0, y: 24, w: d.width, h: d.height - 24 }, name);
    for (const [other, b] of areas.slice(i + 1)) {
      const free = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
      if (!free) assert.fail(`${name} at ${a.x} ${a.y} lies on ${other} at ${b.x} ${b.y}`);
    }
  }
}

const sizes: [number, number, number][] = [[0, 0, 0], [1, 0, 0], [1, 1, 3], [1, 2, 9], [3, 3, 30], [5, 12, 40], [60, 60, 3000], [61, 61, 600], [100, 1000, 3000]];
const groupings: Grouping[] = ["none", "state", "region"];

for (const [consumers, providers, pods] of sizes) {
  for (const grouping of groupings) {
    test(`${consumers} consumers, ${providers} providers and ${pods} pods by ${grouping}: nothing overlaps, few elements, any order`, () => {
      const data = federation(consumers, providers, pods);
      if (consumers > 0) data.flows = [...data.flows, { consumer: data.consumers[0]!, pods: 4, ready: 0 }];
      const next = random(5);
      const mixed = { ...data, consumers: shuffled(data.consumers, next), providers: shuffled(data.providers, next),
        links: shuffled(data.links, next), flows: shuffled(data.flows, next) };
      const [model, other] = [read(data), read(mixed)];
      for (const width of [328, 868, 1400]) {
        const d = layOut(model, { width, grouping });
        apart(d);
        assert.ok(JSON.stringify(layOut(other, { width, grouping })) === JSON.stringify(d), "another order gives another picture");
        assert.ok(d.boxes.length <= (providers > most.single ? most.groups : most.single) + most.single);
        for (const focus of [[], ["provider/p0"], [d.boxes[0]?.key ?? ""], [d.boxes.at(-1)?.key ?? ""]]) {
          const focused = layOut(model, { width, grouping, focus });
          assert.ok(focused.elements <= most.elements, `${focused.elements} elements`);
          assert.deepEqual(focused.boxes.map(place), d.boxes.map(place), "focus moves nothing");
        }
        for (const b of d.boxes) {
          if (!b.grid) continue;
          for (const [i, m] of b.members.entries()) {
            const grid: NonNullable<Box["grid"]> = b.grid;
            const x: number = grid.x + (i % grid.columns) * grid.pitch;
            const y: number = grid.y + Math.floor(i / grid.columns) * grid.pitch;
            assert.equal(memberAt(b, x + 2, y + 2), m);
            inside({ x, y, w: b.grid.pitch, h: b.grid.pitch }, b, "the tile of a member");
          }
          for (const [, x, y] of b.tiles.flatMap((t) => [...t.d.matchAll(/M([\d.]+) ([\d.]+)/g)])) {
            inside({ x: Number(x), y: Number(y), w: 3, h: 3 }, b, "what is drawn of a tile");
          }
        }
      }
    });
  }
}

const place = ({ key, x, y, w, h }: Box) => ({ key, x, y, w, h });

test("every consumer and every provider is in exactly one box", () => {
  const data = federation(100, 1000, 3000);
  for (const grouping of groupings) {
    const keys = draw(data, { grouping }).boxes.flatMap((b) => b.members.map((m) => m.key));
    assert.equal(keys.length, 1100);
    assert.equal(new Set(keys).size, 1100);
  }
});

test("more pods and another state move nothing", () => {
  const data = federation(5, 12, 40);
  const later = { ...data, flows: data.flows.map((f) => ({ ...f, pods: f.pods + 100 })), providers: data.providers.map((p) => ({ ...p, ready: false, reason: "NotPeered" })) };
  assert.deepEqual(draw(later).boxes.map(place), draw(data).boxes.map(place));
});

test("hostile names stay text within their boxes", () => {
  const hostile = ["<img src=x onerror=alert(1)>", "W".repeat(253), "@".repeat(253), "a\u202egnp\u2066.exe", "漢".repeat(100), "e" + "\u0301".repeat(250), "👩‍👩‍👧".repeat(40), "a\nb\u0000c", " ", ""];
  for (const count of [10, 30, 90]) {
    for (const width of [300, 868, 1400]) {
      const data = { ...federation(count, count, 200, (_, i) => hostile[i % hostile.length]!), brokerName: hostile[1]! };
      for (const d of groupings.map((grouping) => draw(data, { width, grouping }))) {
        apart(d);
        assert.ok(widthOf(d.broker.name, 13) <= d.broker.w - 8);
        for (const b of d.boxes) {
          const low = !b.grid && b.h < 36;
          const room = b.w - (b.grid ? 14 : 28) - (low && b.sub ? widthOf(b.sub, 12) : 0);
          assert.ok(widthOf(b.name, low ? 12 : 13) <= room, `${b.name} in ${room}`);
          assert.ok(low || widthOf(b.sub, 12) <= room, `${b.sub} in ${room}`);
          assert.doesNotMatch(b.name + b.sub + b.title, /[\p{Cc}\p{Cf}]|\p{M}\p{M}/u);
        }
      }
    }
  }
});

test("a tunnel that is down is drawn as down, with and without pods", () => {
  const data = federation(1, 2, 0);
  const [c, p, q] = [data.consumers[0]!, data.providers[0]!, data.providers[1]!];
  data.links = [{ from: broker, to: c, kind: "Broker", connected: true }, { from: broker, to: p, kind: "Broker", connected: false, roundTripSeconds: 0.01 },
    { from: c, to: q, kind: "Direct", connected: false }];
  data.flows = [{ consumer: c, provider: p, path: "relay", pods: 9, ready: 9 }];
  const d = draw(data);
  const kinds = Object.fromEntries(d.lines.map((l) => [l.consumer && l.provider ? "direct" : (l.provider ?? l.consumer)!.id, [l.kind, l.label?.text]]));
  assert.deepEqual(kinds, { [c.id]: ["relay", "not measured"], [p.id]: ["down", "down"], [q.id]: ["unknown", "tunnel unknown"], direct: ["down", "down"] });
  assert.match(d.lines.find((l) => l.provider === d.boxes[1]!.members[0])!.title, /9 pods, tunnel down, 10 ms$/);
});

test("pods that wait are at the broker, and on no path", () => {
  const data = federation(2, 1, 0);
  data.flows = [{ consumer: data.consumers[1]!, pods: 3, ready: 0 }];
  const d = draw(data);
  assert.equal(d.waiting?.text, "3 pods wait");
  assert.ok(d.waiting!.d.startsWith(`M${d.boxes[1]!.x + d.boxes[1]!.w} `), "from the consumer");
  assert.ok(d.waiting!.d.endsWith(` ${d.waiting!.x} ${d.waiting!.y + d.waiting!.h / 2}`), "to where they wait");
  assert.match(d.boxes[1]!.sub, /^0 pods · 3 wait$/);
  assert.ok(d.lines.every((l) => l.width === thickness(0) || l.kind === "down"));
  assert.equal(draw(federation(2, 1, 0)).waiting, undefined);
});

test("what is not told is unknown, and not zero", () => {
  const { consumers, providers, brokerName } = federation(1, 1, 0);
  const d = draw({ consumers, providers, brokerName });
  assert.deepEqual(d.boxes.map((b) => b.sub), ["pods unknown", "pods unknown"]);
  assert.ok(d.lines.every((l) => l.kind === "unknown" && l.title.includes("pods unknown, tunnel unknown, round trip not measured")));
  const flows = [{ consumer: { id: "x" }, provider: { id: "y" }, path: "pigeon", pods: 2, ready: 9 }, { consumer: { id: "x" }, provider: { id: "z" }, path: "relay", pods: -5, ready: NaN }];
  const m = read({ flows, brokerName });
  assert.deepEqual([...m.consumers, ...m.providers].map((n) => [n.name, n.state, n.pods.unknown]), [["x", "unknown", 2], ["y", "unknown", 2], ["z", "unknown", 0]]);
  assert.deepEqual(layOut(m, { width: 900, grouping: "none" }).lines.filter((l) => l.consumer && l.provider).map((l) => l.kind), ["unknown"]);
});

test("direct curves go past the broker, and say how long a round trip takes", () => {
  const data = federation(1, 1, 0);
  data.flows = [{ consumer: data.consumers[0]!, provider: data.providers[0]!, path: "direct", pods: 5, ready: 5 }];
  data.links = [...data.links, { from: data.consumers[0]!, to: data.providers[0]!, kind: "Direct", connected: true, roundTripSeconds: 0.0042 }];
  const d = draw(data);
  const line = d.lines.find((l) => l.path === "direct")!;
  assert.deepEqual([line.kind, line.label?.text, line.width], ["direct", "4.2 ms · 5 pods", thickness(5)]);
  const lane = Number(/ (\S+)H/.exec(line.d)![1]);
  assert.ok(lane + line.width < d.broker.y || lane - line.width > d.broker.y + d.broker.h);
});

test("single curves are drawn for what is in focus alone, those with most pods first", () => {
  const data = federation(100, 1000, 3000);
  assert.equal(draw(data, { grouping: "region" }).singles.length, 0);
  const one = draw(data, { grouping: "region", focus: [keyOf("provider", "p7")] });
  assert.equal(one.singles.length, data.flows.filter((f) => f.provider?.id === "p7").length);
  assert.equal(one.marks.length, 1);
  const group = draw(data, { grouping: "region", focus: ["region/region-3"] });
  assert.equal(group.singles.length, most.curves);
  assert.equal(group.allSingles, data.flows.filter((f) => Number(f.provider!.id.slice(1)) % 12 === 3).length);
  assert.equal(draw(federation(3, 3, 30), { focus: ["provider/p1"] }).singles.length, 0, "they are drawn already");
});

test("more regions than groups become others", () => {
  const data = federation(1, 500, 0);
  data.providers = data.providers.map((p, i) => ({ ...p, labels: { "topology.kubernetes.io/region": `r${i}` } }));
  const boxes = draw(data, { grouping: "region" }).boxes;
  assert.equal(boxes.length, 1 + most.groups);
  assert.equal(boxes.at(-1)!.name, "others");
});

test("texts", () => {
  assert.equal(plain("a\u202eb\tc\u200bd"), "a?b c?d");
  assert.equal(cut("short", 100, 12), "short");
  for (const width of [0, 20, 55, 90]) assert.ok(widthOf(cut("a long name of a cluster", width, 12), 12) <= Math.max(width, widthOf("…", 12)));
  assert.deepEqual([undefined, 0, -1, NaN, 0.0001234, 0.0123, 1.5].map(trip), [undefined, undefined, undefined, undefined, "0.12 ms", "12.3 ms", "1,500 ms"]);
});
