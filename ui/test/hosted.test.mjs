// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// The page as the broker itself serves it, in a browser: it asks for a token, keeps it for its tab alone, and asks again when it counts no more.
// The environment says where playwright is (MODULES), and the browser (CHROMIUM).

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { faults } from "./axe.mjs";
import { serve } from "./fake.mjs";

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
  assert.equal(await field.getAttribute("type"), "password");
  assert.equal(await field.getAttribute("autocomplete"), "off");
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
