// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// What is for sale, for what somebody needs, and how it is bought.

import { useEffect, useState } from "preact/hooks";
import { Act, Dialog } from "../dialog";
import { count, plain } from "../format";
import { Amounts, type Column, Empty, Facts, Gone, Head, Icon, Needs, Section, State, Table, When } from "../parts";
import { kubectl, matches, narrow, route } from "../place";
import { href } from "../routes";
import { refusalOf, send, store } from "../server";
import type { Document, Found, Market, Need, Ordered, PlanForSale, Promise as Promised } from "../trade";
import { Field, Who } from "./ask";
import { amounts, flagsOf, money, lasting, needOf, partyText, rangeText } from "./words";

/** How long nobody types before it is looked for, in ms. */
const pause = 400;

const columns: Column<PlanForSale>[] = [
  { name: "Seller", width: 11, by: (p) => partyText(p.seller), cell: (p) => <Who of={p.seller} /> },
  { name: "Plan", width: 12, by: (p) => `${p.title} ${p.plan}`, cell: (p) => <a class="cut" href={placeOf(p)} title={p.reference}>{plain(p.title)} / {plain(p.plan)}</a> },
  { name: "Gives", width: 13, from: "mid", cell: (p) => <span class="cut" title={amounts(p.granted)}>{amounts(p.granted)}</span> },
  { name: "Price", width: 10, num: true, cell: (p) => plain(p.price.text) },
  { name: "In all", width: 8, from: "mid", num: true, cell: (p) => (p.total ? money(p.total) : <span class="muted" title="Say for how long you need it.">–</span>) },
  { name: "Region", width: 8, from: "wide", by: (p) => p.region ?? "", cell: (p) => plain(p.region) || <span class="muted">not said</span> },
  { name: "Left", width: 4, from: "wide", num: true, by: (p) => p.left, cell: (p) => p.left.toLocaleString("en") },
  { name: "Seller is", width: 8, from: "wide", by: (p) => Number(p.alive), cell: (p) => <Alive of={p.alive} /> },
];

function placeOf(p: { reference: string }): string {
  return href(["market", ...p.reference.split("/")], { ...route.value.query, q: undefined, sort: undefined });
}

function Alive({ of }: { of: boolean }) {
  return of ? <State tone="ok">heard of</State> : <State tone="off">silent</State>;
}

/** What fits a need, as often as the catalog changes or somebody types. */
function useFound(need: Need): { found?: Found; trouble: string; old: boolean } {
  const [last, setLast] = useState<{ of: string; found: Found }>();
  const [trouble, setTrouble] = useState("");
  const revision = store.list("market")[0]?.revision;
  const of = JSON.stringify(need);
  useEffect(() => {
    const gone = new AbortController();
    const later = setTimeout(() => {
      send<Found>("POST", "market/find", need, { signal: gone.signal }).then(
        ({ said }) => (setTrouble(""), setLast({ of, found: said })),
        (error: Error) => gone.signal.aborted || setTrouble(error.message));
    }, last ? pause : 0);
    return () => (clearTimeout(later), gone.abort());
  }, [of, revision]);
  return { ...(last ? { found: last.found } : {}), trouble, old: last?.of !== of };
}

export function MarketScreen() {
  return (
    <Needs title="Market" kinds={["market"]}>{() => {
      const market = store.list("market")[0];
      return market ? <Shown market={market} /> : <Empty>The catalog was not read yet.</Empty>;
    }}</Needs>
  );
}

function Shown({ market }: { market: Market }) {
  const query = route.value.query;
  const need = needOf(query);
  const { found, trouble, old } = useFound(need);
  const [buying, buy] = useState(false);
  const why = refusalOf("create capacityrequests");
  const rows = (found?.plans ?? []).filter((p) => matches(p.title, p.plan, partyText(p.seller), p.region));
  const best = found?.plans[0];
  return (
    <>
      <Head title="Market" command={kubectl("offers", ...flagsOf(need))} hint={`${count(market.sellers.length + (market.more ?? 0), "seller")} with ${count(market.offers, "offer")}` +
        (market.leftOut ? `; not shown: ${count(market.leftOut, "party or offer", "parties or offers")}, over or not what the owner has signed` : "")}>
        <Act why={why} class="main" does="Have the best of what fits bought, and another one if that fails." act={() => buy(true)}>Buy what fits best</Act>
      </Head>
      <Form market={market} />
      {trouble && <p class="notice"><State tone="problem">{trouble}</State></p>}
      <div aria-busy={old && !trouble} class={old ? "old" : ""}>
        {best && !trouble && <p class="reason best"><Icon of="ok" /><span><b>Best choice</b><a href={placeOf(best)}>{plain(best.plan)}</a> of <Who of={best.seller} />: {amounts(best.granted)} for {plain(best.price.text)}{best.total ? `, ${money(best.total)} in all` : ""}.
          <span class="muted"> Sellers that registries have heard of come first, then the price.</span></span></p>}
        {found && rows.length === 0 && !trouble && <Empty>{found.plans.length ? "No plan fits the filter." : "Nothing that this cluster has seen fits."}</Empty>}
        {rows.length > 0 && <Table label="Plans" columns={columns} rows={rows} keyOf={(p) => p.reference} />}
        {found?.more ? <p class="muted">and {count(found.more, "further plan")}: say more of what you need.</p> : null}
      </div>
      <Sellers market={market} />
      {buying && <Buy need={need} done={() => buy(false)} />}
    </>
  );
}

/** What somebody needs. It is in the address. */
function Form({ market }: { market: Market }) {
  const query = route.value.query;
  const field = (name: string, key: string, hint: string) => <Field name={name} value={query[key] ?? ""} hint={hint} set={(to) => narrow({ [key]: to || undefined })} />;
  return (
    <form class="ask card" aria-label="What you need" onSubmit={(event) => event.preventDefault()}>
      {field("CPU", "cpu", "2")}{field("Memory", "memory", "4Gi")}{field("Pods", "pods", "20")}{field("For", "for", "24h")}{field("At most", "price", "0.5 EUR/h")}
      <label>Region
        <select value={query.region ?? ""} onChange={(event) => narrow({ region: event.currentTarget.value || undefined })}>
          <option value="">any</option>
          {[...new Set([...(market.regions ?? []), ...(query.region ? [query.region] : [])])].map((region) => <option key={region} value={region}>{plain(region)}</option>)}
        </select>
      </label>
      {field("Other resource", "resource", "nvidia.com/gpu=1")}{field("Architecture", "arch", "amd64")}{field("In CEL", "filter", "offer.labels[\"disk\"] == \"nvme\"")}
    </form>
  );
}

/** Who sells, whatever it is; one of them can be looked at alone. */
function Sellers({ market }: { market: Market }) {
  const only = route.value.query.seller;
  return (
    <details class="sellers" open={Boolean(only)}>
      <summary>Sellers</summary>
      <ul class="lines">
        {market.sellers.map((s) => (
          <li key={s.id}>
            <Who of={s} /> <Alive of={s.alive} /> <span class="muted">{count(s.offers, "offer")}{s.regions?.length ? ` in ${s.regions.map(plain).join(", ")}` : ""}</span>{" "}
            <button type="button" class="small" aria-pressed={only === s.id} aria-label={`Only these of ${partyText(s)}`} onClick={() => narrow({ seller: only === s.id ? undefined : s.id })}>Only these</button>
          </li>
        ))}
      </ul>
      {market.more ? <p class="muted">and {count(market.more, "further seller")}</p> : null}
    </details>
  );
}

export function PlanScreen({ reference }: { reference: string }) {
  return (
    <Needs title="Plan" kinds={["market"]}>{() => <Plan reference={reference} />}</Needs>
  );
}

function Plan({ reference }: { reference: string }) {
  const need = needOf(route.value.query);
  const [id] = reference.split("/");
  const { found, trouble } = useFound({ ...need, sellers: [id!] });
  const [buying, buy] = useState(false);
  if (trouble) return <p><State tone="problem">{trouble}</State></p>;
  if (!found) return <p class="notice" aria-busy="true">Asking …</p>;
  const p = found.plans.find((one) => one.reference === reference);
  if (!p) return <Gone what="plan for what you need" back="market" />;
  const why = refusalOf("create purchases");
  return (
    <>
      <Head title={<span class="cut" title={plain(p.title)}>{plain(p.title)}</span>} command={kubectl("buy", p.reference, "--name", "NAME", ...flagsOf({ ...need, duration: need.duration || "24h" }))}
        hint={<>plan {plain(p.plan)} of <Who of={p.seller} /> <Alive of={p.alive} /></>}>
        <Act why={why} class="main" does="Buy this plan." act={() => buy(true)}>Buy</Act>
      </Head>
      {p.description && <p class="described muted">{plain(p.description)}</p>}
      <div class="columns">
        <div>
          <Section title="For what you need">
            <Facts of={[
              ["You get", <Amounts of={p.granted} />],
              ["Price", plain(p.price.text)],
              [`For ${need.duration ?? "some time"}`, p.total ? money(p.total) : <a href={href(["market"], route.value.query)}>Say how long you need it</a>],
              ...(p.range ? [["It comes as", rangeText(p.range)], ["Of the price", <>{plain(p.base.text)} whatever you choose{Object.entries(p.range.unitPrices ?? {}).map(([name, unit]) => ` + ${plain(unit.amount)} for each ${plain(unit.per)} of ${plain(name)}`).join("")}</>]] as [string, preact.ComponentChildren][] : []),
              ["Can be had for", p.minDuration || p.maxDuration ? [p.minDuration && `${lasting(p.minDuration)} at least`, p.maxDuration && `${lasting(p.maxDuration)} at most`].filter(Boolean).join(", ") : "any time"],
              ["Notice", lasting(p.notice) || "none"],
              ["Left", p.left.toLocaleString("en")],
            ]} />
          </Section>
          <Section title="Promised, and measured">
            <Promise of={p.promise} />
            {p.measured?.length ? (
              <table class="small">
                <thead><tr><th scope="col">Measured</th><th scope="col" class="num">Value</th><th scope="col" class="num">Samples</th><th scope="col">When, by whom</th></tr></thead>
                <tbody>{p.measured.map((m) => (
                  <tr key={m.name}><th scope="row">{plain(m.name)}</th><td class="num">{m.value} {plain(m.unit)}</td><td class="num">{m.samples}</td>
                    <td><When time={m.at} /> <span title={plain(m.by.id)}>{plain(m.by.short)}</span>{m.by.id === p.seller.id && <span class="muted"> (the seller)</span>}</td></tr>
                ))}</tbody>
              </table>
            ) : <p class="muted">Nothing was measured, or nobody has signed it.</p>}
          </Section>
        </div>
        <div>
          <Section title="About">
            <Facts of={[
              ["Party", <code class="cut" title={plain(p.seller.id)}>{plain(p.seller.id)}</code>],
              ["Offer", plain(p.offer)],
              ["Behind it", p.kind === "Broker" ? "a broker, which sells what it buys" : "a cluster"],
              ["Where", [p.region, p.zone].map(plain).filter(Boolean).join(", ") || <span class="muted">not said</span>],
              ["Architectures", p.architectures?.map(plain).join(", ") || <span class="muted">not said</span>],
              ["Labels", Object.entries(p.labels ?? {}).map(([key, value]) => `${plain(key)}=${plain(value)}`).join(", ") || "none"],
              ["Shown by", p.registries.map(plain).join(", ")],
              ["Signed", <When time={p.issued} />],
              ["Counts until", <time dateTime={p.validUntil}>{new Date(p.validUntil).toLocaleString()}</time>],
              ["Terms", <Paper of={p.terms} />],
            ]} />
          </Section>
        </div>
      </div>
      {buying && <Buy need={need} plan={p} done={() => buy(false)} />}
    </>
  );
}

/** A document of a stranger: its address is a text, and no link. */
export function Paper({ of }: { of: Document | undefined }) {
  if (!of) return <span class="muted">none</span>;
  return <span><code class="cut" title={plain(of.url)}>{plain(of.url)}</code>{of.sha256 && <span class="muted" title={plain(of.sha256)}> SHA-256 {plain(of.sha256).slice(0, 12)}</span>}</span>;
}

export function Promise({ of }: { of: Promised | undefined }) {
  if (!of) return <p class="muted">The seller promises no availability.</p>;
  return <p>{of.availability ? `The seller promises to be there for ${plain(of.availability)} % of a month` : "The seller promises a service level"}{of.credit && `, or ${plain(of.credit)} % of the price back`}. {of.document && <Paper of={of.document} />}</p>;
}

/** Orders what fits best, or one plan. */
function Buy({ need, plan, done }: { need: Need; plan?: PlanForSale; done: () => void }) {
  const [name, setName] = useState("");
  const [cpu, setCPU] = useState(need.resources?.cpu ?? plan?.granted.cpu ?? "");
  const [memory, setMemory] = useState(need.resources?.memory ?? plan?.granted.memory ?? "");
  const [pods, setPods] = useState(need.resources?.pods ?? plan?.granted.pods ?? "");
  const [duration, setDuration] = useState(need.duration ?? "");
  const [price, setPrice] = useState(need.maxPrice ?? plan?.price.text ?? "");
  const [total, setTotal] = useState("");
  const [renew, setRenew] = useState(false);
  const wanted: Need = plan ? { resources: { ...need.resources, cpu, memory, pods } } : { ...need, resources: { ...need.resources, cpu, memory, pods } };
  const of: Need = { ...wanted, duration, ...(price ? { maxPrice: price } : {}) };
  const order = { ...of, name, ...(plan ? { reference: plan.reference } : {}), ...(total ? { maxTotal: total } : {}), ...(renew ? { renew } : {}) };
  const command = kubectl("buy", ...(plan ? [plan.reference] : []), "--name", name || "NAME", ...flagsOf(of), ...(total ? ["--max-total", total] : []), ...(renew ? ["--renew"] : []), "--wait");
  const attempt = async (dry: boolean) => {
    const { said, warnings } = await send<Ordered>("POST", "orders", order, { dry });
    if (!dry) location.hash = href(said.kind === "Purchase" ? ["contracts", "buys", said.name] : ["contracts", "needs", said.name]).slice(1);
    return { said: `${plain(said.name)} is ordered.`, warnings, shown: <Would of={said.would} /> };
  };
  return (
    <Dialog task={{
      verb: "Buy", name: plan ? `${plain(plan.title)} / ${plain(plan.plan)}` : "what fits best", command, attempt, done,
      does: "Whoever buys pays. Price and time are what you allow: what is not within them is not bought. The capacity comes as a virtual node.",
      fields: <>
        <Field name="Name" value={name} set={setName} hint="nightly" required />
        <Field name="CPU" value={cpu} set={setCPU} hint="2" /><Field name="Memory" value={memory} set={setMemory} hint="4Gi" /><Field name="Pods" value={pods} set={setPods} hint="20" />
        <Field name="For" value={duration} set={setDuration} hint="24h" required /><Field name="At most" value={price} set={setPrice} hint="0.5 EUR/h" required />
        <Field name="In all at most" value={total} set={setTotal} hint="100 EUR" />
        <label><input type="checkbox" checked={renew} onChange={(event) => setRenew(event.currentTarget.checked)} /> Renew it before it ends</label>
      </>,
    }} />
  );
}

/** What an order would buy now, the first of it. */
function Would({ of }: { of: PlanForSale[] }) {
  if (of.length === 0) return <p><State tone="off">Nothing that this cluster has seen fits now. The order waits until something does.</State></p>;
  return (
    <>
      <h3>What would be bought</h3>
      <ol class="lines would">{of.map((p, i) => (
        <li key={p.reference} title={plain(p.reference)}>
          <span class="cut">{i === 0 ? "first: " : "else: "}{partyText(p.seller)}, {plain(p.plan)}</span>
          <b class="num">{plain(p.price.text)}</b>
          <span class="muted">{amounts(p.granted)}</span>
          <span class="num">{p.total && `${money(p.total)} in all`}</span>
        </li>
      ))}</ol>
    </>
  );
}
