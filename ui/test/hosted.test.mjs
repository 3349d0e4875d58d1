// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// The page as the broker itself serves it, in a browser: it asks for a token, keeps it for its tab alone, and asks again when it counts no more.
// The environment says where playwright is (MODULES), and the browser (CHROMIUM).

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { faults } from "./axe.mjs";
import { serve, world } from "./fake.mjs";

const { chromium } = createRequire(`${process.env.MODULES}/`)("playwright-core");
const dist = new URL("../../pkg/ui/dist", import.meta.url).pathname;

test("the page of the broker asks for a token, and again when it counts no more", async (t) => {
  const expires = new Date(Date.now() + 10.5 * 60_000).toISOString();
  const s = await serve({ dist, hosted: true, policies: false, me: { expires, context: undefined } });
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
  t.after(async () => (await browser.close(), s.close()));
  const page = await (await browser.newContext()).newPage();
  const wrong = [];
  page.on("console", (m) => m.type() === "error" && !/401|INCOMPLETE_CHUNKED/.test(m.text()) && wrong.push(m.text()));
  page.on("pageerror", (e) => wrong.push(e.message));
  s.options.key = "first-secret";
  await page.goto(`${s.address}#/providers?q=turin`);
  const field = page.locator("input[name=token]");
  await field.waitFor();
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await faults(page), [], colorScheme);
  }
  await field.fill("mmmmmmmm");
  const masked = await field.screenshot({ caret: "hide" });
  await field.fill("iiiiiiii");
  assert.ok(masked.equals(await field.screenshot({ caret: "hide" })), "what is in it can be read");
  assert.deepEqual(await field.evaluate((one) => [one.labels[0].innerText.trim(), one.autocomplete, one.spellcheck]), ["Token", "off", false]);
  assert.equal(s.options.seen.filter((line) => line.includes("/api/")).length, 0, "without a token nothing is asked");

  await field.fill("made-up");
  await page.keyboard.press("Enter");
  await page.getByText("The token does not count").waitFor();
  await field.fill(" first-secret\n");
  await page.keyboard.press("Enter");
  const turin = page.getByRole("link", { name: "turin", exact: true });
  await turin.waitFor();
  await page.getByText(/^The token expires in ([5-9]|10) min$/).waitFor();
  assert.equal(await field.count(), 0);

  const nowhere = async (secret) => {
    const found = await page.evaluate(() => ({
      url: location.href, local: JSON.stringify(localStorage), cookie: document.cookie, document: document.documentElement.outerHTML,
      fields: [...document.querySelectorAll("input")].map((input) => input.value), tab: JSON.stringify(sessionStorage),
    }));
    const { tab, ...others } = found;
    assert.ok(tab.includes(secret), "the tab keeps it");
    for (const [where, text] of Object.entries(others)) assert.ok(!String(text).includes(secret), `it is in ${where}`);
    assert.ok(!s.options.seen.some((line) => line.includes(secret)), "it is in the address of a request");
  };
  await nowhere("first-secret");

  s.options.key = "second-secret";
  s.cut();
  await field.waitFor();
  await turin.waitFor();
  await page.locator(".page.closed").waitFor(); // What was is grey, and can still be read.
  assert.deepEqual(await faults(page), []);
  assert.match(page.url(), /#\/providers\?q=turin$/);
  assert.ok(!(await page.evaluate(() => JSON.stringify(sessionStorage))).includes("first-secret"), "what does not count is forgotten");
  await field.fill("second-secret");
  await page.getByRole("button", { name: "Go on" }).click();
  await page.getByText("live", { exact: true }).waitFor();
  await turin.waitFor();
  assert.match(page.url(), /#\/providers\?q=turin$/);
  await nowhere("second-secret");

  // On a small screen, too, one can go.
  await page.setViewportSize({ width: 360, height: 900 });
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0, "it is wider than the window");
  assert.deepEqual(await faults(page), []);
  await page.getByRole("button", { name: "Forget token" }).click();
  await page.getByText("This page needs a token").waitFor();
  assert.equal(await turin.count(), 0, "nothing of what was read is left");
  assert.ok(!(await page.evaluate(() => JSON.stringify(sessionStorage))).includes("second-secret"));
  assert.deepEqual(wrong, []);
});

test("whoever gives another token begins from nothing", async (t) => {
  const things = world({ names: ["only-for-ada"] });
  const s = await serve({ dist, hosted: true, things, me: { context: undefined } });
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
  t.after(async () => (await browser.close(), s.close()));
  const page = await (await browser.newContext()).newPage();
  await page.addInitScript(() => {
    const look = () => {
      const left = [...document.querySelectorAll("head, body")].find((part) => part.outerHTML.includes("only-for-ada"));
      if (left && sessionStorage.getItem("liqo-broker-key") === "of-bob") sessionStorage.setItem("left", left.outerHTML);
      requestAnimationFrame(look);
    };
    look();
  });
  const give = async (token) => {
    await page.getByRole("textbox", { name: "Token", exact: true }).fill(token);
    await page.keyboard.press("Enter");
  };

  s.options.key = "of-ada";
  await page.goto(`${s.address}#/providers`);
  await give("of-ada");
  await page.getByRole("link", { name: "only-for-ada", exact: true }).click();
  await page.getByRole("heading", { name: "only-for-ada", exact: true }).waitFor();
  s.cut();
  await page.getByText("stale since").waitFor();
  await page.getByText("live", { exact: true }).waitFor();
  assert.equal(s.options.resumed, 1, "the same token goes on from where it was");

  // It expires, and whoever comes then may see less. Every answer takes its time.
  s.options.key = "of-bob";
  for (const kind of Object.keys(things)) delete things[kind];
  Object.assign(things, world({ providers: 3, names: ["for-all"] }));
  s.cut();
  await page.getByText("The token does not count").waitFor();
  await page.route("**", async (route) => (await new Promise((done) => setTimeout(done, 300)), route.continue()));
  await give("of-bob");
  await page.getByRole("heading", { name: "for-all", exact: true }).waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.getItem("left")), null, "what another person saw is left");
  assert.equal(s.options.resumed, 1, "the stream goes on from where that of another person was");
  assert.match(page.url(), /#\/providers\/p-0000$/);
});

test("a browser does not offer to save the token, and without a mask the field is one of passwords", async (t) => {
  const s = await serve({ dist, hosted: true, me: { context: undefined } });
  const profile = await mkdtemp(join(tmpdir(), "page-"));
  // As people start it: under automation it never offers anything.
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: false, ignoreDefaultArgs: ["--enable-automation"], args: ["--no-sandbox", "--headless=new", "--disable-gpu"],
  });
  t.after(async () => (await context.close(), s.close(), await rm(profile, { recursive: true })));
  const manager = await context.newPage();
  await manager.goto("chrome://password-manager-internals/");
  const said = (words) => manager.locator("body").filter({ hasText: words });

  /** Gives the token of a new page in a browser that can mask text or not. */
  const give = async (masks) => {
    const page = await context.newPage();
    if (!masks) await page.addInitScript(() => (CSS.supports = () => false));
    await page.goto(s.address);
    const field = page.getByRole("textbox", { name: "Token", exact: true });
    await field.pressSequentially(s.options.key);
    const type = await field.getAttribute("type");
    await page.keyboard.press("Enter");
    await page.getByText("live", { exact: true }).waitFor();
    return type;
  };
  const offered = /The new state of the UI:\s*PENDING_PASSWORD_STATE/;
  assert.equal(await give(true), "text");
  await said("Decision: DROP the password").waitFor();
  assert.equal(await said(offered).count(), 0, "it offers to save the token");
  assert.equal(await give(false), "password");
  await said(offered).waitFor(); // It is seen when it does.
});
