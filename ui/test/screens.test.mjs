// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// All screens in a browser, with made-up clusters: whether everybody can use them, and whether the browser refuses anything of them.
// The environment says where playwright and axe are (MODULES), and the browser (CHROMIUM).

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { faults } from "./axe.mjs";
import { consumer, serve, trader, world } from "./fake.mjs";
import { pressEach } from "./press.mjs";

const load = createRequire(`${process.env.MODULES}/`);
const { chromium } = load("playwright-core");
const dist = new URL("../../pkg/ui/dist", import.meta.url).pathname;

const podOf = (key) => `/workloads/${encodeURIComponent(key)}`;
const screens = [
  "/", "/map", "/providers", "/providers/p-0000", "/providers/p-0002", "/providers/p-0006", "/providers/p-0007", "/providers/none",
  "/providers/p-0000/drain", "/providers/none/drain", "/consumers", "/consumers/c-000", "/consumers/c-001",
  "/workloads", "/workloads?namespace=web&path=direct", podOf("c-000/web-c-000/web-0-7d9f"), podOf("c-002/web-c-002/web-c-7d9f"),
  podOf("c-000/batch-c-000/batch-p-7d9f"), podOf("c-001/db-c-001/db-b-7d9f"), "/policies", "/policies/cheapest?consumer=c-000&provider=p-0001",
  "/policies/near?consumer=c-000&provider=p-0000", "/activity", "/activity?q=problem", "/policies/new", "/policies/cheapest/edit", "/nowhere",
];

/** What a person may do who trades. */
const traderMay = { may: ["create purchases", "create capacityrequests", "update purchases", "update sales", "patch offers", "delete capacityrequests"], broker: undefined, cluster: { id: "t", name: "south-cluster" } };
const plan = `${"a".repeat(52)}/compute/small`;
const tradeScreens = [
  "/", "/market", "/market?cpu=4&for=24h&region=eu-north", "/market?filter=wrong", `/market/${plan}`, `/market/${plan}?cpu=4&for=24h`, `/market/${"c".repeat(52)}/odd/one`, "/market/none/none/none",
  "/contracts", "/contracts?q=nothing", "/contracts/buys/nightly", "/contracts/sells/s-grow", "/contracts/sells/s-new", "/contracts/sells/s-quiet", "/contracts/buys/old", "/contracts/buys/just", "/contracts/buys/none",
  "/contracts/needs/nightly", "/offers", "/registries", "/activity",
];

/** In ms; a wait says that something never happens, and what else the machine does is not known. */
const patience = 60_000;

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
});
after(() => browser?.close());

/** Opens the page with a code; what the browser complains of, and whom it asks besides, are gathered in wrong. */
async function open(t, { server = {}, context = {}, to = "/", code = "good", clock = false } = {}) {
  const s = await serve({ dist, ...server });
  const c = await browser.newContext({ viewport: { width: 1440, height: 900 }, bypassCSP: false, reducedMotion: "reduce", ...context });
  t.after(async () => (await c.close(), s.close()));
  const page = await c.newPage();
  page.setDefaultTimeout(patience);
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
        if (screen.endsWith("p-0000/drain")) await page.getByText("would stay.").waitFor();
        await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0, `${screen} is wider than the window`);
        assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll(".scroll:not(.matrix)")].filter((box) => box.scrollWidth > box.clientWidth + 1).length), 0,
          `${screen} has a table that is wider than its place`);
        assert.deepEqual(await faults(page), [], screen);
      }
      assert.deepEqual(wrong, []);
    });
  }
}

for (const colorScheme of ["light", "dark"]) {
  for (const width of [360, 900, 1440]) {
    test(`screens of trade in ${colorScheme} of ${width} px`, async (t) => {
      const { page, wrong } = await open(t, { server: { things: trader(), me: traderMay }, context: { colorScheme, viewport: { width, height: 900 } } });
      await page.getByText("Nothing waits for you.").or(page.getByText("wait for your decision").first()).waitFor();
      for (const screen of tradeScreens) {
        await go(page, screen);
        await page.locator("h1").waitFor();
        await page.locator("[aria-busy=true]").waitFor({ state: "detached" });
        await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
        if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/${colorScheme}-${width}-${tradeScreens.indexOf(screen)}.png`, fullPage: true });
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0, `${screen} is wider than the window`);
        assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll(".scroll:not(.matrix)")].filter((box) => box.scrollWidth > box.clientWidth + 1).length), 0,
          `${screen} has a table that is wider than its place`);
        if (width !== 900) assert.deepEqual(await faults(page), [], screen);
      }
      assert.deepEqual(wrong.filter((line) => !line.includes("422")), []); // A wrong expression is refused.
    });
  }
}

/** Who looks at a consumer. */
const consumerIs = { may: [], broker: undefined, cluster: { id: "c-own", name: "shop" }, consumes: true };
const consumerScreens = ["/", "/?q=db", "/map", "/workloads", "/workloads?path=direct", podOf("web/web-0-7d9f"), podOf("db/db-8-7d9f"), podOf("web/none"), "/providers"];
const consumers = {
  usual: consumer(), several: consumer({ brokers: ["north-broker", "south-broker", "<b>\u202e" + "x".repeat(80)], providers: 60, pods: 400 }),
  aggregated: consumer({ hides: true }), idle: consumer({ pods: 0 }), none: consumer({ brokers: [], pods: 0 }),
};

for (const colorScheme of ["light", "dark"]) {
  for (const width of [360, 900, 1440]) {
    test(`screens of a consumer in ${colorScheme} of ${width} px`, async (t) => {
      for (const [name, things] of Object.entries(consumers)) {
        const { page, s, wrong } = await open(t, { server: { things, me: consumerIs }, context: { colorScheme, viewport: { width, height: 900 } } });
        await page.getByText(/of this cluster (are|is) at|uses no broker/).first().waitFor();
        for (const screen of name === "usual" ? consumerScreens : ["/", "/map", "/workloads"]) {
          await go(page, screen);
          await page.locator("h1").waitFor();
          if (screen === "/map" && name !== "none") await page.locator("svg.map-picture").waitFor();
          if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/${name}-${colorScheme}-${width}-${consumerScreens.indexOf(screen)}.png`, fullPage: true });
          assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0, `${name} ${screen} is wider than the window`);
          assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll(".scroll:not(.matrix)")].filter((box) => box.scrollWidth > box.clientWidth + 1).length), 0,
            `${name} ${screen} has a table that is wider than its place`);
          if (width !== 900) assert.deepEqual(await faults(page), [], `${name} ${screen}`);
        }
        assert.deepEqual(wrong, []);
        await page.close();
        s.close();
      }
    });
  }
}

test("a consumer has the screens of its own pods alone, and no link that leads nowhere", async (t) => {
  const { page, s, wrong } = await open(t, { server: { things: consumers.usual, me: consumerIs } });
  const rail = page.getByRole("navigation", { name: "Screens" });
  await page.getByText("40 pods of this cluster are at north-broker, and 3 are not ready.").waitFor();
  assert.deepEqual(await rail.getByRole("link").allInnerTexts(), ["Overview", "Map", "Workloads", "Licences"]);
  for (const screen of consumerScreens.slice(0, -1)) {
    await go(page, screen);
    await page.locator("h1").waitFor();
    assert.equal(await page.locator('main a[href^="#/providers"], main a[href^="#/consumers"], main a[href^="#/policies"]').count(), 0, screen);
  }

  // What it says is what there is: by path, and of one pod.
  await go(page, "/");
  const flows = Object.values(consumers.usual.flows);
  const number = (path) => flows.filter((f) => f.path === path).reduce((n, f) => n + f.pods, 0);
  assert.deepEqual(await page.locator(".own-counts a").allInnerTexts().then((all) => all.map((text) => text.replace(/\s+/g, " "))),
    [`${number("direct")} direct`, `${number("relay")} relay`, `${number(undefined)} unknown`]);
  assert.deepEqual(await page.locator(".lines code").allInnerTexts(), ["kubectl rollout restart -n web deployment/cache", "kubectl delete pod -n web job-1",
    "kubectl describe namespaceoffloading -n db offloading", "kubectl rollout restart -n db statefulset/pg"]);
  await page.locator(".own-counts a").first().click();
  await page.getByText(`${number("direct")} of 40 pods`).waitFor();
  await go(page, podOf("web/web-0-7d9f"));
  const chain = page.getByRole("list", { name: "Where it is" });
  assert.match(await chain.innerText(), /broker\s+north-broker\s+provider\s+milan\s+path\s+direct/);

  // A change of its path comes by the stream.
  s.options.tell("workloads", "web/web-0-7d9f", "workload", { path: "relay" });
  await chain.getByText("relay").waitFor();
  await go(page, "/map");
  await page.getByRole("link", { name: /^Provider milan: / }).click();
  await page.waitForFunction(() => location.hash.startsWith("#/workloads?provider=p-0000"));
  assert.deepEqual(wrong, []);
});

test("a cluster that uses no broker and does not trade says so, and how it would", async (t) => {
  const { page } = await open(t, { server: { things: consumers.none, me: consumerIs } });
  await page.getByText("This cluster uses no broker.").waitFor();
  await page.getByText("It does not trade").waitFor();
  assert.deepEqual(await page.locator(".lines code").allInnerTexts(), ["kubectl liqo-broker join --consumer CONTEXT", "kubectl liqo-broker guard"]);
});

test("a cluster that trades and consumes has both, and one that only trades opens as that", async (t) => {
  const rail = (page) => page.getByRole("navigation", { name: "Screens" }).getByRole("link").allInnerTexts();
  const both = await open(t, { server: { things: { ...trader(), ...consumers.usual }, me: { ...traderMay, consumes: true } } });
  await both.page.getByText("40 pods of this cluster are at north-broker").waitFor();
  assert.deepEqual(await rail(both.page), ["Overview", "Map", "Workloads", "Activity", "Market", "Contracts", "Own offers", "Registries", "Licences"]);
  await both.page.getByRole("region", { name: "Trade", exact: true }).getByText(/waits? for your decision/).first().waitFor();
  const trades = await open(t, { server: { things: { ...trader(), ...consumers.none }, me: { ...traderMay, consumes: true } } });
  await trades.page.getByText("Nothing waits for you.").or(trades.page.getByText("wait for your decision").first()).waitFor();
  assert.deepEqual(await rail(trades.page), ["Overview", "Activity", "Market", "Contracts", "Own offers", "Registries", "Licences"]);
});

test("a consumer that may not be seen wholly says which rights lack", async (t) => {
  const kinds = [{ kind: "workloads" }, { kind: "flows" }, { kind: "status", missing: ["list namespaces"] }];
  const { page } = await open(t, { server: { things: consumers.usual, me: { ...consumerIs, kinds } } });
  await page.getByText("40 pods of this cluster are at brokers").waitFor();
  await page.getByText("You may not list namespaces, which status need.").waitFor();
});

test("a cluster that trades and is no broker has the screens of trade alone", async (t) => {
  const { page } = await open(t, { server: { things: trader(), me: traderMay } });
  const rail = page.getByRole("navigation", { name: "Screens" });
  await rail.getByRole("link", { name: "Market" }).waitFor();
  assert.deepEqual(await rail.getByRole("link").allInnerTexts(), ["Overview", "Activity", "Market", "Contracts", "Own offers", "Registries", "Licences"]);
  await page.getByRole("link", { name: "purchase nightly" }).click();
  await page.getByRole("heading", { name: "nightly" }).waitFor();
  assert.equal(await rail.locator(".brand").innerText(), "south-cluster");
  const broker = await open(t);
  await broker.page.getByRole("heading", { name: "Overview" }).waitFor();
  assert.equal(await broker.page.getByRole("link", { name: "Market" }).count(), 0, "A broker that does not trade has no market.");
});

test("a broker that trades has the screens of both, and says of both what needs somebody", async (t) => {
  const both = world();
  const trades = trader();
  const { page, wrong } = await open(t, { server: { things: { ...both, ...trades, activity: { ...both.activity, ...trades.activity } }, me: { may: traderMay.may } } });
  await page.getByText("2 things need somebody").waitFor();
  const trade = page.getByRole("region", { name: "Trade", exact: true });
  await trade.getByText(/waits? for your decision/).first().waitFor();
  assert.deepEqual(await page.getByRole("navigation", { name: "Screens" }).getByRole("link").allInnerTexts(),
    ["Overview", "Map", "Providers", "Consumers", "Workloads", "Policies", "Activity", "Market", "Contracts", "Own offers", "Registries", "Licences"]);
  assert.deepEqual(await faults(page), []);
  await go(page, "/activity");
  await page.locator("tbody tr").nth(13).waitFor();
  await page.getByRole("link", { name: "purchase nightly" }).click();
  await page.getByRole("heading", { name: "nightly" }).waitFor();
  assert.deepEqual(wrong, []);
});

test("what is needed is in the address, is found in the order of choice, and is bought after it was tried", async (t) => {
  const { page, s, wrong } = await open(t, { server: { things: trader(), me: traderMay }, to: "/market" });
  await page.getByLabel("CPU", { exact: true }).fill("4");
  await page.getByLabel("For", { exact: true }).fill("24h");
  await page.getByText("2.88 EUR in all").waitFor();
  assert.match(page.url(), /cpu=4&for=24h/);
  const rows = page.getByRole("region", { name: "Plans" }).locator("tbody tr");
  assert.match(await rows.nth(0).innerText(), /north-cloud.*small.*0.12 EUR\/h/s);
  assert.equal(await rows.count(), 3);

  // One plan, its terms, and what is promised and what was measured.
  await rows.nth(0).getByRole("link").click();
  await page.getByText("The seller promises to be there for 99.9 % of a month").waitFor();
  await page.getByRole("button", { name: "Buy", exact: true }).click();
  const dialog = page.locator("dialog[open]");
  assert.equal(await dialog.getByRole("button", { name: "Buy" }).count(), 0, "It is tried before it can be bought.");
  await dialog.getByLabel("Name").fill("render");
  await dialog.getByRole("button", { name: "Try it" }).click();
  await dialog.getByText("first: north-cloud aaaaaaaa, small").waitFor();
  assert.ok(s.options.seen.at(-1).endsWith("/api/v1/orders?dryRun=All"), s.options.seen.at(-1));

  // What is changed is tried again.
  await dialog.getByLabel("In all at most").fill("100 EUR");
  await dialog.getByRole("button", { name: "Try it" }).click();
  await dialog.getByRole("button", { name: "Buy", exact: true }).click();
  await page.getByRole("heading", { name: "render" }).waitFor();
  assert.deepEqual(s.options.asked.at(-1), { resources: { cpu: "4", memory: "16Gi", pods: "80" }, duration: "24h", maxPrice: "0.12 EUR/h", name: "render", reference: plan, maxTotal: "100 EUR" });
  await page.getByText("It waits for the connector.").first().waitFor();

  // How far it is comes by the stream.
  s.options.tell("contracts", "buys/render", "contract", { state: "Active", ready: { type: "Ready", status: "True", reason: "Active", message: "The contract is in use.", since: new Date().toISOString() } });
  await page.locator(".way [aria-current=step]", { hasText: "Active" }).waitFor();
  assert.deepEqual(wrong, []);
});

test("what is changed while it is tried is tried again", async (t) => {
  const { page, s, wrong } = await open(t, { server: { things: trader(), me: traderMay }, to: `/market/${plan}?cpu=4&for=24h` });
  await page.getByRole("button", { name: "Buy", exact: true }).click();
  const dialog = page.locator("dialog[open]");
  await dialog.getByLabel("Name").fill("render");
  let answer;
  const held = new Promise((done) => (answer = done));
  await page.route("**/orders?dryRun=All", async (route) => (await held, route.continue()));
  const answered = page.waitForResponse("**/orders?dryRun=All");
  await dialog.getByRole("button", { name: "Try it" }).click();
  await dialog.getByText("Trying it").waitFor();
  await dialog.getByLabel("At most").first().fill("9 EUR/h");
  answer();
  await (await answered).finished();
  await dialog.getByText("Trying it").waitFor({ state: "detached" });
  assert.equal(await dialog.getByRole("button", { name: "Buy", exact: true }).count(), 0, "What can be bought is not what was tried.");
  await dialog.getByRole("button", { name: "Try it" }).click();
  await dialog.getByRole("button", { name: "Buy", exact: true }).waitFor();
  assert.equal(s.options.asked.at(-1)?.maxPrice ?? "9 EUR/h", "9 EUR/h");
  assert.deepEqual(wrong, []);
});

test("what a buyer asks for is beside what is in force, and is approved by its number", async (t) => {
  const { page, s, wrong } = await open(t, { server: { things: trader(), me: traderMay }, to: "/contracts" });
  const first = page.getByRole("region", { name: "Contracts" }).locator("tbody tr").nth(0);
  assert.match(await first.innerText(), /s-grow.*waits for you/s);
  await first.getByRole("link").click();
  await page.getByRole("row", { name: "Price 0.12 EUR/h 0.24 EUR/h" }).first().waitFor();
  await page.getByRole("button", { name: "Approve" }).click();
  await page.locator("dialog[open]").getByRole("button", { name: "Try it" }).click();
  await page.locator("dialog[open]").getByText("It was tried").waitFor();
  await page.locator("dialog[open]").getByRole("button", { name: "Approve" }).click();
  await page.getByText("s-grow is asked to approve.").waitFor();
  assert.deepEqual(s.options.asked.at(-1), { version: "3", terms: 2 });
  await page.getByRole("button", { name: "Approve" }).waitFor({ state: "detached" }); // The answer may come before the event.

  // What somebody else has changed meanwhile is not overwritten.
  await go(page, "/contracts/buys/nightly");
  await page.getByRole("button", { name: "End" }).click();
  s.options.tell("contracts", "buys/nightly", "contract", { version: "9" });
  await page.locator("dialog[open]").getByLabel("Reason, which the other side is told").fill("too dear");
  await page.locator("dialog[open]").getByRole("button", { name: "Try it" }).click();
  await page.getByText("somebody has changed the contract meanwhile").waitFor();
  assert.deepEqual(wrong.filter((line) => !line.includes("409")), []);
});

test("who may not trade sees why, and changes nothing", async (t) => {
  const { page, s } = await open(t, { server: { things: trader(), me: { ...traderMay, may: [] } }, to: "/contracts/sells/s-grow" });
  await page.getByRole("button", { name: "Approve" }).click({ force: true });
  await page.getByText("You may not update sales.brokering.liqo.io.").first().waitFor();
  assert.equal(await page.locator("dialog[open]").count(), 0);
  assert.deepEqual(s.options.asked, []);
});

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
  await page.locator("dialog").waitFor({ state: "detached" }); // One that is closed has no role, and is still there for a moment.
  assert.equal(puts().length, 1, "Esc does nothing");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Drain", "where it was opened");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Drain" }).click();
  await page.getByText("Drained", { exact: true }).first().waitFor();
  assert.deepEqual(puts().at(-1), "PUT /api/v1/providers/p-0000/scheduling");
  await page.getByRole("button", { name: "Enable" }).waitFor();
  assert.deepEqual(wrong, []);
});

test("what could not be done can be done again: a deed at once, and a contract after it was tried again", async (t) => {
  for (const [to, verb, then, server] of [
    ["/consumers/c-000", "Suspend", "Suspend", {}], ["/policies/cheapest/edit", "Apply", "Apply", {}],
    ["/contracts/sells/s-grow", "Approve", "Try it", { things: trader(), me: traderMay }],
  ]) {
    const { page, s } = await open(t, { server, to });
    const dialog = page.locator("dialog[open]");
    await page.locator(`button:not([aria-disabled=true]):text-is("${verb}")`).click();
    if (then !== verb) await dialog.getByRole("button", { name: "Try it" }).click();
    await dialog.locator(`button.main:enabled:text-is("${verb}")`).waitFor();
    s.options.down = true;
    await dialog.locator("button.main").click();
    await dialog.getByText("does not answer").waitFor();
    await dialog.locator(`button.main:enabled:text-is("${then}")`).waitFor();
    s.options.down = false;
    await dialog.locator("button.main").click();
    await (then === verb ? page.locator("dialog").waitFor({ state: "detached" }) : dialog.getByText("It was tried").waitFor());
  }
});

test("a drain shows first what it would do", async (t) => {
  const { page, s } = await open(t, { to: "/providers/p-0000" });
  let plan;
  s.options.planned = new Promise((done) => (plan = done));
  await page.getByRole("button", { name: "Drain" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Planning what it would do").waitFor();
  await dialog.getByText("12 pods would move, 2 stay").waitFor();
  assert.equal(await dialog.getByRole("button", { name: "Drain" }).isDisabled(), true, "before it is said what it would do");
  plan();
  await dialog.getByText("Of the pods on the provider 3 would move at once, 1 later, and 1 would stay.").waitFor();
  assert.equal(await dialog.getByRole("button", { name: "Drain" }).isDisabled(), false);
  assert.deepEqual(await dialog.locator(".split-of li").allTextContents(), ["1 would stay", "1 would move later", "3 would move at once"]);
  assert.deepEqual(await dialog.locator("tbody tr:not(.group) td:nth-child(2)").allTextContents(), ["Stays", "Later", "Moves", "Moves", "Moves"]);
  assert.equal(await dialog.locator("tr.group").first().textContent(), "db of bank · 1 pod");
  assert.match(await dialog.locator("tbody tr:not(.group)").first().textContent(), /No other provider has room for it\.$/);
  assert.deepEqual(await faults(page), []);
  await dialog.getByRole("link", { name: "See it on a page of its own" }).click();
  await page.getByRole("heading", { name: "Drain of milan" }).waitFor();
  await page.locator("dialog").waitFor({ state: "detached" }); // One that is closed has no role, and is still there for a moment.
  assert.deepEqual(s.options.seen.filter((line) => line.startsWith("PUT")), ["PUT /api/v1/providers/p-0000/scheduling?dryRun=All"]);
});

for (const [status, detail, want] of [
  [403, "pods is forbidden", "You may not see what it would do. Pods is forbidden. It can be drained all the same."],
  [404, "the broker keeps no plans", "What it would do cannot be said here. The broker keeps no plans. It can be drained all the same."],
  [503, "the cache is not read\u202e yet", "What it would do cannot be said now. The cache is not read? yet. It can be drained all the same."],
]) {
  test(`a drain of which ${status} is said is possible`, async (t) => {
    const { page, s } = await open(t, { to: "/providers/p-0000" });
    s.options.drain = { status, detail };
    await page.getByRole("button", { name: "Drain" }).click();
    await page.getByText(want, { exact: true }).waitFor();
    await page.locator("dialog button.main:enabled").waitFor();
    s.options.drain = undefined;
    await page.getByRole("button", { name: "Ask again" }).click();
    await page.getByText("1 would stay.").waitFor();
    s.options.drain = { status, detail };
    await page.keyboard.press("Escape");
    await go(page, "/providers/p-0000/drain");
    await page.getByText(want, { exact: true }).waitFor();
    await page.getByRole("button", { name: "Drain" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Drain" }).click();
    await page.getByText("It is being drained.").waitFor();
    assert.equal(s.options.seen.at(-1), "PUT /api/v1/providers/p-0000/scheduling");
  });
}

test("a drain has an address of its own, and is bounded", async (t) => {
  const { page, wrong } = await open(t, { to: "/providers/p-0000/drain", server: { things: world({ providers: 3, consumers: 2, pods: 1800 }) } });
  await page.getByRole("heading", { name: "Drain of milan" }).waitFor();
  await page.getByText("Of the pods on the provider").waitFor();
  assert.equal(await page.locator("tbody tr:not(.group)").count(), 250);
  const said = await page.locator(".split-of b").allTextContents();
  const all = said.reduce((sum, n) => sum + Number(n.replace(",", "")), 0);
  await page.getByText(`and ${(all - 250).toLocaleString("en")} more pods`, { exact: true }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Copy command" }).getAttribute("title"), "kubectl liqo-broker drain p-0000 --dry-run --context kind-broker");
  await page.keyboard.press("/");
  await page.keyboard.type("stays room");
  await page.waitForFunction(() => document.querySelectorAll("tbody tr:not(.group)").length < 250);
  assert.deepEqual([...new Set(await page.locator("tbody tr:not(.group) td:nth-child(3)").allTextContents())], ["No other provider has room for it."]);
  assert.deepEqual(wrong, []);
});

test("a pod says which policy it follows, what that has decided, and of what the scores are made", async (t) => {
  const { page, s } = await open(t, { to: podOf("c-000/web-c-000/web-0-7d9f") });
  await page.getByRole("heading", { name: "What cheapest has decided for shop" }).waitFor();
  const first = page.locator(".lines > li").first();
  assert.match(await first.textContent(), /^milanit is herechosenscore 98 of 100/);
  assert.deepEqual(await first.locator(".terms li").evaluateAll((all) => all.map((li) => [...li.children].map((c) => c.textContent).join("|"))),
    ["|priceCPU 0.01 EUR/h|weight -50|50 points", "|latency 0.012 s|weight -30|30 points", "|availability24h 0.999 ratio|weight 20|18 points"]);
  assert.deepEqual(await first.locator(".points .term").evaluateAll((all) => all.map((bar) => bar.style.width)), ["50%", "30%", "18%"]);
  assert.deepEqual(await first.locator("ul.why li").allTextContents(), ["stands in for one that cannot be used"], "what is no term");
  await page.getByText("turin has been better than a chosen one for 5m, and takes its place in 9m if that lasts.").waitFor();
  await page.getByText("cpu 250m, memory 512Mi").waitFor();
  await page.getByText("11 more, 4 of them excluded").click();
  await page.getByText('filter region == "it"').first().waitFor();
  await page.getByText("unknown: not measured").first().waitFor();
  await page.getByRole("list", { name: "Where it is" }).getByRole("link", { name: "cheapest" }).click();
  await page.getByRole("heading", { name: "shop and milan" }).waitFor();
  await page.getByText("50 points").waitFor();
  await go(page, podOf("c-001/db-c-001/db-b-7d9f"));
  await page.getByText("Its namespace follows no policy").waitFor();
  assert.equal(s.options.seen.filter((line) => line.includes("/drain")).length, 0, "nothing is planned that nobody asked for");
});

test("a pod that waits says why, and one of which nobody knows says who may", async (t) => {
  const { page } = await open(t, { to: podOf("c-002/web-c-002/web-c-7d9f") });
  await page.getByText("0/14 nodes are available: 10 Insufficient cpu, 4 node(s) were unschedulable.").waitFor();
  await go(page, podOf("c-000/batch-c-000/batch-p-7d9f"));
  await page.getByText("Why is not told here.").waitFor();
  await page.getByText("kubectl liqo-broker explain batch-c-000/batch-p-7d9f --context kind-broker").waitFor();
  await go(page, podOf("c-001/batch-c-001/batch-g-7d9f"));
  await page.getByText("The provider is to be drained, and the pod stays").waitFor();
  await page.getByRole("heading", { name: "What near has decided for lab" }).waitFor();
  assert.match(await page.locator(".terms li").first().textContent(), /^latency .*weight -10/, "that of its own policy");
});

test("a policy says how many providers it uses, and when that changes", async (t) => {
  const { page } = await open(t, { to: "/policies/near?consumer=c-000&provider=p-0000" });
  const pair = page.locator(".pair");
  await pair.getByText("Above 0.8 ratio for 2m of the 5m that it takes: then one provider more is used.").waitFor();
  await pair.getByText("Uses 2 providers, 1 at least, 4 at most.").waitFor();
  assert.match(await pair.locator(".band-of").textContent(), /^fewer below 0\.3 ratio0\.86 ratio, \d+[sm]\S* agomore above 0\.8 ratio$/);
  const all = page.getByRole("region", { name: "How many providers it uses" });
  await all.getByText("There is no value now: the query answers nothing. The number of providers holds.").waitFor();
  assert.equal(await all.locator(".band .value").count(), 2, "an unknown value is not drawn");
});

test("a provider shows its labels, and when it was available", async (t) => {
  const { page } = await open(t, { to: "/providers/p-0002" });
  await page.getByRole("heading", { name: "Availability" }).waitFor();
  const chips = await page.locator(".chips .chip").allTextContents();
  assert.deepEqual(chips, [`example.com/owner=<b>?${"x".repeat(60)}`, "example.com/tier=silver", "liqo.io/type", "topology.kubernetes.io/region=no"]);
  await page.getByRole("img", { name: "availability24h: available for 95.07 % of 22h, not watched in 2 of 24 slots" }).waitFor();
  await page.getByText("As numbers").click();
  const numbers = page.getByRole("region", { name: "Availability as numbers" });
  assert.equal(await numbers.getByRole("row").count(), 1 + 3 + 12 + 24 + 30);
  assert.equal(await numbers.getByRole("row", { name: "unknown" }).count(), 2 + 19);
  await go(page, "/providers/p-0003");
  await page.getByText("Nobody has watched it yet.").waitFor();
  await go(page, "/providers/p-0004");
  await page.getByRole("heading", { name: "bergen" }).waitFor();
  assert.equal(await page.getByText("Availability", { exact: true }).count(), 0, "a server that does not tell");
  await go(page, "/providers?q=tier=gold");
  await page.getByText("7 of 14 clusters").waitFor();
});

test("the map has direct, relayed and waiting pods, and a tunnel that is down", async (t) => {
  const { page } = await open(t, { to: "/map" });
  await page.getByRole("heading", { name: "Map", exact: true }).waitFor();
  await page.getByText("5 consumers and 14 providers").waitFor();
  for (const kind of ["relay", "direct", "down"]) await page.locator(`.map-picture .${kind}`).first().waitFor({ state: "attached" });
  await page.locator(".map-picture .line.waits").waitFor({ state: "attached" });
  assert.equal(await page.getByRole("button", { name: "Copy command" }).getAttribute("title"), "kubectl liqo-broker providers -o wide --context kind-broker");
});

/** In a page of its own: how much two pictures differ, as the contrasts of the pixels that do, the greatest first. */
function contrasts(blank, before, now) {
  return blank.evaluate(async (pictures) => {
    const [a, b] = await Promise.all(pictures.map(async (base64) => {
      const bitmap = await createImageBitmap(new Blob([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], { type: "image/png" }));
      const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
      canvas.drawImage(bitmap, 0, 0);
      return canvas.getImageData(0, 0, bitmap.width, bitmap.height).data;
    }));
    const linear = (v) => (v <= 10.31 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    const light = (of, i) => 0.2126 * linear(of[i]) + 0.7152 * linear(of[i + 1]) + 0.0722 * linear(of[i + 2]) + 0.05;
    const all = [];
    for (let i = 0; i < a.length; i += 4) {
      if (a[i] === b[i] && a[i + 1] === b[i + 1] && a[i + 2] === b[i + 2]) continue;
      const [x, y] = [light(a, i), light(b, i)];
      all.push(x > y ? x / y : y / x);
    }
    return all.sort((x, y) => y - x);
  }, [before, now].map((picture) => picture.toString("base64")));
}

// Of each sort of thing in the picture some are drawn alone, with what they lie on, and without: axe looks at no picture. The edge of a line
// is blended with its ground, so that of what is drawn the tenth part counts that stands out the most.
for (const colorScheme of ["light", "dark"]) {
  for (const [size, number, sorts] of [["single clusters", {}, ["way relay", "way direct", "way down", "line waits", "box ok", "box off", "box problem", "sign", "broker", "name", "sub", "trip", "trip down"]],
    ["groups", { providers: 300, consumers: 80, pods: 900 }, ["way relay", "tiles ok", "tiles off", "tiles problem", "sub"]]]) {
    test(`the map of ${size} stands out from its ground in ${colorScheme}`, async (t) => {
      const { page } = await open(t, { to: "/map", context: { colorScheme, deviceScaleFactor: 2, viewport: { width: 1440, height: 2400 } }, server: { things: world(number) } });
      await page.locator(".map-picture .way.relay").first().waitFor({ state: "attached" });
      const blank = await page.context().newPage();
      await page.bringToFront();
      const found = await page.evaluate(() => {
        const all = [...document.querySelectorAll(".map-picture :is(path, rect, text)")];
        const sorts = new Map();
        for (const one of all) {
          const of = one.closest("a");
          const sort = [of?.getAttribute("class"), one.getAttribute("class") ?? one.tagName].join(" > ");
          sorts.set(sort, [...(sorts.get(sort) ?? []), one]);
        }
        window.picked = [...sorts].flatMap(([sort, those]) => those.slice(0, 2).map((one) => ({ sort, one })));
        window.only = (n, shown) => {
          const { one } = window.picked[n];
          for (const other of all) other.style.visibility = "hidden";
          const under = one.tagName !== "rect" && one.closest("a.box, a.pill")?.querySelector("rect");
          if (under) under.style.visibility = "visible";
          if (one.tagName === "rect") one.style.fill = "none";
          if (shown) one.style.visibility = "visible";
          const { x, y, width, height } = one.getBoundingClientRect();
          return { x: x - 4, y: y - 4, width: width + 8, height: height + 8 };
        };
        return window.picked.map(({ sort, one }) => ({ sort, text: one.tagName === "text" }));
      });
      for (const sort of sorts) assert.ok(found.some((one) => one.sort.includes(sort)), `nothing is drawn as ${sort}`);
      for (const [n, { sort, text }] of found.entries()) {
        const clip = await page.evaluate((n) => window.only(n, false), n);
        const before = await page.screenshot({ clip });
        await page.evaluate((n) => window.only(n, true), n);
        const all = await contrasts(blank, before, await page.screenshot({ clip }));
        const stands = all[Math.floor(all.length / (text ? 50 : 10))] ?? 1;
        assert.ok(all.length > 0, `${sort} is not seen`);
        assert.ok(stands >= (text ? 4.5 : 3), `${sort} has a contrast of ${stands.toFixed(2)}`);
      }
    });
  }
}

test("the head of a group of rows is as wide as its table", async (t) => {
  for (const width of [360, 900, 1440]) {
    const { page } = await open(t, { to: "/workloads", context: { viewport: { width, height: 900 } } });
    await page.locator("tr.group").first().waitFor();
    const sizes = () => page.evaluate(() => [...document.querySelectorAll("tr.group th, thead tr")].map((e) => Math.round(e.getBoundingClientRect().width)));
    assert.equal(new Set(await sizes()).size, 1, `${await sizes()} at ${width} px`);
    await page.setViewportSize({ width: width === 360 ? 1440 : 360, height: 900 });
    await page.waitForFunction(() => new Set([...document.querySelectorAll("tr.group th, thead tr")].map((e) => Math.round(e.getBoundingClientRect().width))).size === 1);
  }
});

// What the page is for is at most three clicks away from where it begins.
const questions = {
  "which pods run at provider-b, and by which path": async (page, click) => {
    await click(page.getByRole("link", { name: "Providers", exact: true }).first());
    await click(page.getByRole("link", { name: "provider-b", exact: true }));
    const pods = page.getByRole("region", { name: "Workloads", exact: true });
    await pods.waitFor();
    const rows = await pods.locator("tbody tr:not(.group)").evaluateAll((all) => all.map((row) => [row.cells[0].textContent, row.cells[2].textContent]));
    const want = Object.values(world({ names: ["provider-a", "provider-b"] }).workloads).filter((w) => w.provider?.id === "p-0001").map((w) => [w.pod, w.path]);
    assert.ok(want.some(([, path]) => path === "direct") && want.some(([, path]) => path === "relay"));
    assert.deepEqual(rows.toSorted(), want.toSorted());
  },
  "why a pod waits": async (page, click) => {
    await click(page.getByRole("link", { name: "Workloads", exact: true }).first());
    await click(page.getByRole("row", { name: "Waiting" }).getByRole("link").filter({ hasText: "web-c-7d9f" }));
    await page.getByText("10 Insufficient cpu").waitFor();
  },
  "what a drain of provider-a would do": async (page, click) => {
    await click(page.getByRole("link", { name: "Providers", exact: true }).first());
    await click(page.getByRole("link", { name: "provider-a", exact: true }));
    await click(page.getByRole("button", { name: "Drain" }));
    await page.getByText("Of the pods on the provider 3 would move at once, 1 later, and 1 would stay.").waitFor();
  },
};
/** Those of a cluster that trades. */
const tradeQuestions = {
  "the cheapest offer for 2 CPU for a day in eu-north": async (page, click, s) => {
    await click(page.getByRole("link", { name: "Market", exact: true }).first());
    await page.getByLabel("CPU", { exact: true }).fill("2");
    await page.getByLabel("For", { exact: true }).fill("24h");
    await page.getByRole("form", { name: "What you need" }).getByRole("combobox").selectOption("eu-north");
    await page.getByText("Best choice").waitFor();
    await page.waitForFunction(() => !document.querySelector("[aria-busy=true]"));
    assert.deepEqual(s.options.asked.at(-1), { resources: { cpu: "2" }, duration: "24h", regions: ["eu-north"] });
  },
  "who has suspended a contract": async (page, click) => {
    await click(page.getByRole("link", { name: "Contracts", exact: true }).first());
    await click(page.getByRole("link", { name: "s-quiet" }));
    await page.getByText("by the seller").first().waitFor();
    await page.getByText("maintenance of the racks").first().waitFor();
  },
};
for (const [question, [server, begin, answer]] of Object.entries({
  ...Object.fromEntries(Object.entries(questions).map(([q, answer]) => [q, [{ things: world({ names: ["provider-a", "provider-b"] }) }, "2 things need somebody", answer]])),
  ...Object.fromEntries(Object.entries(tradeQuestions).map(([q, answer]) => [q, [{ things: trader(), me: traderMay }, "Overview", answer]])),
})) {
  test(`three clicks say ${question}`, async (t) => {
    const { page, s, wrong } = await open(t, { server });
    await page.getByText(begin).first().waitFor();
    let clicks = 0;
    await answer(page, async (at) => (clicks++, at.click()), s);
    assert.ok(clicks <= 3, `${clicks} clicks`);
    assert.deepEqual(s.options.seen.filter((line) => line.startsWith("PUT") && !line.endsWith("?dryRun=All")), [], "nothing is changed");
    assert.deepEqual(wrong, []);
  });
}

test("who may not sees why", async (t) => {
  const { page, s } = await open(t, { to: "/providers/p-0000", server: { me: { may: [] } } });
  await page.getByRole("button", { name: "Cordon" }).click({ force: true });
  await page.getByText("You may not patch providers.brokering.liqo.io.").first().waitFor();
  assert.equal(await page.getByRole("dialog").count(), 0);
  assert.deepEqual(s.options.seen.filter((line) => line.startsWith("PUT")), []);
});

for (const [who, may, opens] of [
  ["see and change nothing", [], {}],
  ["change all", ["patch providers", "patch consumers", "patch placementpolicies"], {
    "/providers/p-0000": ["Cordon", "Drain"], "/providers/p-0000/drain": ["Drain"], "/consumers/c-000": ["Suspend"], "/policies/cheapest/edit": ["Apply"],
  }],
]) {
  test(`of all buttons those work that change what one may: who may ${who}`, async (t) => {
    const { page, s, wrong } = await open(t, { server: { me: { may } } });
    await page.getByText("live", { exact: true }).waitFor();
    for (const screen of may.length > 0 ? Object.keys(opens) : screens) {
      await go(page, screen);
      await page.locator("h1").waitFor();
      if (screen.endsWith("/edit")) await page.getByText("It changes").waitFor();
      assert.deepEqual(await pressEach(page), opens[screen] ?? [], screen);
    }
    assert.equal(s.options.seen.some((line) => line.startsWith("PUT")), may.length > 0);
    assert.deepEqual(wrong, []);
  });
}

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

test("who has done what is told, and where it is looked at", async (t) => {
  const { page, wrong } = await open(t, { to: "/activity" });
  const rows = page.locator("tbody tr");
  await rows.nth(11).waitFor();
  assert.equal(await rows.count(), 12);
  assert.match(await rows.first().textContent(), /^\d+[sm]\S* agoconsumer shopremote-ipam.*problem1,204 timesThe consumer has 1000/);
  const drained = rows.filter({ hasText: "Active → Drained" });
  assert.equal(await drained.locator("td").nth(2).textContent(), "ada@example.com");
  assert.equal(await drained.locator("td").last().textContent(), "changed spec.scheduling: Active → Drained");
  assert.equal(await rows.filter({ hasText: "provider gone" }).getByRole("link").count(), 0, "a link to what is gone");
  await page.keyboard.press("/");
  await page.keyboard.type("problem");
  await page.getByText("3 of 12 events").waitFor();
  await page.keyboard.press("Escape");
  await drained.getByRole("link", { name: "provider milan" }).click();
  const own = page.getByRole("region", { name: "Activity" });
  await own.locator("li").nth(5).waitFor();
  assert.equal(await own.locator("li").count(), 6, "what is about this provider");
  await go(page, "/");
  await page.getByRole("region", { name: "Last activity" }).locator("li").nth(7).waitFor();
  assert.equal(await page.getByRole("region", { name: "Last activity" }).locator("li").count(), 8);
  assert.deepEqual(wrong, []);
});

test("a server that tells of no activity has no screen of it", async (t) => {
  const kinds = Object.keys(world()).filter((kind) => kind !== "activity").map((kind) => ({ kind }));
  const { page } = await open(t, { server: { me: { kinds } } });
  await page.getByText("2 things need somebody").waitFor();
  assert.equal(await page.getByText("activity").count(), 0);
});

test("where nothing has happened, the page says what kubectl would", async (t) => {
  const { page } = await open(t, { to: "/activity", server: { things: { ...world(), activity: {} } } });
  await page.getByText("Nothing has happened that the cluster remembers.").waitFor();
  await page.getByText("kubectl get events --namespace default --field-selector involvedObject.apiVersion=brokering.liqo.io/v1alpha1 --context kind-broker").first().waitFor();
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
  await page.clock.fastForward(10_000); // Beside the time that really passes.
  assert.equal(await page.getByText(/stale since/).count(), 0);
  let tell;
  s.options.streamed = new Promise((done) => (tell = done));
  await page.clock.fastForward(21_000);
  await page.getByText(/stale since/).waitFor();
  tell();
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
  await page.getByText("The server was started again").waitFor();
  await turin.waitFor();
});

test("a policy is tried while it is written, and applied when told so", async (t) => {
  const { page, s, wrong } = await open(t, { to: "/policies/cheapest/edit" });
  const text = page.getByRole("textbox", { name: "Policy as YAML" });
  await page.waitForFunction(() => document.querySelector("textarea")?.value.includes("name: cheapest"));
  await page.getByText("3 pods on providers that go out").waitFor();
  const changes = await page.locator(".changes > li").allInnerTexts();
  assert.deepEqual(changes.map((line) => line.replace(/\s+/g, " ").slice(0, 14)), ["comes in <img ", "goes out turin", "stays milan"]);
  assert.equal(s.options.texts.length, 1, "it is asked once");

  await text.fill("kind: PlacementPolicy\nspec: {filters: [kpj]}\n");
  await page.getByText("line 2, column 3: spec.filters[0]: no kpj").waitFor();
  assert.equal(await text.getAttribute("aria-invalid"), "true");
  await page.getByRole("button", { name: "Show line 2" }).click();
  assert.equal(await page.evaluate(() => { const a = document.activeElement; return a.value.slice(a.selectionStart, a.selectionEnd); }), "spec: {filters: [kpj]}");
  await page.keyboard.press("Tab");
  assert.notEqual(await page.evaluate(() => document.activeElement.tagName), "TEXTAREA", "Tab leaves it");
  await page.getByRole("button", { name: "Apply", exact: true }).click({ force: true });
  assert.equal(await page.getByRole("dialog").count(), 0, "what has faults is not applied");

  await text.fill("kind: PlacementPolicy\n# good\n");
  await page.getByText("3 pods on providers that go out").waitFor();
  await page.locator("[aria-busy=false]").waitFor();
  await page.getByRole("button", { name: "Apply", exact: true }).click();
  await page.getByText("12 pods would move").waitFor();
  const puts = () => s.options.seen.filter((line) => line.startsWith("PUT"));
  assert.deepEqual(puts(), ["PUT /api/v1/policies/cheapest?dryRun=All"]);
  await page.getByRole("dialog").getByRole("button", { name: "Apply" }).click();
  await page.getByText("cheapest is applied.").waitFor();
  assert.equal(puts().at(-1), "PUT /api/v1/policies/cheapest");
  assert.equal(s.options.texts.at(-1), "kind: PlacementPolicy\n# good\n");
  assert.deepEqual(wrong.filter((line) => !line.includes("422")), []);
});

test("a hosted page has no button that applies a policy", async (t) => {
  const { page } = await open(t, { to: "/policies/new", server: { me: { context: undefined } } });
  await page.getByText("comes in").first().waitFor();
  assert.equal(await page.getByRole("button", { name: "Apply", exact: true }).count(), 0);
});
