// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Where the page is, how it looks, and what it has just said.

import { computed, signal } from "@preact/signals";
import { quoted } from "./format";
import { codeIn, href, parse, type Route } from "./routes";
import { hosted, kept, me } from "./server";

export const route = signal<Route>(parse(location.hash));
/** What times are seen from: in a saved page it stands still. */
export const now = signal(SAVED ? Date.parse(kept!.at) : Date.now());
/** What was copied or done, for some seconds. */
export const said = signal("");
export const theme = signal((!SAVED && localStorage.getItem("liqo-broker-theme")) || "auto");

addEventListener("hashchange", () => {
  if (!SAVED && !hosted && codeIn(location.hash)) location.reload(); // The page was opened again in a tab that has it.
  else route.value = parse(location.hash);
});
if (!SAVED) setInterval(() => (now.value = Date.now()), 5000);

/** Goes to a place; what is only narrowed is no step of its own in the tab's history. */
export function narrow(query: Record<string, string | undefined>): void {
  const to = href(route.value.parts, { ...route.value.query, ...query });
  history.replaceState(null, "", to);
  route.value = parse(to);
}

export function setTheme(to: string): void {
  theme.value = to;
  if (!SAVED) localStorage.setItem("liqo-broker-theme", to); // Who shows files may have no storage.
  document.documentElement.dataset.theme = to;
}

let saying = 0;
export function say(text: string): void {
  said.value = text;
  clearTimeout(saying);
  saying = setTimeout(() => (said.value = ""), 8000);
}

export async function copy(text: string, what = ""): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(`Copied: ${what || text}`);
  } catch {
    say(`Copy this: ${what || text}`);
  }
}

/** The line of the plugin for the cluster that is shown. */
export function kubectl(...words: string[]): string {
  return plainKubectl("liqo-broker", ...words);
}

/** A line of kubectl itself. */
export function plainKubectl(...words: string[]): string {
  const context = me.value?.context;
  return ["kubectl", ...words, ...(context ? ["--context", context] : [])].map(quoted).join(" ");
}

/** The words that the filter box asks for. */
const wanted = computed(() => (route.value.query.q ?? "").toLowerCase().split(/\s+/).filter(Boolean));

/** Whether texts have what the filter box asks for. */
export function matches(...texts: (string | undefined)[]): boolean {
  if (!wanted.value.length) return true;
  const all = texts.join(" ").toLowerCase();
  return wanted.value.every((word) => all.includes(word));
}
