// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Placement policies, and what they have decided.

import type { Candidate, Decision, Policy } from "./api";
import { count, digits, nameOf, plain, titleOf } from "./format";
import { type Column, Conditions, Empty, Facts, Head, Icon, Named, Needs, Rows, Section, shownOf, Single, State, type Tone, When } from "./parts";
import { kubectl, matches, narrow, plainKubectl, route } from "./place";
import { href } from "./routes";
import { Band, Outlook, Reasons } from "./score";
import { me, store } from "./server";

function stateOf(p: Policy): { tone: Tone; word: string } {
  const c = p.conditions?.find((one) => one.type === "Ready") ?? p.conditions?.[0];
  if (!c) return { tone: "unknown", word: "Unknown" };
  return { tone: c.status === "True" ? "ok" : c.status === "False" ? "problem" : "unknown", word: plain(c.reason) };
}

const columns: Column<Policy>[] = [
  { name: "Name", width: 12, by: (p) => p.name, cell: (p) => <a class="cut" href={href(["policies", p.name])} title={plain(p.name)}>{plain(p.name)}</a> },
  { name: "State", width: 9, by: (p) => stateOf(p).word, cell: (p) => <State tone={stateOf(p).tone}>{stateOf(p).word}</State> },
  { name: "For", width: 8, by: (p) => p.scope, cell: (p) => p.scope },
  { name: "Priority", width: 5, from: "mid", num: true, by: (p) => p.priority, cell: (p) => p.priority },
  { name: "Decided", width: 6, from: "mid", num: true, by: (p) => p.decided, cell: (p) => p.decided },
  { name: "Chosen", width: 16, from: "wide", cell: (p) => <span class="cut" title={plain(p.summary)}>{plain(p.summary) || <span class="muted">none</span>}</span> },
];

export function PoliciesScreen() {
  return (
    <Needs title="Policies" kinds={["policies"]}>{() => {
      const all = store.list("policies");
      const rows = all.filter((p) => matches(p.name, p.scope, p.summary, stateOf(p).word));
      return (
        <>
          <Head title="Policies" hint={shownOf(rows.length, all.length, "placement policy").replace(/policys$/, "policies")} command={plainKubectl("get", "placementpolicies")}><a class="button" href={href(["policies", "new"])}>New policy</a></Head>
          <Rows all={all.length} none={<Empty command={kubectl("policy", "check", "FILE")}>No policy says where pods go: all providers that are ready come into question. Try one:</Empty>}
            misfit="No policy fits the filter." label="Policies" columns={columns} rows={rows} keyOf={(p) => p.name} />
        </>
      );
    }}</Needs>
  );
}

export function PolicyScreen({ id }: { id: string }) {
  return <Single title="Policy" of="policies" id={id} what="policy">{(p) => <One p={p} />}</Single>;
}

function One({ p }: { p: Policy }) {
  const state = stateOf(p);
  const consumers = p.consumers?.map((id) => <Named key={id} as="consumers" of={store.all("consumers").get(id) ?? { id }} />);
  return (
    <>
      <Head title={<span class="cut" title={plain(p.name)}>{plain(p.name)}</span>} hint={<State tone={state.tone}>{state.word}</State>} command={kubectl("explain", p.name)}>{me.value?.context !== undefined && <a class="button" href={href(["policies", p.name, "edit"])}>Edit</a>}</Head>
      <Section title="What it has decided">
        <Needs kinds={["decisions"]}>{() => <Matrix of={store.list("decisions").filter((d) => d.policy === p.name)} />}</Needs>
      </Section>
      <Needs kinds={["decisions"]} quiet>{() => <Bands of={store.list("decisions").filter((d) => d.policy === p.name && d.scaling)} />}</Needs>
      <div class="columns">
        <Section title="About">
          <Facts of={[
            ["For", p.scope],
            ["Consumers", consumers ?? "all"],
            ...(p.namespaces ? [["Namespaces", p.namespaces.map(plain).join(", ")] as [string, string]] : []),
            ["Priority", p.priority],
            ["At most", p.maxProviders ? count(p.maxProviders, "provider") : "any number"],
            ["Weights", Object.entries(p.weights ?? {}).map(([name, n]) => `${plain(name)} ${n}`).join(", ") || "none"],
            ["Made", <When time={p.created} />],
          ]} />
          {p.filters?.map((filter) => <pre key={filter} tabIndex={0}><code>{plain(filter)}</code></pre>)}
        </Section>
        <Section title="Conditions"><Conditions of={p.conditions} /></Section>
      </div>
    </>
  );
}

const maxBands = 20;

/** How many providers it uses for whom, where it goes by a KPI. */
function Bands({ of }: { of: Decision[] }) {
  const fits = of.filter((d) => matches(nameOf(d.consumer), d.consumer.id));
  const shown = (fits.length > 0 ? fits : of).slice(0, maxBands); // The filter can be about providers.
  if (shown.length === 0) return null;
  return (
    <Section title="How many providers it uses">
      <ul class="bands">{shown.map((d) => <li key={d.consumer.id}><h3><Named as="consumers" of={d.consumer} /></h3><Band of={d.scaling!} /></li>)}</ul>
      {of.length > shown.length && <p class="muted">{shownOf(shown.length, of.length, "consumer")}: the filter finds others.</p>}
    </Section>
  );
}

/** How many columns and rows a table of everybody with everybody has: more are found by the filter. */
const maxProviders = 40, maxConsumers = 100;

function Matrix({ of }: { of: Decision[] }) {
  if (of.length === 0) return <p class="muted">Nothing yet.</p>;
  const providers = new Map<string, { name: string; chosen: number; score: number; c: Candidate }>();
  for (const d of of) {
    for (const c of d.providers) {
      const known = providers.get(c.id) ?? { name: nameOf(c), chosen: 0, score: -1, c };
      providers.set(c.id, { ...known, chosen: known.chosen + (c.chosen ? 1 : 0), score: Math.max(known.score, c.score ?? -1) });
    }
  }
  const fits = [...providers].filter(([id, p]) => matches(p.name, id));
  const narrowed = fits.length > 0 ? fits : [...providers]; // The filter can be about consumers.
  const columns = narrowed.sort((a, b) => b[1].chosen - a[1].chosen || b[1].score - a[1].score || (a[0] < b[0] ? -1 : 1)).slice(0, maxProviders);
  const lines = of.filter((d) => fits.length > 0 || matches(nameOf(d.consumer), d.consumer.id)).slice(0, maxConsumers);
  const { consumer, provider } = route.value.query;
  const pair = of.find((d) => d.consumer.id === consumer);
  const candidate = pair?.providers.find((c) => c.id === provider);
  return (
    <>
      <div class="scroll matrix" tabIndex={0} role="region" aria-label="Consumers and providers">
        <table>
          <thead>
            <tr><th scope="col">Consumer</th>{columns.map(([id, p]) => <th key={id} scope="col" title={titleOf(p.c)}><a class="cut" href={href(["providers", id])}>{p.name}</a></th>)}</tr>
          </thead>
          <tbody>
            {lines.map((d) => {
              const by = new Map(d.providers.map((c) => [c.id, c]));
              return (
                <tr key={d.consumer.id}>
                  <th scope="row"><Named as="consumers" of={d.consumer} /></th>
                  {columns.map(([id]) => <Cell key={id} c={by.get(id)} complete={d.complete} on={d.consumer.id === consumer && id === provider}
                    better={d.better?.some((b) => b.id === id)} open={() => narrow({ consumer: d.consumer.id, provider: id })} />)}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {(narrowed.length > columns.length || of.length > lines.length) &&
        <p class="muted">{shownOf(columns.length, providers.size, "provider")}, {shownOf(lines.length, of.length, "consumer")}: the filter finds others.</p>}
      <p class="muted legend"><State tone="ok">chosen, with its score</State> <State tone="off">excluded</State> <span>a number alone: it would do, and was not chosen</span>
        {of.some((d) => d.better?.length) && <span class="state"><Icon of="moves" />better than a chosen one</span>}</p>
      <div aria-live="polite">
        {pair && candidate
          ? <div class="pair"><h3>{nameOf(pair.consumer)} and {nameOf(candidate)}</h3><Reasons c={candidate} /><Outlook of={pair} /></div>
          : <p class="muted">Choose a cell to see why.</p>}
      </div>
    </>
  );
}

function Cell({ c, complete, on, better, open }: { c: Candidate | undefined; complete: boolean; on: boolean; better: boolean | undefined; open: () => void }) {
  if (!c) return <td class="muted">{complete ? "" : "unknown"}</td>;
  const score = c.score === undefined ? "" : digits(Math.round(c.score * 10) / 10);
  const words = (c.chosen ? `chosen ${score}` : c.excluded ? `excluded: ${plain(c.excluded)}` : `not chosen ${score}`) + (better ? ", better than a chosen one" : "");
  return (
    <td>
      <button type="button" class={`cell ${c.chosen ? "ok" : c.excluded ? "off" : ""}`} aria-pressed={on} aria-label={words} title={words} onClick={open}>
        {c.chosen && <Icon of="ok" />}{c.excluded ? <Icon of="off" /> : score || "no score"}{better && <Icon of="moves" />}
      </button>
    </td>
  );
}
