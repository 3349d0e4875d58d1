// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { test } from "node:test";
import { EventReader } from "../src/events";
import { amount, commandIn, plain, quantity, quoted, resourcesOf, span, usedOf, warningsOf, when } from "../src/format";
import { aboutOf, kindOf, newestFirst, placeOf, whoOf, wordsOf } from "../src/happened";
import { codeIn, href, parse } from "../src/routes";
import { Store } from "../src/store";

test("texts of others hide nothing, and turn nothing", () => {
  const cases: [string | undefined, string][] = [
    ["milan", "milan"], [undefined, ""], ["Zürich 東京 é", "Zürich 東京 é"], ["<b>&amp;", "<b>&amp;"], ["a\nb\tc", "a b c"],
    ["a\u0000\u0007\u001b[31m", "a???[31m"], ["\u202egnp.exe", "?gnp.exe"], ["\u2066a\u2069", "?a?"], ["a\u200bb\ufeff", "a?b?"],
    ["\u2028\u2029", "??"], ["a\u00a0b", "a?b"], ["\ud800", "?"], ["😀", "😀"], ["\u3164\u2800", "??"],
  ];
  for (const [text, want] of cases) assert.equal(plain(text), want, JSON.stringify(text));
});

test("quantities are numbers, and unknown is not 0", () => {
  const cases: [string | undefined, number | undefined][] = [
    ["250m", 0.25], ["4", 4], ["1.5", 1.5], ["16Gi", 16 * 2 ** 30], ["2k", 2000], ["1e3", 1000], ["1E", 1e18], ["12E2", 1200], [".5", 0.5],
    [undefined, undefined], ["", undefined], ["many", undefined], ["1 000", undefined], ["0x10", undefined], ["-1", -1],
  ];
  for (const [text, want] of cases) assert.equal(amount(text), want, String(text));
  assert.equal(quantity(undefined, "cpu"), "unknown");
  assert.equal(quantity("0Gi", "memory"), "0");
  assert.equal(quantity("122500m", "cpu"), "122.5");
  assert.equal(quantity("250m", "cpu"), "250m");
  assert.equal(quantity("1240Gi", "memory"), "1.21Ti");
  assert.equal(quantity("17179869184", "memory"), "16Gi");
});

test("what is used is known where the rest is", () => {
  assert.equal(usedOf("cpu", { offered: { cpu: "4" }, used: { cpu: "500m" } }), 0.5);
  assert.equal(usedOf("cpu", { offered: { cpu: "4" }, free: { cpu: "4" } }), 0);
  assert.equal(usedOf("cpu", { offered: { cpu: "4" } }), undefined);
  assert.deepEqual(resourcesOf({ "a.b/gpu": "1", memory: "1" }, { cpu: "1" }, undefined), ["cpu", "memory", "a.b/gpu"]);
});

test("times are seen from now", () => {
  const now = Date.parse("2026-01-02T00:00:00Z");
  assert.equal(when("2026-01-01T23:59:30Z", now), "30s ago");
  assert.equal(when("2026-01-02T00:05:00Z", now), "in 5m");
  assert.equal(when("soon", now), "unknown");
  assert.equal(span(3 * 86400), "3d");
});

test("words for a shell", () => {
  assert.equal(quoted("milan-1.example/x"), "milan-1.example/x");
  assert.equal(quoted("a b;'c'"), `'a b;'\\''c'\\'''`);
  assert.equal(quoted("--context"), "--context");
  assert.equal(quoted("$(id)"), "'$(id)'");
  assert.equal(quoted(""), "''");
  assert.equal(commandIn("Look at it: kubectl liqo-broker providers x -o wide"), "kubectl liqo-broker providers x -o wide");
  assert.equal(commandIn("Run `kubectl get x`."), "kubectl get x");
  assert.equal(commandIn("Wait."), "");
});

test("warnings of admission", () => {
  assert.deepEqual(warningsOf('299 - "12 pods, 2 stay", 299 - "a \\"b\\""'), ["12 pods, 2 stay", 'a "b"']);
  assert.deepEqual(warningsOf(null), []);
});

test("addresses lead back to where they are from", () => {
  const key = "c-1/web-c-1/a?b#c%20d";
  assert.deepEqual(parse(href(["workloads", key], { q: "x y&z", path: undefined })), { parts: ["workloads", key], query: { q: "x y&z" } });
  assert.deepEqual(parse(""), { parts: [], query: {} });
  assert.deepEqual(parse("#/a/%zz"), { parts: ["a", "%zz"], query: {} });
  assert.deepEqual(codeIn("#code=AbC-1&to=/providers%3Fq=x"), { code: "AbC-1", to: "/providers?q=x" });
  assert.deepEqual(codeIn("#code=x&to=https://evil.example"), { code: "x", to: "/" });
  assert.equal(codeIn("#/providers"), undefined);
});

test("a stream is read wherever it is cut", () => {
  const text = 'id: 0\nevent: reset\ndata: {}\n\n: alive\nid: n:7\n\nevent: set\r\ndata: {"é":\ndata: 1}\r\n\r\n';
  const bytes = new TextEncoder().encode(text);
  const want = [
    { id: "0", name: "reset", data: "{}" }, { id: "n:7", name: "", data: "" }, { id: "n:7", name: "set", data: '{"é":\n1}' },
  ];
  for (let size = 1; size <= bytes.length; size++) {
    const reader = new EventReader();
    const got = [];
    for (let i = 0; i < bytes.length; i += size) got.push(...reader.read(bytes.subarray(i, i + size)));
    assert.deepEqual(got, want, `cut each ${size} bytes`);
  }
});

const set = (id: string, key: string, more = {}) => ({ id, name: "set", data: JSON.stringify({ kind: "providers", key, provider: { id: key, ...more } }) });
const told = (id: string, name: string) => ({ id, name, data: "{}" });

test("what is known stays until a new stream has told everything", () => {
  const tasks: (() => void)[] = [];
  const store = new Store((task) => tasks.push(task));
  const draw = () => tasks.splice(0).forEach((task) => task());
  const keys = () => [...store.all("providers").keys()];

  store.take(told("0", "reset"));
  store.take(set("0", "a"));
  store.take(set("0", "b"));
  assert.deepEqual(keys(), []);
  assert.equal(store.last, "", "an ID before everything is told");
  store.take(told("n:1", "synced"));
  draw();
  assert.deepEqual(keys(), ["a", "b"]);
  assert.equal(store.synced.value, true);
  assert.equal(store.last, "n:1");

  store.take(set("n:2", "c"));
  store.take({ id: "n:3", name: "deleted", data: '{"kind":"providers","key":"a"}' });
  store.take(told("n:4", ""));
  assert.equal(tasks.length, 1, "more than one task for one picture");
  draw();
  assert.deepEqual(keys(), ["b", "c"]);
  assert.equal(store.last, "n:4", "the sign of life");

  store.take(told("0", "reset"));
  store.take(set("0", "z"));
  assert.deepEqual(keys(), ["b", "c"], "while the new state comes");
  store.ended();
  assert.equal(store.last, "n:4");
  store.take(set("n:5", "d"));
  assert.deepEqual(keys(), ["b", "c", "d"], "after a stream that did not tell everything");
});

test("what is no event of a known kind is passed over", () => {
  const store = new Store((task) => task());
  for (const data of ["", "{", "null", '{"kind":"pets","key":"a"}', '{"kind":"providers","key":"a"}', '{"kind":"__proto__","key":"a"}', "[]", '"x"']) {
    store.take({ id: "", name: "set", data });
    store.take({ id: "", name: "deleted", data });
  }
  assert.equal(store.all("providers").size, 0);
});

test("what has happened is told in words, newest first", () => {
  const a = { time: "2026-01-01T00:00:00Z", count: 1, kind: "Provider", name: "p", reason: "Changed", message: "", warning: false };
  const cases: [string, string | undefined, string, string][] = [
    ["ada changed spec.scheduling: Active → Drained", "ada", "changed spec.scheduling: Active → Drained", "ada"],
    ['"a b\u202e" deleted it', "a b\u202e", "deleted it", "a b?"], ["somebody who is not known deleted it", undefined, "somebody who is not known deleted it", "liqo-broker"],
    ["ada", "ada", "ada", "ada"], ["", undefined, "Changed", "liqo-broker"], ["<b>\u0007", undefined, "<b>?", "liqo-broker"],
  ];
  for (const [message, by, words, who] of cases) {
    assert.deepEqual([wordsOf({ ...a, message, by }), whoOf({ ...a, message, by, source: "liqo-broker" })], [words, who], message);
  }
  assert.equal(whoOf(a), "unknown");
  assert.deepEqual(placeOf(a), ["providers", "p"]);
  assert.deepEqual(placeOf({ ...a, kind: "PlacementPolicy" }), ["policies", "p"]);
  assert.equal(placeOf({ ...a, kind: "constructor" }), undefined);
  assert.deepEqual([kindOf({ ...a, kind: "constructor" }), kindOf({ ...a, kind: "PlacementPolicy" })], ["constructor", "policy"]);
  assert.deepEqual([aboutOf(a), aboutOf({ ...a, provider: { id: "p", name: "milan" } })], ["p", "milan"]);
  const at = (key: string, time: string): [string, typeof a] => [key, { ...a, time }];
  const order = newestFirst([at("old", "2026-01-01T00:00:00Z"), at("none", "soon"), at("new", "2026-01-01T00:00:00.5Z"), at("zone", "2026-01-01T02:00:00+03:00")]);
  assert.deepEqual(order.map(([key]) => key), ["new", "old", "zone", "none"]);
});
