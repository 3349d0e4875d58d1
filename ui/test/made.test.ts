// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// What the page makes of previews, bands and history before it is drawn.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { DrainedPod, DrainPreview, Scaling } from "../src/api";
import { bandOf, bandWords } from "../src/band";
import { foresee, mostPods, sentence, unsaid, whereTo } from "../src/foresight";
import { draw, percent, picture, ringsOf, times } from "../src/history";

const pod = (name: string, verdict: DrainedPod["verdict"], more: Partial<DrainedPod> = {}): DrainedPod => ({
  consumer: { id: "c", name: "rome" }, namespace: "shop", brokerNamespace: "shop-c", pod: name, verdict, ...more,
});

function preview(pods: DrainedPod[], more?: number): DrainPreview {
  return { provider: { id: "p" }, scheduling: "Drained", message: "", moves: 0, later: 0, stays: 0, remembers: true, pods, more };
}

test("a preview is by namespace, what would stay first, whatever the order it comes in", () => {
  const { namespaces, more } = foresee(preview([
    pod("web-1", "Moves"), pod("web-2", "Later"), pod("cron", "Moves", { brokerNamespace: "a", namespace: "a" }), pod("db", "Stays"),
    pod("x", "Stays", { consumer: { id: "" }, brokerNamespace: "nobodys", namespace: "nobodys\u202e" }),
  ]));
  assert.deepEqual(namespaces.map((ns) => [ns.name, ns.consumer, ns.pods.map((p) => p.pod)]), [
    ["shop", "rome", ["db", "web-2", "web-1"]], ["nobodys?", "", ["x"]], ["a", "rome", ["cron"]],
  ]);
  assert.equal(more, 0);
});

test("a preview is bounded, and says how much it leaves out", () => {
  const many = [...Array.from({ length: mostPods + 7 }, (_, i) => pod(`m-${i}`, "Moves")), pod("last", "Stays")];
  const { namespaces, more } = foresee(preview(many, 40));
  assert.equal(namespaces.flatMap((ns) => ns.pods).length, mostPods);
  assert.equal(namespaces[0]!.pods[0]!.pod, "last");
  assert.equal(more, 48);
  const narrowed = foresee(preview(many, 40), (p) => p.verdict === "Stays");
  assert.equal(narrowed.namespaces.length, 1);
  assert.equal(narrowed.more, 48, "a filter leaves nothing out that there is no more of");
});

test("a preview of another server than was thought of is no end of the page", () => {
  for (const odd of [{}, { pods: null }, { pods: [] }]) assert.deepEqual(foresee(odd as unknown as DrainPreview), { namespaces: [], more: 0 });
  const { namespaces } = foresee(preview([{ pod: "a", brokerNamespace: "n", verdict: "Vanishes" } as unknown as DrainedPod, pod("b", "Moves")]));
  assert.deepEqual(namespaces.map((ns) => ns.name), ["shop", "n"]);
});

test("where a pod goes, and what cannot be said, in words", () => {
  assert.equal(whereTo(pod("a", "Moves", { candidates: [{ id: "1", name: "turin" }, { id: "2" }], moreCandidates: 3 })), "turin, 2, and 3 more");
  assert.equal(whereTo(pod("a", "Stays")), "");
  assert.equal(sentence("no room\u0007"), "No room?");
  assert.equal(sentence("Done."), "Done.");
  assert.equal(sentence(undefined), "");
  assert.equal(unsaid(403, "you may not list pods"), "You may not see what it would do. You may not list pods.");
  assert.equal(unsaid(404, "Not Found"), "What it would do cannot be said here. Not Found.");
  assert.equal(unsaid(503, ""), "What it would do cannot be said now.");
  assert.match(unsaid(undefined, "signal timed out"), /did not answer in time/);
});

const scaling = (more: Partial<Scaling> = {}): Scaling => ({ unit: "ratio", count: 2, unoffloadBelow: 0.3, offloadAbove: 0.8, ...more });

test("a band and its value are in the picture, in their order", () => {
  for (const value of [undefined, -5, 0.3, 0.55, 0.8, 700]) {
    const { from, to, at } = bandOf(scaling({ value }));
    assert.ok(0 <= from && from < to && to <= 100, `${from} to ${to}`);
    if (value === undefined) assert.equal(at, undefined, "an unknown value is nowhere");
    else assert.ok(0 <= at! && at! <= 100 && Math.sign(at! - from) === Math.sign(value - 0.3) && Math.sign(at! - to) === Math.sign(value - 0.8), `${value} at ${at}`);
  }
  const same = bandOf(scaling({ unoffloadBelow: 0, offloadAbove: 0, value: 0 }));
  assert.ok(Object.values(same).every((place) => place === 50), "nothing but one point");
});

test("a band says what is about to change, and what is unknown", () => {
  const now = Date.parse("2026-01-01T00:10:00Z");
  const cases: [Partial<Scaling>, string][] = [
    [{ value: 0.5 }, "Between 0.3 ratio and 0.8 ratio: the number of providers holds."],
    [{ value: 0.9, direction: "Up", since: "2026-01-01T00:07:00Z", windowSeconds: 300 }, "Above 0.8 ratio for 3m of the 5m that it takes: then one provider more is used."],
    [{ value: 0.1, direction: "Down", groupBy: "zone" }, "Below 0.3 ratio: then one group less is used."],
    [{ unknown: "nothing answers\u202e", value: 0.9, direction: "Up" }, "There is no value now: nothing answers?. The number of providers holds."],
    [{}, "No value is known yet."],
  ];
  for (const [more, want] of cases) assert.equal(bandWords(scaling(more), now), want);
});

test("history has gaps where nobody watched, and its last slot is as long as it is", () => {
  const [ring] = ringsOf([{ name: "availability1h", slotSeconds: 300, slots: 5, upSeconds: [300, 0, 150], lastSeconds: 200 }]);
  assert.deepEqual(ring!.slots.map((slot) => slot.share), [undefined, undefined, 1, 0, 0.75]);
  assert.deepEqual([ring!.watched, ring!.share], [800, 450 / 800]);
  assert.equal(ring!.length, "25m");
  assert.deepEqual(times(ring!), ["23m to 18m back", "18m to 13m back", "13m to 8m back", "8m to 3m back", "the last 3m"]);
});

test("what is no history is passed over, and no number leaves its slot", () => {
  const good = { name: "a", slotSeconds: 60, slots: 3, upSeconds: [60], lastSeconds: 60 };
  for (const odd of [undefined, null, "x", {}, [null, 1, "x", {}], [{ ...good, slots: 1e9 }], [{ ...good, slotSeconds: -1 }], [{ ...good, upSeconds: [] }], [{ ...good, upSeconds: ["x"] }],
    [{ ...good, slotSeconds: NaN }]]) assert.deepEqual(ringsOf(odd), [], JSON.stringify(odd));
  assert.deepEqual(ringsOf([{ ...good, upSeconds: [900, -4, null, 61], lastSeconds: 1e12 }])[0]!.slots.map((slot) => slot.share), [0, undefined, 1]);
  assert.equal(ringsOf(Array.from({ length: 100 }, () => good)).length, 8);
});

test("a share is whole only if it is", () => {
  for (const [share, want] of [[1, "100 %"], [0.99999, "99.99 %"], [0.5, "50 %"], [0.0000001, "0.01 %"], [0, "0 %"]] as const) assert.equal(percent(share), want);
});

test("the picture of history: up and down fill a slot together, a short outage is seen, a gap is no bar", () => {
  const [ring] = ringsOf([{ name: "a", slotSeconds: 100, slots: 4, upSeconds: [100, 99.9, 25], lastSeconds: 50 }]);
  const { width, up, down, gap } = draw(ring!);
  assert.equal(width, 4 * picture.step - picture.gap);
  assert.equal(gap, "M0 31h8");
  assert.equal(up, "M10 0h8V32h-8zM20 3h8V32h-8zM30 16h4V32h-4z");
  assert.equal(down, "M20 0h8v3h-8zM30 0h4v16h-4z");
});
