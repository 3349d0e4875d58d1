// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// A server with made-up clusters, for what the page looks like. It speaks as kubectl liqo-broker ui does.

import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { gunzipSync } from "node:zlib";
import { activity } from "./activity.mjs";
import { answered, traded } from "./trade.mjs";

const csp = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const at = (seconds) => new Date(Date.now() + seconds * 1000).toISOString();
const pick = (list, i) => list[i % list.length];
const hostile = "<img src=x onerror=alert(1)>\u202egnp.exe\u0007" + "very-long-".repeat(22);

/** A score and what it is made of, as the broker computes it: the points of all terms together. */
function scored(j, i, near) {
  const of = near
    ? [{ name: "latency", value: (12 + j) / 1000, unit: "s", weight: -10, normalized: Math.max(1 - j / 14, 0) }]
    : [
      { name: "priceCPU", value: (j + 1) / 100, unit: "EUR/h", weight: -50, normalized: Math.max(1 - j / 14, 0) },
      { name: "latency", value: (12 + j) / 1000, unit: "s", weight: -30, normalized: Math.max(1 - ((j + i) % 14) / 14, 0) },
      ...(j === 3 ? [{ name: "availability24h", unknown: "not measured", weight: 20, normalized: 0 }] : [{ name: "availability24h", value: 0.9987, unit: "ratio", weight: 20, normalized: 0.9 }]),
    ];
  const weights = of.reduce((sum, t) => sum + Math.abs(t.weight), 0);
  const terms = of.map((t) => ({ ...t, points: Math.round((10000 * t.normalized * Math.abs(t.weight)) / weights) / 100 }));
  const why = terms.map((t) => `${t.name}: ${t.value ?? t.unknown} (${t.normalized.toFixed(2)} of 1, weight ${t.weight})`);
  return { score: Math.round(100 * terms.reduce((sum, t) => sum + t.points, 0)) / 100, terms, why: j === 0 ? [...why, "stands in for one that cannot be used"] : why };
}

/** Of a ranking what the broker explains: the first of each sort. Those that are chosen besides come last, with nothing but their names. */
function explained(ranking) {
  const most = 8, of = { chosen: 0, passed: 0, excluded: 0 };
  const all = ranking.filter((c) => ++of[c.chosen ? "chosen" : c.excluded ? "excluded" : "passed"] <= most);
  const known = new Set(all);
  return { complete: all.length === ranking.length, providers: [...all, ...ranking.filter((c) => c.chosen && !known.has(c)).map(({ id, name, chosen }) => ({ id, name, chosen }))] };
}

/** What a drain of a provider would do with the pods of a world that are there, as the broker sorts them. */
function preview(things, id) {
  const order = ["Stays", "Later", "Moves"];
  const others = Object.values(things.providers).filter((p) => p.id !== id && p.ready);
  const pods = Object.values(things.workloads).filter((w) => w.provider?.id === id).map((w, i) => {
    const verdict = pick(["Moves", "Stays", "Moves", "Later"], i);
    return {
      consumer: w.consumer, namespace: w.namespace, brokerNamespace: w.brokerNamespace, pod: w.pod, verdict,
      ...(verdict === "Stays" ? { why: i % 8 === 1 ? "no other provider has room for it" : "it is the last ready replica of its workload" }
        : { candidates: others.slice(i % 3, (i % 3) + 1 + (i % 8)).map(({ id, name }) => ({ id, name })), moreCandidates: i % 5 === 2 ? others.length : undefined,
          why: verdict === "Later" ? "it is the last ready replica of its workload" : undefined }),
    };
  }).sort((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict));
  const number = (verdict) => pods.filter((p) => p.verdict === verdict).length;
  const [stays, later, moves] = order.map(number);
  return {
    provider: { id, name: things.providers[id].name }, scheduling: "Drained", moves, later, stays, remembers: false, pods: pods.slice(0, 250), more: pods.length > 250 ? pods.length - 250 : undefined,
    message: pods.length === 0 ? "No pod is on the provider" : `Of the pods on the provider ${moves} would move at once, ${later} later, and ${stays} would stay`,
  };
}

/** The things of a federation, by kind and key. */
export function world({ providers = 14, consumers = 5, pods = 60, names = [] } = {}) {
  const all = { providers: {}, consumers: {}, offers: {}, policies: {}, decisions: {}, workloads: {}, links: {}, flows: {}, advice: {}, status: {} };
  const cities = ["milan", "turin", "rome", "oslo", "bergen", "lyon", "paris", "berlin", "munich", "porto", "lisbon", "madrid"];
  const ready = { type: "Ready", status: "True", reason: "Ready", since: at(-86400 * 3), message: "Pods can be placed there." };
  const ps = [], cs = [];
  for (let i = 0; i < providers; i++) {
    const id = `p-${String(i).padStart(4, "0")}`;
    const cpu = 8 + ((i * 7) % 40);
    const used = i === 3 ? 0 : (i * 5) % cpu;
    const p = {
      id, name: names[i] ? names[i] : i === 2 ? hostile : i < cities.length ? cities[i] : `${pick(cities, i)}-${i}`,
      scheduling: i === 4 ? "Cordoned" : i === 5 ? "Drained" : "Active", ready: i !== 6 && i !== 4 && i !== 5,
      reason: i === 6 ? "NoOffer" : i === 4 ? "Cordoned" : i === 5 ? "Drained" : "Ready", created: at(-86400 * (i + 1)),
      capacity: i === 6 ? { overcommitPercent: 100 } : {
        overcommitPercent: 100 + (i % 3) * 25, rule: "Measured",
        measured: { cpu: String(cpu), memory: `${cpu * 4}Gi`, pods: "110" }, declared: i % 2 ? { cpu: String(cpu + 4) } : undefined,
        offered: { cpu: String(cpu), memory: `${cpu * 4}Gi`, pods: "110", ...(i === 0 ? { "nvidia.com/gpu": "2" } : {}) },
        used: i === 3 ? undefined : { cpu: `${used * 1000 + 250}m`, memory: `${used * 3}Gi`, pods: String(used * 2) },
        free: { cpu: String(cpu - used), memory: `${cpu * 4 - used * 3}Gi`, pods: String(110 - used * 2) }, largestPod: { cpu: "6", memory: "24Gi" },
      },
      price: i % 3 ? { currency: "EUR", cpu: "0.0" + (i + 1), memory: "0.004", periodSeconds: 3600 } : undefined,
      kpis: [
        { name: "latency", unit: "s", value: 0.012 + i / 1000, source: "Broker", measured: at(-12), expires: at(108) },
        { name: "availability", unit: "ratio", value: 0.9987, source: "Broker", measured: at(-400), expires: at(-100) },
      ],
      conditions: [i === 6 ? { type: "Ready", status: "False", reason: "NoOffer", since: at(-300), message: "Liqo has no offer of it yet." } : ready,
        { type: "Measured", status: "Unknown", reason: "NotYet", since: at(-30) }],
      link: i === 7 ? { from: { id: "b" }, to: { id }, kind: "Broker", connected: false } : i === 8 ? undefined
        : { from: { id: "b" }, to: { id }, kind: "Broker", connected: true, roundTripSeconds: 0.004 + i / 500, measured: at(-9), outgoing: "Established" },
      unreachableSince: i === 7 ? at(-340) : undefined,
      labels: i === 6 ? undefined : {
        "topology.kubernetes.io/region": pick(["it", "no", "fr", "de", "pt", "es"], Math.floor(i / 2)), "example.com/tier": i % 2 ? "gold" : "silver", "liqo.io/type": "",
        ...(i === 2 ? { "example.com/owner": "<b>\u202e" + "x".repeat(60) } : {}),
      },
      history: i === 3 ? [] : i === 4 ? undefined : [
        { name: "availability1h", slotSeconds: 300, slots: 12, upSeconds: Array.from({ length: 12 }, (_, n) => (n === 11 ? 120 : i === 7 && n > 9 ? 0 : 300)), lastSeconds: 130 },
        { name: "availability24h", slotSeconds: 3600, slots: 24, upSeconds: Array.from({ length: 24 - (i % 8) }, (_, n) => (n === 5 ? 3300 : n === 9 ? 0 : 3600)), lastSeconds: 3600 },
        { name: "availability30d", slotSeconds: 86400, slots: 30, upSeconds: Array.from({ length: Math.min(9 + i, 30) }, (_, n) => (n % 7 === 3 ? Math.max(86000 - i * 900, 0) : 86400)), lastSeconds: 40000 },
      ],
    };
    ps.push(all.providers[id] = p);
  }
  for (let i = 0; i < consumers; i++) {
    const id = `c-${String(i).padStart(3, "0")}`;
    const c = {
      id, name: ["shop", "lab", "studio", "clinic", "bank"][i] ?? `consumer-${i}`, mode: i === 4 ? undefined : i % 2 ? "Aggregated" : "Orchestrated",
      nodes: i % 2 ? "One" : "PerProvider", scheduling: i === 3 ? "Suspended" : "Active", ready: i < 3, reason: i < 3 ? "Ready" : i === 3 ? "Suspended" : "NoMode",
      sharePercent: 50, created: at(-86400 * 9), offered: { cpu: "64", memory: "256Gi", pods: "400" }, used: { cpu: "21500m", memory: "80Gi", pods: "44" },
      reserved: i ? undefined : { cpu: "100" }, limit: { cpu: "80" }, conditions: [ready],
    };
    cs.push(all.consumers[id] = c);
    const who = { id, name: c.name };
    all.offers[id] = {
      consumer: who, offered: c.offered, granted: { cpu: "64", memory: "256Gi" }, used: c.used,
      nodes: i % 2 ? undefined : ps.slice(0, 3).map((p) => ({ node: `liqo-${p.id}`, provider: p.id, offered: { cpu: "8", memory: "32Gi" } })),
    };
    all.advice[id] = {
      consumer: who, done: i === 1, message: i === 1 ? "It is connected to all of them." : "Peer with 2 providers for direct paths.",
      peers: i === 1 ? [] : ps.slice(0, 2).map((p, j) => ({ provider: { id: p.id, name: p.name }, running: 4 + j, connected: j === 1, reasons: ["It runs pods of the consumer."],
        check: `liqoctl status peer ${p.id}` })),
    };
    for (const policy of ["cheapest", "near"]) {
      all.decisions[`${policy}/${id}`] = {
        policy, consumer: who,
        better: policy === "cheapest" && i === 0 ? [{ id: ps[1].id, name: ps[1].name, since: at(-310), due: at(590) }] : undefined,
        scaling: policy === "near" && i < 3 ? {
          unit: "ratio", offloadAbove: 0.8, unoffloadBelow: 0.3, windowSeconds: 300, count: 2, min: 1, max: i === 2 ? undefined : 4, groupBy: i === 1 ? "topology.kubernetes.io/region" : undefined,
          ...(i === 0 ? { value: 0.86, direction: "Up", since: at(-140), measured: at(-12) } : i === 1 ? { value: 0.52, measured: at(-20) } : { unknown: "the query answers nothing" }),
        } : undefined,
        ...explained(ps.map((p, j) => (p.ready && j % 5 !== 4
          ? { id: p.id, name: p.name, chosen: (j + i) % 4 === 0, ...scored(j, i, policy === "near") }
          : { id: p.id, name: p.name, chosen: false, excluded: p.ready ? "filter region == \"it\"" : `it is ${p.reason}`, why: [p.ready ? "filter region == \"it\"" : `it is ${p.reason}`] }))
          .sort((x, y) => (y.score ?? -1) - (x.score ?? -1))),
      };
    }
  }
  for (const [name, scope] of [["cheapest", "Default"], ["near", "Consumers"]]) {
    all.policies[name] = { name, scope, priority: scope === "Default" ? 0 : 10, decided: consumers, created: at(-86400), summary: "milan, turin and 2 more", maxProviders: 4,
      weights: { price: 50, latency: 40 }, filters: ["provider.labels[\"region\"] == \"it\""], conditions: [{ ...ready, message: undefined }],
      consumers: scope === "Consumers" ? ["c-000", "c-001"] : undefined };
  }
  for (let i = 0; i < pods; i++) {
    const c = pick(cs, i), p = i % 13 === 12 ? undefined : pick(ps, i * 3);
    const namespace = pick(["web", "batch", "db"], i), pod = `${namespace}-${i.toString(36)}-7d9f`;
    all.workloads[`${c.id}/${namespace}-${c.id}/${pod}`] = {
      consumer: { id: c.id, name: c.name }, namespace, brokerNamespace: `${namespace}-${c.id}`, pod, status: p ? "Running" : "Waiting", ready: Boolean(p) && i % 11 !== 10,
      provider: p && { id: p.id, name: p.name }, path: p ? (i % 3 ? "relay" : "direct") : undefined, requests: { cpu: "250m", memory: "512Mi" }, policy: namespace === "db" ? undefined : namespace === "web" ? "cheapest" : "near",
      why: p ? (i % 17 === 16 ? "the provider is to be drained, and the pod stays: it is the last ready replica of its workload" : undefined) : i === 25 ? undefined
        : "0/14 nodes are available: 10 Insufficient cpu, 4 node(s) were unschedulable.", address: p ? `10.71.${i % 250}.7` : undefined, since: p ? at(-60 * i) : undefined,
    };
  }
  // What is drawn: how many pods take which path, and the tunnels.
  for (const w of Object.values(all.workloads)) {
    const flow = (all.flows[`${w.consumer.id}/${w.provider?.id ?? ""}/${w.path ?? ""}`] ??= { consumer: w.consumer, provider: w.provider, path: w.path, pods: 0, ready: 0 });
    flow.pods++;
    if (w.ready) flow.ready++;
    if (w.path === "direct") {
      const { consumer, provider } = w, n = Number(provider.id.slice(2));
      all.links[`${consumer.id}/${provider.id}`] = { from: consumer, to: provider, kind: "Direct", connected: n !== 9, roundTripSeconds: n === 9 ? undefined : 0.002 + n / 1000, measured: at(-9) };
    }
  }
  for (const p of ps) if (p.link) all.links[`b/${p.id}`] = { ...p.link, from: { id: "b", name: "north-broker" }, to: { id: p.id, name: p.name } };
  cs.forEach((c, i) => (all.links[`b/${c.id}`] = { from: { id: "b", name: "north-broker" }, to: { id: c.id, name: c.name }, kind: "Broker", connected: i !== 3, incoming: "Established",
    roundTripSeconds: i === 3 ? undefined : 0.006 + i / 1000, measured: at(-9) }));
  all.status.broker = {
    healthy: false, modes: ["orchestrator", "aggregator"], offered: { cpu: "310", memory: "1240Gi", pods: "1400", "nvidia.com/gpu": "2" }, used: { cpu: "122500m", memory: "402Gi", pods: "260" },
    free: { cpu: "187500m", memory: "838Gi", pods: "1140" }, more: 3,
    providers: { total: providers, states: { Ready: providers - 4, NoOffer: 1, Cordoned: 1, Drained: 1, Unreachable: 1 } },
    consumers: { total: consumers, states: { Ready: 3, Suspended: 1, NoMode: 1 } }, policies: { total: 2, states: { Ready: 2 } }, queries: { total: 0 },
    decisions: { total: consumers * 2, empty: 1 },
    next: [
      { problem: true, what: "Provider berlin is unreachable for 5m", do: "Look at its tunnel: kubectl liqo-broker providers p-0007 -o wide" },
      { problem: true, what: "Provider munich has no offer", do: "See what Liqo says of it: kubectl get resourceoffers -A" },
      { problem: false, what: "Provider bergen is cordoned", do: "Let pods come again: kubectl liqo-broker enable p-0004" },
      { problem: false, what: "Consumer bank has no mode", do: "Decide how it sees the providers" },
    ],
  };
  all.activity = activity(at);
  return all;
}

const field = { policies: "policy", advice: "advice", status: "status", activity: "activity", ownoffers: "ownOffer", registries: "registry", market: "market" };

/** An event as it is sent. */
const told = (name, data, id) => `${id ? `id: ${id}\n` : ""}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

/** What a stream tells first, in the blocks that it is sent in. */
function all(things, kinds) {
  const blocks = [];
  let block = told("reset", {}, "0");
  for (const kind of kinds) {
    for (const [key, value] of Object.entries(things[kind])) {
      block += told("set", { kind, key, [field[kind] ?? kind.slice(0, -1)]: value });
      if (block.length > 65536) {
        blocks.push(Buffer.from(block));
        block = "";
      }
    }
  }
  return [...blocks, Buffer.from(block + told("synced", {}, "n:1"))];
}

/**
 * Serves dist and a world on a free port; returns its address, and tell, which tells all of a change. me overrides what is said of who calls;
 * a world that is still does not change, and what a stream tells first is made once, so that it costs no time when it is asked for. Of the options
 * that it returns down is whether the API server is, drain the problem that a preview is answered by, and planned and streamed are what a
 * preview and a stream wait for.
 */
export async function serve({ dist, things = world(), me = {}, port = 0, policies = true, hosted = false, still = false }) {
  const options = { down: false, seen: [], texts: [], asked: [], resumed: 0, key: "key" };
  const files = { "/": "index.html", "/index.html": "index.html", "/app.js": "app.js", "/app.css": "app.css", "/licences.txt": "licences.txt" };
  for (const name of readdirSync(dist)) if (name.endsWith(".js.gz")) files[`/${name.slice(0, -3)}`] = name.slice(0, -3);
  const types = { html: "text/html; charset=utf-8", js: "text/javascript", css: "text/css", txt: "text/plain; charset=utf-8" };
  const streams = new Map(), whole = new Map();
  options.tell = (kind, key, as, changes) => {
    things[kind][key] = { ...things[kind][key], ...changes };
    [...streams.keys()].forEach((send) => send("set", { kind, key, [as]: things[kind][key] }, "n:1"));
  };
  const server = createServer(async (request, answer) => {
    const url = new URL(request.url, "http://x");
    options.seen.push(`${request.method} ${url.pathname}${url.search}`);
    if (hosted) {
      if (!/^\/(ui|api)\//.test(url.pathname) || url.pathname === "/session") return answer.writeHead(404).end();
      url.pathname = url.pathname.replace(/^\/ui\//, "/");
    }
    answer.setHeader("Content-Security-Policy", csp);
    const json = (status, body, headers = {}) => answer.writeHead(status, { "Content-Type": status < 300 ? "application/json" : "application/problem+json", ...headers }).end(JSON.stringify(body));
    if (files[url.pathname]) {
      const name = files[url.pathname];
      answer.writeHead(200, { "Content-Type": types[name.split(".").pop()] }).end(hosted && name === "index.html"
        ? gunzipSync(readFileSync(`${dist}/${name}.gz`)).toString().replace("<html ", "<html data-hosted ") : gunzipSync(readFileSync(`${dist}/${name}.gz`)));
    } else if (url.pathname === "/session") {
      let body = "";
      request.on("data", (part) => (body += part)).on("end", () => (JSON.parse(body).code === "good" ? json(200, { key: options.key }) : json(401, { title: "Unauthorized" })));
    } else if (request.headers.authorization !== `Bearer ${options.key}`) json(401, { status: 401, title: "Unauthorized" });
    else if (options.down) json(503, { status: 503, title: "Service Unavailable", detail: "The API server of the cluster does not answer." });
    else if (url.pathname === "/api/v1/me") {
      json(200, { name: "ada@example.com", may: ["patch providers", "patch consumers", "patch placementpolicies"], broker: { id: "b", name: "north-broker" }, context: "kind-broker", version: "v0.1.0",
        kinds: Object.keys(things).map((kind) => ({ kind })), ...me });
    } else if (url.pathname === "/api/v1/events") {
      await options.streamed;
      answer.writeHead(200, { "Content-Type": "text/event-stream" });
      const send = (name, data, id) => answer.write(told(name, data, id));
      if (request.headers["last-event-id"] !== "n:1") {
        const asked = url.searchParams.get("kinds");
        const blocks = (still && whole.get(asked)) || all(things, asked.split(","));
        if (still) whole.set(asked, blocks);
        blocks.forEach((block) => answer.write(block));
      } else options.resumed++;
      streams.set(send, answer);
      const alive = setInterval(() => answer.write(": alive\nid: n:1\n\n"), 5000);
      request.on("close", () => (clearInterval(alive), streams.delete(send)));
    } else if (url.pathname.endsWith("/scheduling") && request.method === "PUT") {
      let body = "";
      request.on("data", (part) => (body += part)).on("end", () => {
        const { scheduling } = JSON.parse(body);
        const [, , , kind, id] = url.pathname.split("/");
        if (!url.searchParams.has("dryRun")) {
          things[kind][id] = { ...things[kind][id], scheduling };
          [...streams.keys()].forEach((send) => send("set", { kind, key: id, [kind.slice(0, -1)]: things[kind][id] }, "n:1"));
        }
        json(200, { scheduling }, { Warning: scheduling === "Drained" ? ['299 - "12 pods would move, 2 stay"', '299 - "Of the pods on the provider 3 would move at once, 1 later, and 1 would stay"', '299 - "web/\\"one\\", alone: its last ready copy"'] : [] });
      });
    } else if (url.pathname.endsWith("/drain") && request.method === "GET") {
      const id = decodeURIComponent(url.pathname.split("/")[4]);
      const said = () => (options.drain ? json(options.drain.status, { status: options.drain.status, title: "no", ...options.drain }) : json(200, preview(things, id)));
      Promise.resolve(options.planned).then(said);
    } else if (url.pathname.startsWith("/api/v1/policies/") && policies) {
      let body = "";
      request.on("data", (part) => (body += part)).on("end", () => {
        const name = decodeURIComponent(url.pathname.split("/")[4]);
        if (url.pathname.endsWith("/manifest")) return json(200, { policy: `kind: PlacementPolicy\nmetadata:\n  name: ${name}\nspec:\n  weights: {}\n` });
        const { policy } = JSON.parse(body);
        options.texts.push(policy);
        if (request.method === "PUT") return json(200, { name }, { Warning: '299 - "12 pods would move"' });
        if (policy.includes("kpj")) return json(422, { status: 422, title: "Unprocessable Entity", detail: "two faults", errors: [{ message: "line 2, column 3: spec.filters[0]: no kpj" }, { message: "kind: none" }] });
        const [milan, turin, rome] = ["p-0000", "p-0001", "p-0002"].map((id) => ({ id, name: things.providers[id].name }));
        return json(200, { policy: "cheapest", exists: true, notes: ["As if nothing had been chosen before"], problems: ["No provider has karbon"], dropped: [{ id: "c-001", name: "lab" }],
          consumers: [{ decision: { policy: "cheapest", consumer: { id: "c-000", name: "shop" }, complete: true, providers: [{ ...milan, chosen: true, score: 90 }, { ...rome, chosen: true }] },
            today: ["near"], free: false, namespaces: 2, in: [rome], out: [turin], podsOut: 3 }] });
      });
    } else {
      let body = "";
      request.on("data", (part) => (body += part)).on("end", () => {
        const changed = (kind, key, as) => [...streams.keys()].forEach((send) => send("set", { kind, key, [as]: things[kind][key] }, "n:1"));
        const asked = { method: request.method, path: url.pathname, body: body ? JSON.parse(body) : {}, dry: url.searchParams.has("dryRun"), things, at, hostile, json, changed };
        if (request.method !== "GET") options.asked.push(asked.body);
        if (!answered(asked)) json(404, { status: 404, title: "Not Found" });
      });
    }
  });
  await new Promise((done) => server.listen(port, "127.0.0.1", done));
  return { address: `http://127.0.0.1:${server.address().port}/${hosted ? "ui/" : ""}`, options, tell: (event) => streams.forEach((_, send) => send("set", event, "n:1")), cut: () => streams.forEach((answer) => answer.destroy()), close: () => (server.closeAllConnections(), server.close()) };
}

/** The things of a cluster that trades and is no broker. */
export function trader() {
  return traded(at, hostile);
}

/** The things of a consumer: its own pods at its brokers. Of those at an aggregating one it is told no provider. */
export function consumer({ brokers = ["north-broker"], providers = 6, pods = 40, hides = false } = {}) {
  const all = { workloads: {}, flows: {}, status: {} };
  const own = { id: "c-own", name: "shop" };
  const at0 = brokers.map((name, i) => ({ id: `b-${i}`, name }));
  const cities = ["milan", "turin", hostile, "oslo", "bergen", "lyon"];
  for (let i = 0; i < pods; i++) {
    const broker = pick(at0, i), n = (i * i) % Math.max(providers, 1);
    const provider = hides || i % 9 === 8 ? undefined : { id: `p-${String(n).padStart(4, "0")}`, name: cities[n] ?? `city-${n}` };
    const namespace = pick(["web", "batch", "db"], i), pod = `${namespace}-${i.toString(36)}-7d9f`;
    const w = all.workloads[`${namespace}/${pod}`] = {
      consumer: own, namespace, brokerNamespace: "", pod, status: "Running", ready: i % 11 !== 10, provider, broker, node: `liqo-${broker.name}${i % 4 ? "" : `-${n}`}`,
      path: hides ? "relay" : i % 13 === 12 ? undefined : n % 3 ? "relay" : "direct", requests: i % 5 ? { cpu: "250m", memory: "512Mi" } : undefined, address: i % 13 === 12 ? undefined : `10.71.${i % 250}.7`, since: at(-60 * i),
    };
    const flow = (all.flows[`${broker.id}/${provider?.id ?? ""}/${w.path ?? ""}`] ??= { consumer: own, provider, broker, path: w.path, pods: 0, ready: 0 });
    flow.pods++;
    if (w.ready) flow.ready++;
  }
  const none = { total: 0 };
  all.status.consumer = {
    healthy: pods === 0, modes: [], brokers: brokers.length ? at0 : undefined, providers: none, consumers: none, policies: none, queries: none, decisions: { total: 0, empty: 0 },
    next: brokers.length === 0 ? [
      { problem: false, what: "This cluster neither is a broker's nor uses one: it knows no Providers, and has no virtual node with the label brokering.liqo.io/virtual-kubelet", do: "To use a broker, run there, with the context of this cluster: kubectl liqo-broker join --consumer CONTEXT" },
      { problem: false, what: "It does not trade: it has no connector", do: "To buy or sell, install the chart of the connector, and then: kubectl liqo-broker guard" },
    ] : pods === 0 ? [] : [
      { problem: true, what: "Pods of namespace web run at home, though all are to run elsewhere: they were made before Liqo had labelled the namespace. There are 3: cache-1, cache-2, cache-3",
        do: "Make them again: kubectl rollout restart -n web deployment/cache; kubectl delete pod -n web job-1; delete and create yourself what nothing else creates again: alone" },
      { problem: true, what: "Pods of namespace db run at home, though all are to run elsewhere: they were made before Liqo had labelled the namespace. There are 1: pg-0",
        do: "Liqo has not labelled the namespace yet. See why: kubectl describe namespaceoffloading -n db offloading. Then: kubectl rollout restart -n db statefulset/pg" },
    ],
  };
  return all;
}
