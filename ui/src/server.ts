// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// The program that serves the page: who calls, what it may, the stream of what is there, and what is changed by it.

import { signal } from "@preact/signals";
import type { DrainPreview, ErrorModel, Me, PolicyTrial } from "./api";
import { EventReader } from "./events";
import { plain, warningsOf } from "./format";
import { unsaid } from "./foresight";
import { type Kind, kinds, Store } from "./store";

/** How the page stands to the server. Since is when the last bytes came, in ms. */
export interface Connection {
  state: "starting" | "live" | "stale" | "closed" | "saved";
  detail?: string;
  since: number;
}

const silence = 20_000;
const patience = 30_000; // To plan for thousands of pods takes seconds.
const keyName = "liqo-broker-key";
/** Whether the page is served by the broker itself: there is no session then, and its person gives a token of the cluster. */
export const hosted = !SAVED && document.documentElement.hasAttribute("data-hosted");
const base = hosted ? "../api/v1" : "api/v1";
/** What a page says that has lost its server, or never had one. */
export const reopen = "kubectl liqo-broker ui";

/** What a saved page shows, and of when it is. */
export const kept = SAVED ? (JSON.parse(document.getElementById("data")!.textContent!) as { at: string; hidden?: boolean; me: Me; events: { kind: string }[] }) : undefined;

export const me = signal<Me | undefined>(undefined);
export const connection = signal<Connection>({ state: "starting", since: Date.now() });
/** When what has changed may be drawn again: drawing tens of thousands of pods takes a while, and leaves most of the time to who reads. */
let next = 0;
/** A hidden tab draws nothing, and must not keep what is to be drawn for ever. */
export const store = new Store((task) => {
  const draw = () => {
    const began = performance.now();
    task();
    setTimeout(() => (next = performance.now() + Math.min(4 * (performance.now() - began), 2000))); // It is drawn before that.
  };
  const wait = next - performance.now();
  if (document.hidden) setTimeout(task, 1000);
  else if (wait > 0) setTimeout(draw, wait);
  else requestAnimationFrame(draw);
});

export class Refusal extends Error {
  constructor(readonly status: number, message: string, readonly faults: string[] = [message]) {
    super(message);
  }
}

/** Asks for what is at a path below version 1 of the API. It fails with a {@link Refusal}, or with why there is no answer. */
async function call(path: string, options: RequestInit = {}): Promise<Response> {
  if (SAVED) throw new Refusal(0, "A saved page cannot ask the cluster.");
  const headers = new Headers(options.headers);
  headers.set("Authorization", `Bearer ${sessionStorage.getItem(keyName) ?? ""}`);
  const answer = await fetch(`${base}/${path}`, { signal: AbortSignal.timeout(15_000), ...options, headers, cache: "no-store" });
  if (answer.ok) return answer;
  const problem = (await answer.json().catch(() => ({}))) as ErrorModel;
  const faults = problem.errors?.flatMap((one) => (one.message ? [plain(one.message)] : []));
  throw new Refusal(answer.status, plain(problem.detail ?? problem.title ?? `the server answers ${answer.status}`), faults?.length ? faults : undefined);
}

let given: (() => void) | undefined;

/** Takes a token from its person, for this tab alone, and begins to watch with it: from nothing, as it may be another person than before. */
export function useToken(token: string): void {
  sessionStorage.setItem(keyName, token);
  if (me.value) return anew();
  connection.value = { state: "starting", since: connection.value.since };
  given?.();
}

/** Forgets the token, and all that was read with it. */
export function forgetToken(): void {
  sessionStorage.removeItem(keyName);
  anew();
}

/** Opens the page again. Nothing of it is seen until it is there. */
function anew(): void {
  document.body.replaceChildren();
  document.title = "liqo-broker";
  location.reload();
}

/** Waits for a token. What is shown stays, and so does the place. */
async function another(detail: string): Promise<void> {
  sessionStorage.removeItem(keyName);
  const waits = new Promise<void>((done) => (given = done));
  close(detail);
  await waits;
}

/** Begins: with a code, exchanges it for a key, and watches for as long as the page is open. */
export async function start(code: string | undefined): Promise<void> {
  if (SAVED) {
    me.value = kept!.me;
    store.take({ name: "reset", data: "", id: "" });
    for (const event of kept!.events) store.take({ name: "set", data: JSON.stringify(event), id: "" });
    store.take({ name: "synced", data: "", id: "" });
    connection.value = { state: "saved", since: Date.parse(kept!.at) };
    return;
  }
  if (hosted) {
    if (!sessionStorage.getItem(keyName)) await another("This page needs a token of the broker's cluster.");
  } else if (code) {
    const body = JSON.stringify({ code });
    const answer = await fetch("session", { method: "POST", body, headers: { "Content-Type": "application/json" } }).catch(() => undefined);
    const given = answer?.ok ? ((await answer.json()) as { key: string }) : undefined;
    if (given) sessionStorage.setItem(keyName, given.key);
    else sessionStorage.removeItem(keyName);
  }
  if (!sessionStorage.getItem(keyName)) {
    close(code ? "This address was opened before, or is older than a minute." : "This tab has no key.");
    return;
  }
  setInterval(watchSilence, 1000);
  for (let failed = 0; ; ) {
    try {
      await watch(() => (failed = 0));
    } catch (error) {
      if (error instanceof Refusal && error.status === 401) {
        if (hosted) {
          store.ended();
          await another(`The token does not count, or has expired: what is here was heard ${new Date(connection.value.since).toLocaleTimeString()} last.`);
          failed = 0;
          continue;
        }
        close("The server was started again, and does not know this tab.");
        return;
      }
      connection.value = {
        state: "stale", since: connection.value.since,
        detail: error instanceof Refusal ? error.message : `The server does not answer.${hosted ? "" : " Does its terminal still run?"}`,
      };
    }
    store.ended();
    await new Promise((done) => setTimeout(done, Math.min(1000 * 2 ** failed++, 10_000)));
  }
}

function close(detail: string): void {
  connection.value = { state: "closed", detail, since: connection.value.since };
}

let heard = Date.now();
let stream: AbortController | undefined;

function watchSilence(): void {
  if (connection.value.state === "live" && Date.now() - heard > silence) {
    connection.value = { state: "stale", since: heard, detail: `Nothing was heard for ${silence / 1000} s.` };
    stream?.abort(); // What has no sign of life for so long is called again.
  }
}

/** Reads one stream to its end. */
async function watch(began: () => void): Promise<void> {
  const before = watched().join();
  me.value = (await (await call("me")).json()) as Me;
  const now = watched().join();
  if (now === "") {
    connection.value = { state: "live", since: Date.now(), detail: "You may watch nothing." };
    heard = Infinity;
    await new Promise((done) => setTimeout(done, 60_000));
    return;
  }
  stream = new AbortController();
  heard = Date.now();
  const headers: Record<string, string> = store.last && before === now ? { "Last-Event-ID": store.last } : {};
  const answer = await call(`events?kinds=${now}`, { headers, signal: stream.signal });
  began();
  const reader = answer.body!.getReader();
  const events = new EventReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard = Date.now();
    if (connection.value.state !== "live" || heard - connection.value.since > 1000) connection.value = { state: "live", since: heard };
    for (const message of events.read(value)) store.take(message);
  }
}

function watched(): Kind[] {
  return kinds.filter((kind) => me.value?.kinds.some((one) => one.kind === kind && !one.missing?.length));
}

/** Which rights lack for a kind; undefined if it can be watched, empty if this cluster has none of it. */
export function missing(kind: Kind): string[] | undefined {
  if (!me.value) return undefined;
  const one = me.value.kinds.find((known) => known.kind === kind);
  return !one ? [] : one.missing?.length ? one.missing : undefined;
}

/** Has the server show a new link where its person sees it, and says what came of that. */
export async function askForLink(): Promise<string> {
  const answer = await fetch("session/link", { method: "POST" }).catch(() => undefined);
  if (answer?.ok) return "The terminal shows a link now.";
  return answer?.status === 429 ? "The terminal has shown a link just now." : "The server does not answer. Does its terminal still run?";
}

/** Why somebody may not do something that is written as it is; empty if nothing stands against it. */
export function refusalOf(right: string): string {
  if (SAVED) return "This is a saved page.";
  if (!me.value || connection.value.state !== "live") return "There is no connection to the cluster.";
  if (me.value.readOnly) return "This page was opened with --read-only.";
  return me.value.may.includes(right) ? "" : `You may not ${right}.brokering.liqo.io.`;
}

/** Why somebody may not change something of the broker; empty if nothing stands against it. The plugin patches what the daemon updates. */
export function refusal(right: string): string {
  if (hosted && right.endsWith("placementpolicies")) return "Policies are applied with kubectl.";
  return refusalOf(me.value?.context === undefined ? right : right.replace("update ", "patch "));
}

/** Asks for something with a body, and returns the answer with what admission says to it. A dry run only tries it. */
export async function send<T>(method: string, path: string, body: unknown, { dry, signal }: { dry?: boolean; signal?: AbortSignal } = {}): Promise<{ said: T; warnings: string[] }> {
  const answer = await call(`${path}${dry ? "?dryRun=All" : ""}`, {
    method, body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, ...(signal ? { signal } : {}),
  });
  return { said: (answer.status === 204 ? undefined : await answer.json()) as T, warnings: warningsOf(answer.headers.get("Warning")) };
}

/** Sets whether a cluster gets anything new, or tries it; returns what admission says to it. */
export async function schedule(of: "providers" | "consumers", id: string, scheduling: string, dry: boolean): Promise<string[]> {
  return (await send("PUT", `${of}/${encodeURIComponent(id)}/scheduling`, { scheduling }, { dry })).warnings;
}

/** What a drain would do, as the broker plans now. It fails with a sentence that says why that cannot be said. */
export async function drainPreview(id: string): Promise<DrainPreview> {
  try {
    const answer = await call(`providers/${encodeURIComponent(id)}/drain`, { signal: AbortSignal.timeout(patience) });
    return (await answer.json()) as DrainPreview;
  } catch (error) {
    throw new Error(unsaid(error instanceof Refusal ? error.status : undefined, error instanceof Error ? error.message : ""));
  }
}

/** What the policy of a text would decide now. */
export async function tryPolicy(policy: string, signal: AbortSignal): Promise<PolicyTrial> {
  return (await send<PolicyTrial>("POST", "policies/try", { policy }, { signal })).said;
}

/** Applies the policy of a text, or tries that; returns what admission says to it. */
export async function applyPolicy(name: string, policy: string, dry: boolean): Promise<string[]> {
  return (await send("PUT", `policies/${encodeURIComponent(name)}`, { policy }, { dry })).warnings;
}

/** A policy as a text, as people apply it. */
export async function policyManifest(name: string): Promise<string> {
  return ((await (await call(`policies/${encodeURIComponent(name)}/manifest`)).json()) as { policy: string }).policy;
}
