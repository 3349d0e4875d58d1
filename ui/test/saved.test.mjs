// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// The page as a file, in a browser without any network: it shows what the page of the server showed, changes nothing, and can be without
// names. The program that saves it is the real one: go builds it. The environment says where playwright and axe are (MODULES), and the
// browser (CHROMIUM).

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { pathToFileURL } from "node:url";
import { serve, trader, world } from "./fake.mjs";

const load = createRequire(`${process.env.MODULES}/`);
const { chromium } = load("playwright-core");
const axe = readFileSync(load.resolve("axe-core/axe.min.js"), "utf8");
const run = promisify(execFile);
const root = new URL("../..", import.meta.url).pathname;
const dist = join(root, "pkg/ui/dist");
const size = { width: 1440, height: 4000 }; // All rows are in sight.

let browser, folder, program;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "saved-"));
  program = join(folder, "savedpage");
  await run("go", ["build", "-o", program, "./test/savedpage"], { cwd: root, env: { CGO_ENABLED: "0", ...process.env } });
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
});
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Saves the page of a server with some things; returns the server, the file, and what is in it. */
async function save(t, server, ...flags) {
  const s = await serve({ dist, ...server });
  t.after(() => s.close());
  s.options.key = "secret-of-the-page";
  const file = join(folder, `${t.name.replaceAll(/\W/g, "-")}.html`);
  await run(program, [...flags, s.address, s.options.key, file]);
  const text = readFileSync(file, "utf8");
  const data = text.split('<script type="application/json" id="data">')[1].split("</script>")[0];
  return { s, file, text, data };
}

/** Opens an address; what the browser complains of, and whom it asks but for the file, are gathered in wrong. */
async function open(t, address, { offline = false, at } = {}) {
  const context = await browser.newContext({ viewport: size, reducedMotion: "reduce", offline });
  t.after(() => context.close());
  const page = await context.newPage();
  const wrong = [];
  page.on("console", (m) => m.type() === "error" && wrong.push(m.text()));
  page.on("pageerror", (e) => wrong.push(e.message));
  page.on("request", (r) => !offline || r.url().startsWith(address.split("#")[0]) || r.url().startsWith("data:") || wrong.push(`asks ${r.url()}`));
  if (at) await page.clock.setFixedTime(at);
  await page.goto(address);
  return { page, wrong };
}

const go = async (page, to) => {
  await page.evaluate((hash) => { location.hash = hash; }, to);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
};

const tables = (page) => page.evaluate(() => [...document.querySelectorAll("main table")].map((table) => table.innerText));

async function faults(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  return found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 200)).join(" | ")}`);
}

test("a saved page opens from disk and shows the tables of the server's page", async (t) => {
  const hostile = "</script><script>alert(1)</script><!--<script>";
  const { s, file, text, data } = await save(t, { things: world({ names: [hostile] }) });
  assert.ok(!text.includes("alert(1)</script>"), "a name ends the block of the data");
  assert.ok(!data.includes("kind-broker"), "the context of the kubeconfig is in the file");
  assert.ok(!text.includes(s.options.key) && !text.includes(new URL(s.address).host), "the key or the server is in the file");
  const { at } = JSON.parse(data);
  const live = await open(t, `${s.address}#code=good&to=/providers`, { at });
  const saved = await open(t, `${pathToFileURL(file)}#/providers`, { offline: true });
  await live.page.getByText("live", { exact: true }).waitFor();
  await saved.page.getByRole("link", { name: hostile }).first().waitFor();
  const rows = { "/providers": 14, "/consumers": 5, "/workloads": 60, "/policies": 2 };
  for (const [route, least] of Object.entries(rows)) {
    for (const { page } of [live, saved]) await go(page, route);
    const [want, got] = [await tables(live.page), await tables(saved.page)];
    assert.ok(want.join("\n").split("\n").length > least, `${route} shows all rows`);
    assert.deepEqual(got, want, route);
  }
  await saved.page.getByText(/^saved \d{1,2} \w{3,4} \d{4}, \d\d:\d\d$/).waitFor();
  assert.equal(await saved.page.getByText(/stale/).count(), 0);
  for (const route of ["/", "/providers"]) {
    await go(saved.page, route);
    assert.deepEqual(await faults(saved.page), [], route);
  }
  assert.deepEqual(saved.wrong, []);
  assert.deepEqual(live.wrong, []);
});

test("a saved page changes nothing and asks nobody", async (t) => {
  const { file } = await save(t, {});
  const { page, wrong } = await open(t, `${pathToFileURL(file)}#/providers/p-0000`, { offline: true });
  const drain = page.getByRole("button", { name: "Drain" });
  await drain.waitFor();
  assert.equal(await drain.getAttribute("aria-disabled"), "true");
  await page.getByText("This is a saved page.").first().waitFor();
  await drain.click({ force: true });
  assert.equal(await page.locator("dialog").count(), 0);
  await go(page, "/providers/p-0000/drain");
  await page.getByText("A saved page cannot ask the cluster.").waitFor();
  assert.equal(await page.getByText("all the same").count(), 0);
  await go(page, "/policies/new");
  await page.getByText("A saved page cannot ask the cluster.").first().waitFor();
  await go(page, "/policies/cheapest/edit");
  await page.getByText("A saved page cannot ask the cluster.").first().waitFor();
  for (const route of ["/map", "/activity", "/nowhere"]) {
    await go(page, route);
    await page.locator("h1").waitFor();
  }
  assert.deepEqual(wrong, []);
});

test("a saved page has the screens of trade", async (t) => {
  const me = { may: ["update purchases", "update sales", "patch offers"], broker: undefined, cluster: { id: "t", name: "south-cluster" } };
  for (const flags of [[], ["--hide-names"]]) {
    const { file, data } = await save(t, { things: trader(), me }, ...flags);
    const { page, wrong } = await open(t, `${pathToFileURL(file)}#/contracts`, { offline: true });
    await page.getByRole("link", { name: flags.length ? "contract-1" : "nightly", exact: true }).first().waitFor();
    for (const key of JSON.parse(data).events.filter((e) => e.kind === "contracts").map((e) => e.key)) {
      await go(page, `/contracts/${key}`);
      await page.locator("h1").waitFor();
      for (const button of await page.getByRole("button", { name: /^(End|Approve|Refuse|Suspend|Resume|Resize|Renew)$/ }).all()) {
        assert.equal(await button.getAttribute("aria-disabled"), "true", key);
      }
    }
    for (const route of ["/", "/offers", "/registries"]) {
      await go(page, route);
      await page.locator("h1").waitFor();
      assert.deepEqual(await faults(page), [], route);
    }
    await go(page, "/market?cpu=4&for=24h");
    await page.getByText("A saved page cannot ask the cluster.").first().waitFor();
    if (flags.length) {
      for (const name of ["north-cloud", "web-shop", "nightly", "s-grow", "compute", "Oslo", "eu-north", "registry.example.com", "aaaaaaaa", "south-cluster", "racks", "onerror"]) {
        assert.ok(!data.includes(name), `${name} is in the file`);
      }
    }
    assert.deepEqual(wrong, []);
  }
});

test("a saved page without names has none", async (t) => {
  const things = world();
  const { file, text, data } = await save(t, { things }, "--hide-names");
  const names = new Set(["ada@example.com", "north-broker", "kind-broker"]);
  for (const kind of ["providers", "consumers", "policies"]) Object.values(things[kind]).forEach((one) => names.add(one.id ?? one.name).add(one.name));
  for (const w of Object.values(things.workloads)) [w.namespace, w.brokerNamespace, w.pod, w.address].forEach((one) => one && names.add(one));
  for (const a of Object.values(things.activity)) [a.name, a.by].forEach((one) => one && names.add(one));
  for (const p of Object.values(things.providers)) Object.values(p.labels ?? {}).forEach((one) => one.length > 2 && names.add(one));
  assert.ok(!data.includes('"it"') && !data.includes('"no"'), "a region is in the file"); // They are words of sentences, too.
  assert.ok(names.size > 150);
  const plain = (name) => name.replace(/[^\x20-\x7e]/g, "");
  const has = (where, name) => new RegExp(`(?<![\\p{L}\\p{N}])${plain(name).slice(0, 40).replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}${plain(name).length > 40 ? "" : "(?![\\p{L}\\p{N}])"}`, "u").test(where);
  const { page, wrong } = await open(t, `${pathToFileURL(file)}#/providers`, { offline: true });
  await page.getByRole("link", { name: "provider-14", exact: true }).waitFor();
  const seen = [];
  const routes = ["/", "/map", "/providers", "/providers/provider-1", "/consumers", "/consumers/consumer-1", "/workloads", "/policies", "/policies/policy-1", "/activity"];
  for (const route of routes) {
    await go(page, route);
    assert.notEqual(await page.locator("h1").innerText(), "There is nothing at this address.", route);
    seen.push(await page.locator("main").innerText());
  }
  for (const name of names) {
    assert.ok(!has(data, name), `${name} is in the file`);
    assert.ok(!has(text.replace(/<script type="module">.*?<\/script>/s, "").replace(/<style>.*?<\/style>/s, ""), name), `${name} is in the document`);
    // Words of the page's own can be names, too.
    if (plain(name).length > 6) seen.forEach((screen, i) => assert.ok(!has(screen, name), `${name} is in ${routes[i]}`));
  }
  assert.match(seen[0], /Provider provider-8 is unreachable for 5m/);
  assert.match(seen[5], /provider-1/);
  await go(page, "/consumers");
  assert.deepEqual(await faults(page), []);
  assert.deepEqual(wrong, []);
});
