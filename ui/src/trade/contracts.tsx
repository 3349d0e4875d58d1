// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// What this cluster has bought, sold and still looks for, and what can be done with it.

import { useState } from "preact/hooks";
import { Act, Dialog } from "../dialog";
import { count, plain } from "../format";
import { Amounts, type Column, Conditions, Empty, Facts, Head, Icon, Needs, Rows, Section, Single, State, type Tone, When } from "../parts";
import { kubectl, matches, plainKubectl } from "../place";
import { href } from "../routes";
import { missing, refusalOf, send, store } from "../server";
import type { Contract, Deed, Request } from "../trade";
import { Field, Who } from "./ask";
import { Paper, Promise } from "./market";
import { Way } from "./way";
import { amounts, attention, money, over, lasting, partyText, rank, sums, why } from "./words";

function toneOf(c: Contract): Tone {
  if (over.includes(c.state ?? "")) return "off";
  return c.ready.status === "True" ? "ok" : c.ready.status === "False" && !["Negotiating", "SettingUp"].includes(c.ready.reason) ? "problem" : "unknown";
}

const placeOf = (c: Contract) => href(["contracts", c.sold ? "sells" : "buys", c.name]);

const columns: Column<Contract>[] = [
  { name: "Contract", width: 11, by: (c) => c.name, cell: (c) => <a class="cut" href={placeOf(c)} title={plain(c.name)}>{plain(c.name)}</a> },
  { name: "State", width: 10, by: (c) => c.state ?? "", cell: (c) => <State tone={c.waits ? "problem" : toneOf(c)} title={why(c.ready)}>{c.waits ? "waits for you" : plain(c.state) || "asked"}</State> },
  { name: "With", width: 10, by: (c) => partyText(c.party), cell: (c) => <Who of={c.party} /> },
  { name: "Side", width: 5, from: "mid", by: (c) => Number(c.sold), cell: (c) => (c.sold ? "sells" : "buys") },
  { name: "Size", width: 12, from: "mid", cell: (c) => <span class="cut" title={amounts(c.resources)}>{amounts(c.resources)}</span> },
  { name: "Price", width: 9, from: "wide", num: true, cell: (c) => plain(c.price?.text) },
  { name: "So far", width: 8, from: "wide", num: true, cell: (c) => (c.cost ? sums(c.cost.soFar) : <span class="muted">unknown</span>) },
  { name: "Ends", width: 6, from: "mid", by: (c) => c.end, cell: (c) => (c.end ? <When time={c.end} /> : "") },
];

export function ContractsScreen() {
  return (
    <Needs title="Contracts" kinds={["contracts"]}>{() => {
      const all = store.list("contracts").toSorted((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
      const rows = all.filter((c) => matches(c.name, partyText(c.party), c.party.id, c.state, c.ready.reason, c.offer, c.sold ? "sells" : "buys"));
      return (
        <>
          <Head title="Contracts" hint={attention(all)} command={kubectl("contracts", "-o", "wide")} />
          <Rows all={all.length} none={<Empty command={kubectl("offers")}>This cluster has neither bought nor sold anything. See what is for sale:</Empty>}
            misfit="No contract fits the filter." label="Contracts" columns={columns} rows={rows} keyOf={(c) => `${c.sold} ${c.name}`} />
          <Requests />
        </>
      );
    }}</Needs>
  );
}

/** What is looked for, whether something was found or not. */
function Requests() {
  const all = missing("requests") ? [] : store.list("requests");
  if (all.length === 0) return null;
  return (
    <Section title="Looked for">
      <ul class="lines">{all.map((r) => (
        <li key={r.name}>
          <a class="cut" href={href(["contracts", "needs", r.name])}>{plain(r.name)}</a>
          <State tone={r.ready.status === "True" ? "ok" : "unknown"}>{plain(r.ready.reason)}</State> <span class="muted">{amounts(r.resources)} for {lasting(r.duration)}</span>
        </li>
      ))}</ul>
    </Section>
  );
}

export function RequestScreen({ name }: { name: string }) {
  return <Single title="Capacity that is needed" of="requests" id={name} what="request" back="contracts">{(r) => <Needed r={r} />}</Single>;
}

function Needed({ r }: { r: Request }) {
  const [withdrawing, withdraw] = useState(false);
  const refused = refusalOf("delete capacityrequests");
  const bought = r.purchase && !missing("contracts") ? store.all("contracts").get(`buys/${r.purchase}`) : undefined;
  return (
    <>
      <Head title={<span class="cut" title={plain(r.name)}>{plain(r.name)}</span>} hint="capacity that is needed: the connector buys what fits best, and something else if that fails"
        command={plainKubectl("get", "capacityrequest", r.name, "-o", "yaml")}>
        <Act why={refused} does="What was bought for it is ended." act={() => withdraw(true)}>Need it no more</Act>
      </Head>
      <p class={r.ready.status === "True" ? "reason best" : "reason"}><Icon of={r.ready.status === "True" ? "ok" : "later"} /><span><b>{r.ready.status === "True" ? "It can be used" : "Not yet"}</b>{why(r.ready)}</span></p>
      <Section title="What is needed">
        <Facts of={[
          ["At least", <Amounts of={r.resources} />], ["For", lasting(r.duration) + (r.renew ? ", and renewed" : "")],
          ["At most", [r.maxPrice && plain(r.maxPrice.text), r.maxTotal && `${money(r.maxTotal)} in all`].filter(Boolean).join(", ") || "any price"],
          ["Where", r.regions?.map(plain).join(", ") || "anywhere"],
          ...(r.expression ? [["In CEL", <code>{plain(r.expression)}</code>]] as [string, preact.ComponentChildren][] : []),
          ["Bought", bought ? <a href={placeOf(bought)}>{plain(bought.name)}</a> : plain(r.purchase) || <span class="muted">nothing yet</span>],
        ]} />
      </Section>
      {bought && <Section title="How far it is"><Way c={bought} tone={toneOf(bought)} /></Section>}
      {withdrawing && <Dialog task={{
        verb: "End", name: plain(r.name), does: "What was bought for it is ended: workloads leave, and the peering ends. A buyer pays for the time of notice.",
        command: plainKubectl("delete", "capacityrequest", r.name), done: () => withdraw(false),
        attempt: async (dry) => {
          const { said, warnings } = await send<{ done: string }>("DELETE", `requests/${encodeURIComponent(r.name)}`, undefined, { dry });
          return { said: `${plain(r.name)} ${said.done}.`, warnings };
        },
      }} />}
    </>
  );
}

export function ContractScreen({ side, name }: { side: string; name: string }) {
  return <Single title="Contract" of="contracts" id={`${side}/${name}`} what="contract">{(c) => <One c={c} />}</Single>;
}

function One({ c }: { c: Contract }) {
  return (
    <>
      <Head title={<span class="cut" title={plain(c.name)}>{plain(c.name)}</span>} command={kubectl("contracts", "show", c.name)}
        hint={<>this cluster {c.sold ? "sells to" : "buys from"} <Who of={c.party} /></>}>
        <Deeds c={c} />
      </Head>
      <p class={c.ready.status === "True" ? "reason best" : "reason"}><Icon of={c.ready.status === "True" ? "ok" : "later"} /><span><b>{plain(c.state) || "Asked"}</b>{why(c.ready)}</span></p>
      <section class="ways" aria-label="How far it is"><Way c={c} tone={toneOf(c)} /></section>
      {c.waits ? <Section title="What waits for you"><Asked c={c} /></Section> : null}
      <div class="columns">
        <div>
          <Section title="What became of it"><Steps c={c} /></Section>
          <Section title="Conditions"><Conditions of={c.conditions} /></Section>
        </div>
        <div>
          <Section title="In force">
            <Facts of={[
              ["Size", <Amounts of={c.resources} />], ["Plan", [c.offer, c.plan].map(plain).filter(Boolean).join(" / ") || <span class="muted">unknown</span>],
              ["Price", plain(c.price?.text) || <span class="muted">unknown</span>],
              ["Owed so far", c.cost ? sums(c.cost.soFar) : <span class="muted">it cannot be said</span>],
              ["To the end", c.cost ? sums(c.cost.toTheEnd) + (c.cost.maxTotal ? `, at most ${money(c.cost.maxTotal)}` : "") : <span class="muted">it cannot be said</span>],
              ["Begins", c.start ? <When time={c.start} /> : <span class="muted">not yet</span>],
              ["Ends", c.end ? <><When time={c.end} />{c.renew && <span class="muted">renewed before</span>}</> : <span class="muted">not yet</span>],
              ["Terms", <Paper of={c.terms} />],
            ]} />
            <Promise of={c.promise} />
          </Section>
          <Section title="Where">
            <Facts of={[
              ["Party", <code class="cut" title={plain(c.party.id)}>{plain(c.party.id)}</code>],
              ["Cluster", c.cluster ? <span class="cut" title={plain(c.cluster.id)}>{plain(c.cluster.name) || plain(c.cluster.id)}</span> : <span class="muted">not peered</span>],
              ...(c.sold ? [] : [["Nodes", c.nodes?.map(plain).join(", ") || <span class="muted">none</span>], ["Pods to leave", c.podsLeft ? count(c.podsLeft, "pod") : "none"]] as [string, preact.ComponentChildren][]),
              ...(c.request ? [["Bought for", <a href={href(["contracts", "needs", c.request])}>{plain(c.request)}</a>]] as [string, preact.ComponentChildren][] : []),
              ["Contract ID", plain(c.contractID) || <span class="muted">none</span>],
            ]} />
          </Section>
        </div>
      </div>
    </>
  );
}

function Steps({ c }: { c: Contract }) {
  if (!c.steps?.length) return <p class="muted">Nothing yet.</p>;
  return (
    <ol class="lines">{c.steps.toReversed().map((step, i) => (
      <li key={`${i} ${step.at}`}>
        <span class="told"><b>{plain(step.event)}</b>{step.from !== step.to && <span>→ {plain(step.to)}</span>}<span class="chip">terms {step.terms}</span><span class="muted"><When time={step.at} /></span></span>
        {step.reason && <p class="muted">{plain(step.reason)}</p>}
      </li>
    ))}</ol>
  );
}

/** What a buyer asks for, beside what is in force. */
function Asked({ c }: { c: Contract }) {
  const a = c.asked;
  if (!a) return <p>Terms {c.waits}: somebody wants to buy {amounts(c.resources)} for {plain(c.price?.text)}{c.end && <> until {new Date(c.end).toLocaleString()}</>}.</p>;
  const rows: [string, string, string][] = [
    ["Size", amounts(c.resources), amounts(a.resources)], ["Plan", plain(c.plan), plain(a.plan) || plain(c.plan)], ["Price", plain(c.price?.text), plain(a.price.text)],
    ["Ends", c.end ? new Date(c.end).toLocaleString() : "", new Date(a.end).toLocaleString()],
  ];
  return (
    <table class="small">
      <thead><tr><th scope="col">Terms {c.waits}</th><th scope="col">In force</th><th scope="col">Asked for</th></tr></thead>
      <tbody>{rows.map(([name, was, is]) => <tr key={name}><th scope="row">{name}</th><td>{was}</td><td>{was === is ? <span class="muted">the same</span> : <b>{is}</b>}</td></tr>)}</tbody>
    </table>
  );
}

/** What each deed does, for who does not know the word. */
const words: Record<string, [verb: string, does: string]> = {
  approve: ["Approve", "The terms that wait are agreed to."],
  refuse: ["Refuse", "The terms that wait are not agreed to; what is in force stays so."],
  resize: ["Resize", "The seller is asked for another size, or another plan of the offer."],
  renew: ["Renew", "The seller is asked for a later end."],
  suspend: ["Suspend", "The buyer is granted nothing for now, and pays nothing: its workloads leave."],
  resume: ["Resume", "The buyer is granted again what it has bought."],
  end: ["End", "Workloads leave, and the peering ends. It cannot be taken back."],
};

function Deeds({ c }: { c: Contract }) {
  const [chosen, choose] = useState("");
  const refused = refusalOf(c.sold ? "update sales" : "update purchases");
  return (
    <>
      {c.deeds.map((deed) => (
        <Act key={deed} class={deed === "approve" ? "main" : undefined} why={refused} does={words[deed]?.[1]} act={() => choose(deed)}>{words[deed]?.[0] ?? plain(deed)}</Act>
      ))}
      {chosen && <Decide c={c} deed={chosen} done={() => choose("")} />}
    </>
  );
}

function Decide({ c, deed, done }: { c: Contract; deed: string; done: () => void }) {
  const [reason, setReason] = useState("");
  const [cpu, setCPU] = useState(c.resources?.cpu ?? "");
  const [memory, setMemory] = useState(c.resources?.memory ?? "");
  const [pods, setPods] = useState(c.resources?.pods ?? "");
  const [plan, setPlan] = useState("");
  const [until, setUntil] = useState(c.end ?? "");
  // What was seen is what is decided about, whatever the stream tells meanwhile.
  const [of] = useState({ version: c.version, terms: c.waits, asked: <Asked c={c} /> });
  const about: Deed = { version: of.version };
  const flags: string[] = [];
  if (reason) (about.reason = reason), flags.push("--reason", reason);
  if (deed === "approve" || deed === "refuse") (about.terms = of.terms ?? 0), flags.push("--terms", String(of.terms));
  if (deed === "resize") {
    about.resources = { cpu, memory, pods };
    if (plan) (about.plan = plan), flags.push("--plan", plan);
    flags.push("--cpu", cpu, "--memory", memory, "--pods", pods);
  }
  if (deed === "renew" && until) (about.until = until), flags.push("--until", until);
  const [verb, does] = words[deed] ?? [deed, ""];
  const told = ["end", "suspend", "refuse"].includes(deed);
  return (
    <Dialog task={{
      verb, name: plain(c.name), does, command: kubectl("contracts", deed, c.name, ...flags), done,
      ...(deed === "approve" ? { fields: of.asked } : {}),
      ...(told ? { fields: <>{deed === "refuse" && of.asked}<Field name="Reason, which the other side is told" value={reason} set={setReason} hint="maintenance of the racks" /></> } : {}),
      ...(deed === "resize" ? { fields: <>
        <Field name="CPU" value={cpu} set={setCPU} hint="4" /><Field name="Memory" value={memory} set={setMemory} hint="8Gi" /><Field name="Pods" value={pods} set={setPods} hint="40" />
        <Field name="Another plan" value={plan} set={setPlan} hint={plain(c.plan) || "plan"} />
      </> } : {}),
      ...(deed === "renew" ? { fields: <Field name="Until" hint="2030-01-31T12:00:00Z" value={until} set={setUntil} required /> } : {}),
      attempt: async (dry) => {
        const { said, warnings } = await send<{ done: string }>("POST", `contracts/${c.sold ? "sells" : "buys"}/${encodeURIComponent(c.name)}/${deed}`, about, { dry });
        return { said: `${plain(c.name)} ${said.done}.`, warnings };
      },
    }} />
  );
}
