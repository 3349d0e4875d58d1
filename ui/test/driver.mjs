// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Does in a browser what a test says, line by line: each line of the standard input is a deed as JSON, and each is answered by a line with
// what the page shows then, with what it has asked of its server but to read, or with an error. The argument is the link that opens the page. The environment says where playwright is
// (MODULES), and the browser (CHROMIUM).

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pressEach } from "./press.mjs";

const load = createRequire(`${process.env.MODULES}/`);
const { chromium } = load("playwright-core");
const link = new URL(process.argv[2]);
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ignoreHTTPSErrors: link.protocol === "https:" });
const page = await context.newPage();
const patience = 30_000; // On a machine that does much else.

/** What a browser complains of, and whom it asks but the page's server. */
const wrong = [];
page.on("console", (m) => m.type() === "error" && wrong.push(m.text()));
page.on("pageerror", (e) => wrong.push(e.message));
page.on("request", (r) => r.url().startsWith(link.origin) || r.url().startsWith("data:") || wrong.push(`asks ${r.url()}`));

/** What the page has asked of its server other than to read something. */
const asked = [];
page.on("request", (r) => r.method() === "GET" || asked.push(`${r.method()} ${r.url().slice(link.origin.length)}`));

const drawn = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/** What can be used now: the dialog if one is open. */
const front = async () => {
  const dialog = page.locator("dialog[open]");
  return (await dialog.count()) ? dialog : page;
};

const deeds = {
  /** Opens a route of the page. */
  async go(route) {
    await page.evaluate((hash) => { location.hash = hash; }, route);
    await drawn();
  },
  /** Waits until the page shows a text, or shows it no more with "not", or has something with a label of its own. */
  async see({ text, not, label, within = patience }) {
    if (label !== undefined) return page.getByLabel(label, { exact: true }).first().waitFor({ state: "attached", timeout: within });
    const shown = page.locator("body");
    await shown.filter({ hasText: text ?? not }).waitFor({ state: text === undefined ? "detached" : "attached", timeout: within });
  },
  /** Presses a button by its name, within the dialog if one is open. */
  async press(name) {
    await (await front()).getByRole("button", { name, exact: true }).first().click({ timeout: patience });
    await drawn();
  },
  /** Presses each button of the content, and says which of them open a dialog. */
  each: () => pressEach(page),
  /** Opens a link by its name. */
  async follow(name) {
    await page.getByRole("link", { name, exact: true }).first().click({ timeout: patience });
    await drawn();
  },
  /** Writes into the field of a label, or chooses there, within the dialog if one is open. */
  async write({ label, text }) {
    const field = (await front()).getByLabel(label, { exact: true }).and(page.locator("input, select, textarea")).first();
    const chooses = await field.evaluate((one) => one.tagName === "SELECT", undefined, { timeout: patience });
    await (chooses ? field.selectOption(text) : field.fill(text));
    await drawn();
  },
  async picture(path) {
    await page.screenshot({ path });
  },
  async colours(scheme) {
    await page.emulateMedia({ colorScheme: scheme });
    await drawn();
  },
};

await page.goto(link.href);
for await (const line of createInterface({ input: process.stdin })) {
  const [[deed, about]] = Object.entries(JSON.parse(line));
  let error = "", said = [];
  try {
    said = (await deeds[deed](about)) ?? [];
  } catch (e) {
    error = e.message;
  }
  process.stdout.write(JSON.stringify({ text: await page.locator("body").innerText(), said, asked, wrong, error }) + "\n");
}
await browser.close();
