// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// What the page takes with 1,000 providers, 100 consumers and 3,000 pods, in a browser without a graphics card: how soon it shows them, how
// it moves, and what it holds; and then the list of 30,000 pods. It prints a table and the limits, and fails above them. The environment says where playwright is (MODULES),
// the browser (CHROMIUM), and for how many minutes it is watched (BENCH_UI_MINUTES, 1 unless it says so).

import { createRequire } from "node:module";
import { serve, world } from "./fake.mjs";

const { chromium } = createRequire(`${process.env.MODULES}/`)("playwright-core");
const dist = new URL("../../pkg/ui/dist", import.meta.url).pathname;
const minutes = Number(process.env.BENCH_UI_MINUTES ?? 1);
const mebibyte = 1024 * 1024;
const loads = 20, changesPerSecond = 20;

const things = world({ providers: 1000, consumers: 100, pods: 3000 });
const s = await serve({ dist, things, still: true });
const list = 30_000, manyThings = world({ providers: 100, consumers: 20, pods: list });
const many = await serve({ dist, things: manyThings, still: true });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--js-flags=--expose-gc"] });

/** The value below which a share of all lies. */
function quantile(all, share) {
  return all.toSorted((a, b) => a - b)[Math.min(all.length - 1, Math.ceil(share * all.length) - 1)];
}

const rows = [];
let failed = false;
function says(what, value, unit, limit) {
  const above = limit !== undefined && value > limit;
  failed ||= above;
  rows.push([what, `${value.toFixed(value < 100 ? 1 : 0)} ${unit}`.trim(), limit === undefined ? "" : `${limit} ${unit}`, above ? "ABOVE" : ""]);
}

const onMap = [".map-picture .box", ".map-tables tbody tr"], inList = ["main table tbody tr"];
async function open(from, to, parts) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  // The page itself takes the time at which the parts are drawn: whoever asks it from outside adds how long asking takes.
  await page.addInitScript((parts) => new MutationObserver((_, observer) => {
    if (!parts.every((part) => document.querySelector(part))) return;
    observer.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => (window.shown = performance.now())));
  }).observe(document, { childList: true, subtree: true }), parts);
  page.setDefaultTimeout(60_000);
  await page.goto(`${from.address}#code=good&to=${to}`);
  return page;
}

/** How long each frame takes while something is done, in ms. */
async function frames(page, ms, meanwhile = async () => {}) {
  const counted = page.evaluate((ms) => new Promise((done) => {
    const all = [], end = performance.now() + ms;
    let before = performance.now();
    const frame = (now) => {
      all.push(now - before);
      before = now;
      if (now < end) requestAnimationFrame(frame);
      else done(all.slice(1));
    };
    requestAnimationFrame(frame);
  }), ms);
  const end = Date.now() + ms;
  while (Date.now() < end) await meanwhile();
  return counted;
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// How soon: nothing is drawn before the stream has told all.
const painted = [], shown = [];
for (let i = 0; i < loads; i++) {
  const page = await open(s, "/map", onMap);
  await page.waitForFunction(() => window.shown);
  const told = await page.locator(".titles p").first().textContent();
  if (told !== "100 consumers and 1,000 providers") throw new Error(`the map is drawn, and says ${told}`);
  shown.push(await page.evaluate(() => window.shown));
  painted.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN));
  await page.context().close();
}
says("first contentful paint, p50", quantile(painted, 0.5), "ms");
says("first contentful paint, p95", quantile(painted, 0.95), "ms", 600);
says("all shown, p50", quantile(shown, 0.5), "ms");
says("all shown, p95", quantile(shown, 0.95), "ms", 1500);

const page = await open(s, "/map", onMap);
const pane = page.locator(".map-pane");
await page.locator(".map-picture .box").first().waitFor({ state: "attached" });
const { x, y, width, height } = await pane.boundingBox();
const [cx, cy] = [x + width / 2, y + Math.min(height, 700) / 2];
await page.mouse.move(cx, cy);
await page.evaluate(() => {
  window.moves = 0;
  new MutationObserver(() => window.moves++).observe(document.querySelector(".map-picture"), { attributeFilter: ["style"] });
});
let step = 0;
const moved = await frames(page, 5000, async () => {
  if (step % 20 < 10) {
    if (step % 20 === 0) await page.mouse.down();
    await page.mouse.move(cx + 150 * Math.sin(step / 6), cy + 80 * Math.cos(step / 6));
    if (step % 20 === 9) await page.mouse.up();
  } else {
    if (step % 20 === 10) await page.keyboard.down("Control");
    await page.mouse.wheel(0, step % 40 < 20 ? -60 : 60);
    if (step % 20 === 19) await page.keyboard.up("Control");
  }
  step++;
});
await page.mouse.up();
await page.keyboard.up("Control");
const moves = await page.evaluate(() => window.moves);
if (moves < 20) throw new Error(`the map was moved only ${moves} times`);
says("moves of the map in 5 s", moves, "");
says("frame while it is moved and enlarged, p50", quantile(moved, 0.5), "ms", 17);
says("frame while it is moved and enlarged, p95", quantile(moved, 0.95), "ms", 50);
await page.mouse.move(5, 5);

// Changes of pods, providers and tunnels, one after the other.
const kinds = [["workloads", "workload"], ["providers", "provider"], ["links", "link"], ["flows", "flow"]];
const keys = kinds.map(([kind]) => Object.keys(things[kind]));
let n = 0;
const changes = setInterval(() => {
  const k = n % kinds.length, [kind, field] = kinds[k], key = keys[k][(n * 7) % keys[k].length];
  const one = things[kind][key];
  const now = kind === "links" ? { ...one, roundTripSeconds: 0.002 + (n % 100) / 1000 } : kind === "flows" ? { ...one, pods: one.pods + (n % 2) } : { ...one, ready: n % 3 > 0 };
  s.tell({ kind, key, [field]: now });
  n++;
}, 1000 / changesPerSecond);

/** What a page holds, in MiB: the least of some looks, since what a change needs for a moment is not held. */
async function heap(page) {
  const session = await page.context().newCDPSession(page);
  const all = [];
  for (let i = 0; i < 10; i++) {
    await session.send("HeapProfiler.collectGarbage");
    all.push((await session.send("Runtime.getHeapUsage")).usedSize / mebibyte);
    await pause(500);
  }
  return Math.min(...all);
}
const rest = await frames(page, 10_000, () => pause(100));
says(`frame at rest with ${changesPerSecond} changes a second, p50`, quantile(rest, 0.5), "ms");
says(`frame at rest with ${changesPerSecond} changes a second, p95`, quantile(rest, 0.95), "ms", 20);
const first = await heap(page);
await pause(minutes * 60_000);
const last = await heap(page);
clearInterval(changes);
says("heap before", first, "MiB", 150);
says(`heap after ${minutes} min`, last, "MiB", 150);
says("growth of the heap", Math.max(0, (100 * (last - first)) / first), "%", 10);
await page.context().close();

// The list of many pods: how soon it is there, how it is scrolled and narrowed, and what it is at rest.
const listed = [];
for (let i = 0; i < 5; i++) {
  const page = await open(many, "/workloads", inList);
  await page.waitForFunction(() => window.shown);
  listed.push(await page.evaluate(() => window.shown));
  await page.context().close();
}
says(`${list.toLocaleString("en")} pods: all shown, median of ${listed.length}`, quantile(listed, 0.5), "ms", 3000);
const longList = await open(many, "/workloads", inList);
await longList.waitForFunction(() => window.shown);
const told = await longList.locator("main").textContent();
if (!told.includes("30,000 pods")) throw new Error(`the list is drawn, and says ${told.slice(0, 200)}`);
await longList.mouse.move(700, 600);
const scrolled = await frames(longList, 5000, () => longList.mouse.wheel(0, 400));
if (await longList.evaluate(() => Math.max(scrollY, ...[...document.querySelectorAll("main, main *")].map((e) => e.scrollTop))) < 1000) throw new Error("the list was not scrolled");
says("... frame while it is scrolled, p50", quantile(scrolled, 0.5), "ms", 17);
says("... frame while it is scrolled, p95", quantile(scrolled, 0.95), "ms", 50);
const names = Object.keys(manyThings.workloads);
let k = 0;
const changesOfMany = setInterval(() => {
  const key = names[(k++ * 7) % names.length];
  many.tell({ kind: "workloads", key, workload: { ...manyThings.workloads[key], ready: k % 3 > 0 } });
}, 1000 / changesPerSecond);
const busy = await frames(longList, 10_000, () => pause(100));
says(`... frame with ${changesPerSecond} changes a second, p50`, quantile(busy, 0.5), "ms", 17);
says(`... frame with ${changesPerSecond} changes a second, p95`, quantile(busy, 0.95), "ms", 250);
const search = longList.getByRole("searchbox").first(), narrowed = [];
for (const text of ["a", "ab", "web", "p-0001", "zzz"]) {
  const began = performance.now();
  await search.fill(text);
  await longList.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  narrowed.push(performance.now() - began);
}
says("... narrowed by a text, the slowest of 5", Math.max(...narrowed), "ms", 1000);
await search.fill("");
says("... heap", await heap(longList), "MiB", 150);
clearInterval(changesOfMany);

const wide = [0, 1, 2].map((i) => Math.max(...rows.map((row) => row[i].length), 5));
for (const row of [["what", "is", "limit", ""], ...rows]) console.log(row.map((cell, i) => (i ? cell.padStart(wide[i] ?? 0) : cell.padEnd(wide[0]))).join("  ").trimEnd());
await browser.close();
s.close();
many.close();
process.exitCode = failed ? 1 : 0;
