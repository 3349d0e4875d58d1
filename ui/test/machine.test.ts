// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import { drawn } from "../src/trade/machine";
import { flagsOf, lasting, needOf, track } from "../src/trade/words";

const step = (from: string, to: string) => ({ at: "2026-01-01T00:00:00Z", event: "X", from, to, terms: 1 });
const went = [step("", "Reserved"), step("Reserved", "Signed"), step("Signed", "Provisioning"), step("Provisioning", "Active")];

test("the state that a contract has is lit, and the way that it took", () => {
  const cases: [string, string | undefined, ReturnType<typeof step>[], string[], number][] = [
    ["nobody has answered", undefined, [], [], 0],
    ["in use", "Active", went, ["Reserved", "Signed", "Provisioning"], 3],
    ["suspended", "Suspended", [...went, step("Active", "Suspended")], ["Reserved", "Signed", "Provisioning", "Active"], 4],
    ["a way that is not drawn otherwise", "Terminating", [step("", "Reserved"), step("Reserved", "Signed"), step("Signed", "Terminating")], ["Reserved", "Signed"], 2],
    ["a step that changes no state", "Active", [...went, step("Active", "Active")], ["Reserved", "Signed", "Provisioning"], 3],
    ["a state that nobody knows", "Sold", [...went, step("Active", "Sold")], ["Reserved", "Signed", "Provisioning", "Active"], 3],
    ["a name of the language", "constructor", [step("toString", "constructor")], [], 0],
  ];
  for (const [name, state, steps, past, taken] of cases) {
    const picture = drawn({ ...(state ? { state } : {}), steps });
    assert.deepEqual(picture.states.filter((s) => s.when === "past").map((s) => s.name).toSorted(), past.toSorted(), name);
    assert.deepEqual(picture.states.filter((s) => s.when === "now").map((s) => s.name), picture.states.some((s) => s.name === state) ? [state] : [], name);
    assert.equal(picture.arrows.filter((a) => a.taken).length, taken, name);
    assert.equal(picture.states.length, 12, name);
    for (const a of picture.arrows) assert.doesNotMatch(a.d, /NaN|undefined/, name);
    for (const s of picture.states) assert.ok(s.x >= 0 && s.y >= 0 && s.x < picture.width && s.y < picture.height, name);
  }
});

test("the list has what was, is, and comes if all goes well", () => {
  const of = (state: string, steps: ReturnType<typeof step>[]) => track({ state, steps } as unknown as Parameters<typeof track>[0]).map((one) => `${one.when} ${one.state}`);
  assert.deepEqual(of("Active", went), ["past Reserved", "past Signed", "past Provisioning", "now Active", "next Terminating", "next Ended"]);
  assert.deepEqual(of("Rejected", [step("", "Proposed"), step("Proposed", "Rejected")]), ["past Proposed", "now Rejected"]);
});

test("a need is the same in the address and on the command line", () => {
  const need = needOf({ cpu: "4", resource: "nvidia.com/gpu=1, x", for: "24h", price: "0.5 EUR/h", region: "eu, us", arch: "amd64", filter: "true", q: "x" });
  assert.deepEqual(need, { resources: { cpu: "4", "nvidia.com/gpu": "1" }, duration: "24h", maxPrice: "0.5 EUR/h", regions: ["eu", "us"], architectures: ["amd64"], expression: "true" });
  assert.deepEqual(flagsOf(need), ["--cpu", "4", "--resource", "nvidia.com/gpu=1", "--for", "24h", "--max-price", "0.5 EUR/h", "--region", "eu", "--region", "us", "--architecture", "amd64", "--filter", "true"]);
  assert.deepEqual(flagsOf(needOf({})), []);
});

test("how long something lasts has no parts that are 0", () => {
  for (const [text, want] of [["48h0m0s", "48h"], ["1h30m0s", "1h30m"], ["90s", "90s"], ["10m0s", "10m"], ["24h", "24h"], ["1h0m5s", "1h0m5s"], ["100h", "100h"]] as const) assert.equal(lasting(text), want);
});
