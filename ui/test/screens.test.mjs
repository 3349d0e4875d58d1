// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// All screens in a browser, with made-up clusters: whether everybody can use them, and whether the browser refuses anything of them.
// The environment says where playwright and axe are (MODULES), and the browser (CHROMIUM).

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { serve, world } from "./fake.mjs";

const load = createRequire(`${process.env.MODULES}/`);
const { chromium } = load("playwright-core");
const axe = load.resolve("axe-core/axe.min.js");
const dist = new URL("../../pkg/ui/dist", import.meta.url).pathname;

const pod = encodeURIComponent("c-000/web-c-000/web-0-7d9f");
const screens = [
  "/", "/map", "/providers", "/providers/p-0000", "/providers/p-0002", "/providers/p-0006", "/providers/none", "/consumers", "/consumers/c-000", "/consumers/c-001",
  "/workloads", "/workloads?namespace=web&path=direct", `/workloads/${pod}`, "/policies", "/policies/cheapest?consumer=c-001&provider=p-0001", "/nowhere",
];

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
});
after(() => browser?.close());

/** Opens the page with a code; what the browser complains of, and whom it asks besides, are gathered in wrong. */
async function open(t, { server = {}, context = {}, to = "/", code = "good", clock = false } = {}) {
  const s = await serve({ dist, ...server });
  const c = await browser.newContext({ viewport: { width: 1440, height: 900 }, bypassCSP: false, ...context });
  t.after(async () => (await c.close(), s.close()));
  const page = await c.newPage();
  if (clock) await page.clock.install();
  const wrong = [];
  page.on("console", (m) => m.type() === "error" && wrong.push(m.text()));
  page.on("pageerror", (e) => wrong.push(e.message));
  page.on("request", (r) => r.url().startsWith(s.address) || r.url().startsWith("data:") || wrong.push(`asks ${r.url()}`));
  await page.goto(`${s.address}#code=${code}&to=${encodeURIComponent(to)}`);
  return { page, s, wrong };
}

const go = async (page, to) => {
  await page.evaluate((hash) => { location.hash = hash; }, to);
  await page.waitForFunction((hash) => location.hash === "#" + hash, to);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
};

for (const colorScheme of ["light", "dark"]) {
  for (const width of [360, 900, 1440]) {
    test(`screens in ${colorScheme} of ${width} px`, async (t) => {
      const { page, wrong } = await open(t, { context: { colorScheme, viewport: { width, height: 900 } } });
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      await page.getByText("2 things need somebody").waitFor();
      for (const screen of screens) {
        await go(page, screen);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0, `${screen} is wider than the window`);
        assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll(".scroll:not(.matrix)")].filter((box) => box.scrollWidth > box.clientWidth + 1).length), 0,
          `${screen} has a table that is wider than its place`);
        if (width === 900) continue; // To look at all takes seconds.
        // What the debugger runs is not bound by the policy of the page.
        await page.evaluate((await import("node:fs")).readFileSync(axe, "utf8"));
        const found = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
        assert.deepEqual(found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 200)).join(" | ")}`), [], screen);
      }
      assert.deepEqual(wrong, []);
    });
  }
}

test("the code is used once, and is not in the address", async (t) => {
  const { page, s, wrong } = await open(t, { to: "/providers?q=turin" });
  await page.getByRole("link", { name: "turin", exact: true }).waitFor();
  assert.equal(await page.evaluate(() => location.hash), "#/providers?q=turin");
  assert.equal(s.options.seen.filter((line) => line === "POST /session").length, 1);
  assert.equal(await page.evaluate(() => history.length), 2, "about:blank and the page");
  await page.reload();
  await page.getByRole("link", { name: "turin", exact: true }).waitFor();
  await page.evaluate(() => { location.hash = "code=good&to=/consumers"; });
  await page.getByRole("link", { name: "studio", exact: true }).waitFor();
  assert.equal(await page.evaluate(() => location.hash), "#/consumers", "another code in the same tab");
  assert.deepEqual(wrong, []);
});

test("a used code and no key say how to open the page", async (t) => {
  const { page } = await open(t, { code: "used" });
  await page.getByText("kubectl liqo-broker ui", { exact: true }).waitFor();
});

test("a drain is tried first, with its warnings, by keyboard", async (t) => {
  const { page, s, wrong } = await open(t, { to: "/providers/p-0000" });
  await page.getByRole("button", { name: "Drain" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("12 pods would move, 2 stay").waitFor();
  const puts = () => s.options.seen.filter((line) => line.startsWith("PUT"));
  assert.deepEqual(puts(), ["PUT /api/v1/providers/p-0000/scheduling?dryRun=All"]);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.equal(puts().length, 1, "Esc does nothing");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Drain", "where it was opened");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Drain" }).click();
  await page.getByText("Drained", { exact: true }).first().waitFor();
  assert.deepEqual(puts().at(-1), "PUT /api/v1/providers/p-0000/scheduling");
  await page.getByRole("button", { name: "Enable" }).waitFor();
  assert.deepEqual(wrong.filter((line) => !line.includes("404")), [], "but that there is no preview");
});

test("who may not sees why", async (t) => {
  const { page, s } = await open(t, { to: "/providers/p-0000", server: { me: { may: [] } } });
  await page.getByRole("button", { name: "Cordon" }).click({ force: true });
  await page.getByText("You may not update providers.brokering.liqo.io.").first().waitFor();
  assert.equal(await page.getByRole("dialog").count(), 0);
  assert.deepEqual(s.options.seen.filter((line) => line.startsWith("PUT")), []);
});

test("a page that may only read says so", async (t) => {
  const { page } = await open(t, { to: "/consumers/c-000", server: { me: { readOnly: true } } });
  await page.getByText("read-only", { exact: true }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Suspend" }).getAttribute("aria-disabled"), "true");
});

test("a kind that lacks a right is a line, and not an empty table", async (t) => {
  const kinds = Object.keys(world()).map((kind) => (kind === "providers" ? { kind, missing: ["list nodes"] } : { kind }));
  const { page, s } = await open(t, { to: "/providers", server: { me: { kinds } } });
  await page.getByText("You may not list nodes, which providers need.").waitFor();
  assert.equal(await page.getByRole("table").count(), 0);
  await page.getByRole("heading", { name: "Providers" }).waitFor();
  assert.ok(!s.options.seen.find((line) => line.includes("events")).includes("providers"));
});

test("names of others are texts, and do not turn what follows", async (t) => {
  const { page, wrong } = await open(t, { to: "/providers" });
  const link = page.locator('a[href="#/providers/p-0002"]');
  await link.waitFor();
  assert.match(await link.textContent(), /^<img src=x onerror=alert\(1\)>\?gnp\.exe\?very-long/);
  assert.equal(await page.locator("img").count(), 0);
  assert.deepEqual(wrong, []);
});

test("only the rows in sight are in the page", async (t) => {
  const { page } = await open(t, { to: "/workloads", server: { things: world({ providers: 1000, consumers: 20, pods: 3000 }) } });
  await page.getByText("3,000 pods").waitFor();
  assert.ok((await page.locator("tbody tr").count()) < 80);
  await page.locator(".scroll").evaluate((box) => box.scrollTo(0, box.scrollHeight));
  await page.getByText("web-29z-7d9f").or(page.locator('tr[aria-rowindex="3004"]')).first().waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("web-0-7d9f");
  await page.getByText("1 of 3,000 pods").waitFor();
  await page.keyboard.press("Escape");
  await page.getByText("3,000 pods", { exact: true }).waitFor();
});

test("a stream without a sign of life is stale, and is called again", async (t) => {
  const { page, s } = await open(t, { to: "/providers", clock: true });
  await page.getByText("live", { exact: true }).waitFor();
  await page.clock.fastForward(19_000);
  assert.equal(await page.getByText(/stale since/).count(), 0);
  await page.clock.fastForward(21_000);
  await page.getByText(/stale since/).waitFor();
  await page.getByRole("link", { name: "turin", exact: true }).waitFor();
  await page.getByText("live", { exact: true }).waitFor();
  assert.equal(s.options.seen.filter((line) => line.includes("/events")).length, 2);
});

test("a server that is gone and comes back", async (t) => {
  const { page, s } = await open(t, { to: "/providers" });
  const turin = page.getByRole("link", { name: "turin", exact: true });
  await turin.waitFor();
  await page.evaluate(() => { window.gone = 0; new MutationObserver(() => document.querySelector("tbody tr") ?? window.gone++).observe(document.body, { childList: true, subtree: true }); });
  s.options.down = true;
  s.cut();
  await page.getByText("The API server of the cluster does not answer.").first().waitFor();
  await turin.waitFor();
  s.options.down = false;
  await page.getByText("live", { exact: true }).waitFor();
  assert.equal(await page.getByText("does not answer").count(), 0);
  assert.equal(await page.evaluate(() => window.gone), 0, "it was empty for a moment");
  assert.ok(s.options.resumed > 0, "it goes on where it was");
  s.options.key = "another";
  s.cut();
  await page.getByText("The server was started anew").waitFor();
  await turin.waitFor();
});
