// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// A server with made-up clusters, for what the page looks like. It speaks as kubectl liqo-broker ui does.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { gunzipSync } from "node:zlib";

const csp = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const at = (seconds) => new Date(Date.now() + seconds * 1000).toISOString();
const pick = (list, i) => list[i % list.length];
const hostile = "<img src=x onerror=alert(1)>\u202egnp.exe\u0007" + "very-long-".repeat(22);

/** The things of a federation, by kind and key. */
export function world({ providers = 14, consumers = 5, pods = 60 } = {}) {
  const all = { providers: {}, consumers: {}, offers: {}, policies: {}, decisions: {}, workloads: {}, links: {}, flows: {}, advice: {}, status: {} };
  const cities = ["milan", "turin", "rome", "oslo", "bergen", "lyon", "paris", "berlin", "munich", "porto", "lisbon", "madrid"];
  const ready = { type: "Ready", status: "True", reason: "Ready", since: at(-86400 * 3), message: "Pods can be placed there." };
  const ps = [], cs = [];
  for (let i = 0; i < providers; i++) {
    const id = `p-${String(i).padStart(4, "0")}`;
    const cpu = 8 + ((i * 7) % 40);
    const used = i === 3 ? 0 : (i * 5) % cpu;
    const p = {
      id, name: i === 2 ? hostile : i < cities.length ? cities[i] : `${pick(cities, i)}-${i}`,
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
        policy, consumer: who, complete: true,
        providers: ps.map((p, j) => (p.ready && j % 5 !== 4
          ? { id: p.id, name: p.name, chosen: (j + i) % 4 === 0, score: 92.4 - j * 2 - i, why: ["price 0.04 EUR: 48.2 of 50", `latency ${12 + j} ms: 31.1 of 40`] }
          : { id: p.id, name: p.name, chosen: false, excluded: p.ready ? "filter region == \"it\"" : `it is ${p.reason}` })),
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
      provider: p && { id: p.id, name: p.name }, path: p ? (i % 3 ? "relay" : "direct") : undefined, address: p ? `10.71.${i % 250}.7` : undefined, since: p ? at(-60 * i) : undefined,
    };
  }
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
  return all;
}

const field = { policies: "policy", advice: "advice", status: "status" };

/** Serves dist and a world on a free port; returns its address. me overrides what is said of who calls, down what the stream answers. */
export async function serve({ dist, things = world(), me = {}, port = 0 }) {
  const options = { down: false, seen: [], resumed: 0, key: "key" };
  const files = { "/": "index.html", "/index.html": "index.html", "/app.js": "app.js", "/app.css": "app.css", "/licences.txt": "licences.txt" };
  const types = { html: "text/html; charset=utf-8", js: "text/javascript", css: "text/css", txt: "text/plain; charset=utf-8" };
  const streams = new Map();
  const server = createServer((request, answer) => {
    const url = new URL(request.url, "http://x");
    options.seen.push(`${request.method} ${url.pathname}${url.search}`);
    answer.setHeader("Content-Security-Policy", csp);
    const json = (status, body, headers = {}) => answer.writeHead(status, { "Content-Type": status < 300 ? "application/json" : "application/problem+json", ...headers }).end(JSON.stringify(body));
    if (files[url.pathname]) {
      const name = files[url.pathname];
      answer.writeHead(200, { "Content-Type": types[name.split(".").pop()] }).end(gunzipSync(readFileSync(`${dist}/${name}.gz`)));
    } else if (url.pathname === "/session") {
      let body = "";
      request.on("data", (part) => (body += part)).on("end", () => (JSON.parse(body).code === "good" ? json(200, { key: options.key }) : json(401, { title: "Unauthorized" })));
    } else if (request.headers.authorization !== `Bearer ${options.key}`) json(401, { status: 401, title: "Unauthorized" });
    else if (options.down) json(503, { status: 503, title: "Service Unavailable", detail: "The API server of the cluster does not answer." });
    else if (url.pathname === "/api/v1/me") {
      json(200, { name: "ada@example.com", may: ["update providers", "update consumers"], broker: { id: "b", name: "north-broker" }, context: "kind-broker", version: "v0.1.0",
        kinds: Object.keys(things).map((kind) => ({ kind })), ...me });
    } else if (url.pathname === "/api/v1/events") {
      answer.writeHead(200, { "Content-Type": "text/event-stream" });
      const send = (name, data, id) => answer.write(`${id ? `id: ${id}\n` : ""}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
      if (request.headers["last-event-id"] !== "n:1") {
        send("reset", {}, "0");
        for (const kind of url.searchParams.get("kinds").split(",")) {
          for (const [key, value] of Object.entries(things[kind])) send("set", { kind, key, [field[kind] ?? kind.slice(0, -1)]: value });
        }
        send("synced", {}, "n:1");
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
        json(200, { scheduling }, { Warning: scheduling === "Drained" ? ['299 - "12 pods would move, 2 stay"', '299 - "web/\\"one\\", alone: its last ready copy"'] : [] });
      });
    } else json(404, { status: 404, title: "Not Found" });
  });
  await new Promise((done) => server.listen(port, "127.0.0.1", done));
  return { address: `http://127.0.0.1:${server.address().port}/`, options, cut: () => streams.forEach((answer) => answer.destroy()), close: () => (server.closeAllConnections(), server.close()) };
}
