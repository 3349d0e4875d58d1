// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// What has happened in the made-up federation.

/** What has happened, by key, given what makes a time of seconds from now on. */
export function activity(at) {
  const milan = { id: "p-0000", name: "milan" }, shop = { id: "c-000", name: "shop" };
  const of = (cluster, as) => ({ kind: as === "provider" ? "Provider" : "Consumer", name: cluster.id, [as]: cluster });
  const all = [
    { time: at(-3000), ...of(milan, "provider"), reason: "Changed", by: "ada@example.com", message: "ada@example.com changed spec.scheduling: Active → Drained", source: "liqo-broker" },
    { time: at(-40), first: at(-3400), count: 1204, ...of(shop, "consumer"), reason: "RelayAddressLimit", warning: true, source: "remote-ipam",
      message: "The consumer has 1000 relay addresses, and may have no more: raise --max-relay-addresses, or peer it directly with its providers" },
    { time: at(-90), kind: "PlacementPolicy", name: "cheapest", reason: "ScaledUp", message: "Using 3 providers instead of 2: latency is 212 ms, above 200 ms", source: "liqo-broker" },
    { time: at(-120), kind: "PlacementPolicy", name: "cheapest", reason: "Changed", by: "system:serviceaccount:argocd:argocd-application-controller", source: "liqo-broker",
      message: "system:serviceaccount:argocd:argocd-application-controller changed spec.weights.price: 40 → 50, spec.maxProviders: none → 4" },
    { time: at(-300), kind: "ProviderQuery", name: "carbon", reason: "NoPrometheus", warning: true, message: "The Prometheus does not answer", source: "liqo-broker" },
    { time: at(-400), kind: "Provider", name: "gone", provider: { id: "gone" }, reason: "Changed", by: "<b>mallory?", message: '"<b>mallory?" deleted it', source: "liqo-broker" },
    { time: at(-500), ...of({ id: "p-0002", name: "<img src=x>\u202e" }, "provider"), reason: "SeveralNetworks", warning: true, message: "<script>\u202e" + "x".repeat(900), source: "liqo-broker" },
  ];
  for (let i = 0; i < 5; i++) all.push({ time: at(-600 - i), ...of(milan, "provider"), reason: "Changed", by: "ada@example.com", message: `ada@example.com changed spec.price.cpu: ${i} → ${i + 1}`, source: "liqo-broker" });
  return Object.fromEntries(all.map((a, i) => [`00000000-0000-4000-8000-${String(i).padStart(12, "0")}`, { count: 1, warning: false, ...a }]));
}
