// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// What a made-up cluster trades, and how its server answers.

const day = 86400;
const id = (letter) => letter.repeat(52);
const party = (letter, name) => ({ id: id(letter), short: id(letter).slice(0, 8), name });
const price = (amount) => ({ amount, currency: "EUR", period: "PT1H", text: `${amount} EUR/h` });
const size = (cpu) => ({ cpu: String(cpu), memory: `${4 * cpu}Gi`, pods: String(20 * cpu) });
const digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

/** The things of a cluster that buys and sells, by kind and key, given what makes a time, and a name that is hostile. */
export function traded(at, hostile) {
  const north = party("a", "north-cloud"), shop = party("b", "web-shop"), odd = party("c", hostile);
  const ready = (status, reason, message) => ({ type: "Ready", status, reason, message, since: at(-3600) });
  const step = (ago, event, from, to, terms, reason) => ({ at: at(-ago), event, ...(from ? { from } : {}), to, terms, ...(reason ? { reason } : {}) });
  const signed = [step(day, "Propose", "", "Reserved", 1), step(day - 5, "Sign", "Reserved", "Signed", 1), step(day - 6, "Provision", "Signed", "Provisioning", 1), step(day - 60, "Ready", "Provisioning", "Active", 1)];
  const contract = (sold, name, of) => ({
    sold, name, party: sold ? shop : north, offer: "compute", plan: "small", contractID: name, state: "Active", ready: ready("True", "Active", "The contract is in use."), resources: size(2), price: price("0.12"),
    start: at(-day), end: at(day), created: at(-day), cost: { soFar: [{ amount: "2.88", currency: "EUR" }], toTheEnd: [{ amount: "5.76", currency: "EUR" }] }, steps: signed, deeds: [], version: "3",
    conditions: [ready("True", "Active", "The contract is in use.")], terms: { url: "https://example.com/terms", sha256: digest }, ...of,
  });
  const contracts = [
    contract(false, "nightly", { deeds: ["resize", "renew", "end"], nodes: ["north"], cluster: { id: "c-north", name: "north" }, renew: true, request: "nightly" }),
    contract(true, "s-grow", { waits: 2, state: "Resizing", deeds: ["approve", "refuse", "suspend", "end"], asked: { resources: size(4), price: price("0.24"), end: at(2 * day) }, promise: { availability: "99.9", credit: "10" } }),
    contract(true, "s-new", { waits: 1, state: "Proposed", ready: ready("False", "AwaitsApproval", "Somebody has to approve it."), deeds: ["approve", "refuse", "end"], steps: [step(60, "Propose", "", "Proposed", 1)], start: undefined, cost: undefined }),
    contract(true, "s-quiet", { state: "Suspended", suspended: true, party: odd, deeds: ["resume", "end"], ready: ready("False", "ContractSuspended", "maintenance of the racks"), steps: [...signed, step(100, "Suspend", "Active", "Suspended", 1, `by the seller: ${hostile}`)] }),
    contract(false, "old", { state: "Ended", deeds: [], ready: ready("False", "Ended", "It is over."), steps: [...signed, step(50, "End", "Active", "Terminating", 1, "not needed"), step(10, "Withdraw", "Terminating", "Ended", 1)] }),
    contract(false, "just", { state: undefined, resources: undefined, price: undefined, start: undefined, end: undefined, steps: [], cost: undefined, deeds: ["end"], ready: ready("Unknown", "Pending", "It waits for the connector."), conditions: [] }),
  ];
  const offers = [
    { name: "compute", title: "Nodes in Oslo", open: true, region: "eu-north", sold: 2, created: at(-9 * day), otherwise: "Ask", rules: [{ expression: "buyer.held < 4", verdict: "Accept" }],
      conditions: [{ type: "Published", status: "True", reason: "Published", since: at(-day) }], plans: [{ id: "small", title: "Small", price: price("0.12"), resources: size(2), stock: 5, sold: 2, left: 3 },
        { id: "free", price: price("0.01"), range: { min: size(1), max: size(8), step: size(1), unitPrices: { cpu: { amount: "0.05", per: "1" } } }, sold: 0, left: 4 }] },
    { name: "closed", title: hostile, open: false, sold: 0, created: at(-day), otherwise: "Deny", plans: [{ id: "one", price: price("1"), resources: size(1), sold: 0, left: 0 }],
      conditions: [{ type: "Published", status: "False", reason: "Closed", message: "People have closed the sale.", since: at(-day) }] },
  ];
  const registries = [
    { name: "eu", url: "https://registry.example.com", publish: true, parties: 3, offers: 4, created: at(-9 * day), leaseUntil: at(60), conditions: [{ type: "Enrolled", status: "True", reason: "Enrolled", since: at(-day) }, { type: "Following", status: "True", reason: "Following", since: at(-day) }] },
    { name: "far", url: `https://far.example.com/${"x".repeat(200)}`, publish: false, parties: 0, offers: 0, created: at(-day), conditions: [{ type: "Enrolled", status: "False", reason: "Unreachable", message: `It does not answer: ${hostile}`, since: at(-day) }] },
  ];
  const by = (list, key) => Object.fromEntries(list.map((one) => [key(one), one]));
  return {
    contracts: by(contracts, (c) => `${c.sold ? "sells" : "buys"}/${c.name}`), ownoffers: by(offers, (o) => o.name), registries: by(registries, (r) => r.name),
    requests: { nightly: { name: "nightly", created: at(-day), ready: ready("True", "Active", "In use."), purchase: "nightly", resources: size(2), duration: "48h0m0s", renew: true, maxPrice: price("0.2"), regions: ["eu-north"] } },
    activity: {
      bought: { count: 1, warning: false, time: at(-200), kind: "Purchase", name: "nightly", reason: "Changed", by: "ada@example.com", source: "liqo-broker-guard", message: "ada@example.com changed spec.resources.cpu: 2 → 4" },
      gone: { count: 1, warning: false, time: at(-300), kind: "Sale", name: "s-gone", reason: "Changed", by: hostile, source: "liqo-broker-guard", message: `"${hostile}" deleted it` },
    },
    market: { market: { revision: "1", sellers: [{ ...north, alive: true, offers: 2, regions: ["eu-north"] }, { ...odd, alive: false, offers: 1 }], offers: 3, leftOut: 1, regions: ["eu-north", "eu-south"] } },
  };
}

/** Plans that fit a need, in the order of choice. */
export function plans(at, hostile, need) {
  const north = party("a", "north-cloud"), odd = party("c", hostile);
  const cpu = Number(need.resources?.cpu || 2);
  const hours = Number.parseInt(need.duration ?? "") || 0;
  const plan = (seller, offer, name, perHour, of) => ({
    reference: `${seller.id}/${offer}/${name}`, seller, alive: true, offer, title: "Nodes in Oslo", plan: name, granted: size(cpu), price: price(perHour), base: price(perHour), kind: "Cluster", region: "eu-north", left: 3,
    ...(hours ? { total: { amount: String(Number(perHour) * hours), currency: "EUR" } } : {}), issued: at(-60), validUntil: at(3600), registries: ["eu"], notice: "1h0m0s", ...of,
  });
  const all = [
    plan(north, "compute", "small", "0.12", { description: "Beside the fjord.", architectures: ["amd64"], labels: { disk: "nvme" }, terms: { url: "https://example.com/terms", sha256: digest }, promise: { availability: "99.9", credit: "10" },
      measured: [{ name: "availability24h", value: 0.9987, unit: "ratio", at: at(-300), by: north, samples: 288 }] }),
    plan(north, "compute", "free", "0.2", { range: { min: size(1), max: size(8), step: size(1), unitPrices: { cpu: { amount: "0.05", per: "1" } } } }),
    plan(odd, "odd", "one", "0.05", { alive: false, title: hostile, region: undefined }),
  ];
  return all.filter((p) => (!need.sellers || need.sellers.includes(p.seller.id)) && (!need.regions || need.regions.includes(p.region)));
}

/** Answers what is asked about trade; false for what is not about it. */
export function answered({ method, path, body, dry, things, at, hostile, json, changed }) {
  const [, , , of, side, name, deed] = path.split("/").map(decodeURIComponent);
  if (of === "market") {
    if (body.expression === "wrong") json(422, { status: 422, title: "no", detail: "expression: undeclared reference to 'wrong'" });
    else json(200, { plans: plans(at, hostile, body), leftOut: 1 });
  } else if (of === "orders") {
    const kind = body.reference ? "Purchase" : "CapacityRequest";
    if (!dry && kind === "Purchase") {
      things.contracts[`buys/${body.name}`] = { ...things.contracts["buys/just"], name: body.name };
      changed("contracts", `buys/${body.name}`, "contract");
    } else if (!dry) {
      things.requests[body.name] = { ...things.requests.nightly, name: body.name, purchase: undefined };
      changed("requests", body.name, "request");
    }
    json(200, { kind, name: body.name, would: plans(at, hostile, body).slice(0, 5) });
  } else if (of === "contracts" && method === "POST") {
    const key = `${side}/${name}`;
    const c = things.contracts[key];
    if (body.version !== c.version) return json(409, { status: 409, title: "Conflict", detail: "somebody has changed the contract meanwhile: look at it again" }), true;
    if (!dry) {
      things.contracts[key] = { ...c, ...(deed === "approve" ? { waits: undefined, asked: undefined, state: "Active", resources: c.asked?.resources ?? c.resources } : {}), version: "4", deeds: ["suspend", "end"] };
      changed("contracts", key, "contract");
    }
    json(200, { done: `is asked to ${deed}` }, deed === "end" ? { Warning: '299 - "3 pods run on it"' } : {});
  } else if (of === "ownoffers") {
    if (!dry) {
      things.ownoffers[side] = { ...things.ownoffers[side], open: body.sale === "Open" };
      changed("ownoffers", side, "ownOffer");
    }
    json(200, body);
  } else if (of === "requests") json(200, { done: "is not needed any more" });
  else return false;
  return true;
}
