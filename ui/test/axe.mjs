// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// What is wrong with a page for people who do not see it, or see it otherwise. The environment says where axe is (MODULES).

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const axe = createRequire(`${process.env.MODULES}/`).resolve("axe-core/axe.min.js");

/** What axe finds wrong with the page as it is. */
export async function faults(page) {
  await page.evaluate(readFileSync(axe, "utf8")); // What the debugger runs is not bound by the policy of the page.
  const found = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  return found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 200)).join(" | ")}`);
}
