// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// The clusters that provide.

import type { ComponentChildren } from "preact";
import { Happened } from "./activity";
import type { Price, Provider } from "./api";
import { Deeds } from "./deeds";
import { Foreseen } from "./drain";
import { amount, digits, nameOf, plain, quantity, resourcesOf, titleOf, trip, usedOf, usedText } from "./format";
import { Amounts, Bar, type Column, Conditions, Empty, Facts, Head, Needs, providerState, Rows, Section, shownOf, Single, State, When } from "./parts";
import { kubectl, matches, now } from "./place";
import { href } from "./routes";
import { Seen } from "./seen";
import { store } from "./server";
import { Pods } from "./workloads";

/** What policies choose it by. A server of before does not tell. */
function labelsOf(p: Provider): string[] {
  const { labels } = p as { labels?: Record<string, string> };
  return Object.entries(labels ?? {}).map(([name, value]) => plain(value ? `${name}=${value}` : name)).sort();
}

const columns: Column<Provider>[] = [
  { name: "Name", width: 11, by: (p) => nameOf(p), cell: (p) => <a class="cut" href={href(["providers", p.id])} title={titleOf(p)}>{nameOf(p)}</a> },
  { name: "State", width: 9, by: (p) => providerState(p).word, cell: (p) => <State tone={providerState(p).tone} title={plain(p.reason)}>{providerState(p).word}</State> },
  { name: "CPU", width: 12, by: (p) => usedOf("cpu", p.capacity), cell: (p) => <Bar resource="cpu" of={p.capacity} /> },
  { name: "Memory", width: 14, from: "mid", by: (p) => usedOf("memory", p.capacity), cell: (p) => <Bar resource="memory" of={p.capacity} /> },
  { name: "Largest pod", width: 10, from: "wide", by: (p) => amount(p.capacity.largestPod?.cpu), cell: (p) => <LargestPod of={p} /> },
  { name: "Price", width: 9, from: "wide", by: (p) => amount(p.price?.cpu), cell: (p) => <PriceOf price={p.price} short /> },
  { name: "Tunnel", width: 7, from: "mid", num: true, by: (p) => p.link?.roundTripSeconds, cell: (p) => <Tunnel of={p} /> },
];

function LargestPod({ of: p }: { of: Provider }) {
  const largest = p.capacity.largestPod;
  return largest ? <span class="num">{quantity(largest.cpu, "cpu")}, {quantity(largest.memory, "memory")}</span> : <span class="muted">unknown</span>;
}

function Tunnel({ of: p }: { of: Provider }) {
  if (!p.link) return <span class="muted">unknown</span>;
  return p.link.connected ? <span>{trip(p.link.roundTripSeconds)}</span> : <State tone="problem">down</State>;
}

function PriceOf({ price, short }: { price: Price | undefined; short?: boolean }) {
  if (!price) return <span class="muted">not said</span>;
  const time = price.periodSeconds === 3600 ? "h" : `${digits(price.periodSeconds / 3600)} h`;
  const of = (value: string | undefined, what: string) => (value === undefined ? [] : [`${plain(value)} ${plain(price.currency)} / ${what} ${time}`]);
  const all = [...of(price.cpu, "core"), ...of(price.memory, "GiB")];
  return <span class="num cut" title={all.join(", ")}>{short ? all[0] : all.join(", ")}</span>;
}

export function ProvidersScreen() {
  return (
    <Needs title="Providers" kinds={["providers"]}>{() => {
      const all = store.list("providers");
      const rows = all.filter((p) => matches(p.id, nameOf(p), providerState(p).word, p.reason, p.scheduling, ...labelsOf(p)));
      return (
        <>
          <Head title="Providers" hint={shownOf(rows.length, all.length, "cluster") + ", bars: used of offered"} command={kubectl("providers")} />
          <Rows all={all.length} none={<Empty command={kubectl("join", "--provider", "CLUSTER")}>No cluster provides yet. Peer with one:</Empty>}
            misfit="No provider fits the filter." label="Providers" columns={columns} rows={rows} keyOf={(p) => p.id} />
        </>
      );
    }}</Needs>
  );
}

export function ProviderScreen({ id }: { id: string }) {
  return <Single title="Provider" of="providers" id={id} what="provider">{(p) => <One p={p} />}</Single>;
}

function One({ p }: { p: Provider }) {
  const state = providerState(p);
  const c = p.capacity;
  return (
    <>
      <Head title={<span class="cut" title={titleOf(p)}>{nameOf(p)}</span>} command={kubectl("providers", p.id, "-o", "wide")}
        hint={<><State tone={state.tone}>{state.word}</State> {plain(p.reason) !== state.word && plain(p.reason)}</>}>
        <Deeds of="providers" cluster={p} at={p.scheduling} deeds={[
          { verb: "Cordon", to: "Cordoned", does: "No new pods come. Those that are there stay." },
          { verb: "Drain", to: "Drained", does: "No new pods come, and those that are there move to other providers.",
            before: (settled) => <Foreseen provider={p} settled={settled} /> },
          { verb: "Enable", to: "Active", does: "New pods may come again." },
        ]} />
      </Head>
      <div class="columns">
        <div>
          <Section title="Capacity"><Waterfall of={p} /></Section>
          <Section title="KPIs">
            {p.kpis?.length ? (
              <table class="small">
                <thead><tr><th scope="col">Name</th><th scope="col" class="num">Value</th><th scope="col" class="mid">Measured</th><th scope="col">Counts until</th></tr></thead>
                <tbody>{p.kpis.map((kpi) => (
                  <tr key={kpi.name}>
                    <th scope="row" title={`measured by ${kpi.source}`}>{plain(kpi.name)}</th>
                    <td class="num">{digits(kpi.value)} {plain(kpi.unit)}</td>
                    <td class="mid"><When time={kpi.measured} /></td>
                    <td>{Date.parse(kpi.expires) < now.value ? <State tone="off">expired</State> : <When time={kpi.expires} />}</td>
                  </tr>
                ))}</tbody>
              </table>
            ) : <p class="muted">None is measured.</p>}
          </Section>
          <Seen of={p as { history?: unknown }} />
        </div>
        <div>
          <Section title="About">
            <Facts of={[
              ["ID", <code class="cut" title={plain(p.id)}>{plain(p.id)}</code>],
              ["Scheduling", p.scheduling],
              ["Tunnel", !p.link ? <span class="muted">unknown</span> : p.link.connected ? <span>up, {trip(p.link.roundTripSeconds)}{p.link.measured && <>, measured <When time={p.link.measured} /></>}</span> : <State tone="problem">down</State>],
              ...(p.unreachableSince ? [["Out of reach since", <When time={p.unreachableSince} />] as [string, ComponentChildren]] : []),
              ["Price", <PriceOf price={p.price} />],
              ["Offers of it", `${c.overcommitPercent} %`],
              ["Believed", plain(c.rule) || <span class="muted">unknown</span>],
              ["Largest pod", <Amounts of={c.largestPod} />],
              ["Labels", <Labels of={labelsOf(p)} />],
              ["Known since", <When time={p.created} />],
            ]} />
          </Section>
          <Section title="Conditions"><Conditions of={p.conditions} /></Section>
          <Happened title="Activity" most={8} only={(a) => a.provider?.id === p.id} />
        </div>
      </div>
      <Section title="Its workloads"><Pods only={{ provider: p.id }} /></Section>
    </>
  );
}

const mostLabels = 32;

function Labels({ of }: { of: string[] }) {
  if (of.length === 0) return <span class="muted">none</span>;
  return (
    <ul class="chips">
      {of.slice(0, mostLabels).map((label) => <li key={label} class="chip cut" title={label}>{label}</li>)}
      {of.length > mostLabels && <li class="muted">and {of.length - mostLabels} more</li>}
    </ul>
  );
}

/** What a provider has, from what is measured to what is used, on one scale for each resource. */
function Waterfall({ of: p }: { of: Provider }) {
  const c = p.capacity;
  const names = resourcesOf(c.measured, c.declared, c.offered, c.used);
  if (names.length === 0) return <p class="muted">Nothing is known of it.</p>;
  return (
    <ul class="waterfall">
      {names.map((name) => {
        const steps: [string, string | undefined][] = [
          ["measured", c.measured?.[name]], ["declared", c.declared?.[name]], ["offered", c.offered?.[name]], ["used", usedText(name, c) || undefined],
        ];
        const most = Math.max(...steps.map(([, value]) => amount(value) ?? 0), 1e-9);
        return (
          <li key={name}>
            <h3 class="cut" title={plain(name)}>{plain(name)}</h3>
            {steps.map(([word, value]) => (
              <div key={word} class={`step ${word}`}>
                <span>{word}</span>
                <span class={value === undefined ? "track unknown" : "track"} aria-hidden="true">
                  {value !== undefined && <span class="fill" style={{ width: `${(100 * (amount(value) ?? 0)) / most}%` }} />}
                </span>
                <span class={value === undefined ? "muted" : "num"}>{value === undefined ? (word === "declared" ? "nothing said" : "unknown") : quantity(value, name)}</span>
              </div>
            ))}
          </li>
        );
      })}
    </ul>
  );
}
