// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// What this cluster offers, and the registries that it uses.

import { useState } from "preact/hooks";
import { Happened } from "../activity";
import { Act, Dialog } from "../dialog";
import { count, plain } from "../format";
import { Command, Conditions, Empty, Facts, Head, Icon, Needs, Section, State, When } from "../parts";
import { kubectl, matches, plainKubectl } from "../place";
import { missing, refusalOf, send, store } from "../server";
import type { Condition, OwnOffer, Registry } from "../trade";
import { amounts, attention, rangeText, why } from "./words";

export function OffersScreen() {
  return (
    <Needs title="Own offers" kinds={["ownoffers"]}>{() => {
      const all = store.list("ownoffers").toSorted((a, b) => a.name.localeCompare(b.name));
      const shown = all.filter((o) => matches(o.name, o.title, o.region));
      return (
        <>
          <Head title="Own offers" hint={count(all.length, "offer")} command={kubectl("offers", "--own", "-o", "wide")} />
          {all.length === 0 && <Empty command={plainKubectl("apply", "-f", "deploy/examples/trade/offer.yaml")}>This cluster offers nothing. Make an Offer:</Empty>}
          {all.length > 0 && shown.length === 0 && <Empty>No offer fits the filter.</Empty>}
          {shown.map((o) => <Own key={o.name} o={o} />)}
        </>
      );
    }}</Needs>
  );
}

function Own({ o }: { o: OwnOffer }) {
  const [asking, ask] = useState(false);
  const refused = refusalOf("patch offers");
  const published = o.conditions?.find((c) => c.type === "Published");
  const verb = o.open ? "Close the sale" : "Open the sale";
  const sale = o.open ? "Closed" : "Open";
  return (
    <Section title={<span class="cut" title={plain(o.name)}>{plain(o.title)}</span>}>
      <div class="told">
        <State tone={!o.open ? "off" : published?.status === "True" ? "ok" : "problem"} title={published && why(published)}>{!o.open ? "closed" : published?.status === "True" ? "published" : plain(published?.reason) || "not published yet"}</State>
        <span class="muted">{plain(o.name)}{o.region && `, ${plain(o.region)}`}; {count(o.sold, "contract")}</span>
        <Act class="small" aria-label={`${verb} of ${plain(o.name)}`} why={refused} does={o.open ? "What was sold stays sold." : "It can be bought again."} act={() => ask(true)}>{verb}</Act>
      </div>
      <table class="small goods">
        <thead><tr><th scope="col">Plan</th><th scope="col" class="num">Price</th><th scope="col" class="num">Sold</th><th scope="col" class="num">Left</th></tr></thead>
        <tbody>{o.plans.map((p) => (
          <tr key={p.id}><th scope="row" title={plain(p.id)}>{plain(p.title) || plain(p.id)}<span class="muted">{p.range ? rangeText(p.range) : amounts(p.resources)}</span></th><td class="num">{plain(p.price.text)}</td><td class="num">{p.sold}</td>
            <td class="num">{p.left}{p.stock !== undefined && <span class="muted"> of {p.stock}</span>}</td></tr>
        ))}</tbody>
      </table>
      <Facts of={[["Who may buy", <ol>{(o.rules ?? []).map((r) => <li key={r.expression}>{plain(r.verdict)} if <code>{plain(r.expression)}</code></li>)}<li>{o.rules?.length ? "else " : ""}{plain(o.otherwise)}</li></ol>]]} />
      <details><summary>Conditions</summary><Conditions of={o.conditions} /></details>
      {asking && <Dialog task={{
        verb, name: `of ${plain(o.name)}`, does: o.open ? "Nobody can buy it any more. What was sold before stays sold." : "It is published again, and can be bought.",
        command: plainKubectl("patch", "offers.brokering.liqo.io", o.name, "--type=merge", "-p", JSON.stringify({ spec: { sale } })), done: () => ask(false),
        attempt: async (dry) => {
          const { warnings } = await send("PUT", `ownoffers/${encodeURIComponent(o.name)}/sale`, { sale }, { dry });
          return { said: `The sale of ${plain(o.name)} is ${sale}.`, warnings };
        },
      }} />}
    </Section>
  );
}

export function RegistriesScreen() {
  return (
    <Needs title="Registries" kinds={["registries"]}>{() => {
      const all = store.list("registries").toSorted((a, b) => a.name.localeCompare(b.name));
      return (
        <>
          <Head title="Registries" hint={count(all.length, "registry", "registries")} command={kubectl("registry", "-o", "wide")} />
          {all.length === 0 && <Empty command={kubectl("registry", "join")}>This cluster uses no registry yet. Join one:</Empty>}
          {all.filter((r) => matches(r.name, r.url)).map((r) => <One key={r.name} r={r} />)}
        </>
      );
    }}</Needs>
  );
}

function One({ r }: { r: Registry }) {
  return (
    <Section title={plain(r.name)}>
      <Facts of={[
        ["Address", <code class="cut" title={plain(r.url)}>{plain(r.url)}</code>], ["It lists", `${count(r.parties, "party", "parties")} and ${count(r.offers, "offer")}`],
        ["Own offers", r.publish ? "are published there" : "are not published there"],
        ["Takes us for alive", r.leaseUntil ? <>until {new Date(r.leaseUntil).toLocaleTimeString()}</> : <span class="muted">not</span>],
        ["Known since", <When time={r.created} />],
      ]} />
      <Conditions of={r.conditions} />
    </Section>
  );
}

/** What somebody should look at on a cluster that trades and is no broker. */
export function TradeOverview() {
  return (
    <>
      <Head title="Overview" command={kubectl("contracts")} />
      <Trade />
      <Happened title="Last activity" most={8} />
    </>
  );
}

/** The same, below what a broker or a consumer has. */
export function Summary() {
  return <div role="region" aria-label="Trade"><h2>Trade</h2><Trade /></div>;
}

function Trade() {
  return (
    <>
      <Verdict />
      <div class="columns">
        <Section title="Contracts"><Needs kinds={["contracts"]}>{() => <Look />}</Needs></Section>
        <div>
          <Section title="Own offers"><Needs kinds={["ownoffers"]}>{() => <States of={store.list("ownoffers").map((o) => [o.name, o.open ? o.conditions?.find((c) => c.type === "Published") : undefined, "#/offers"])} none="Nothing is offered." />}</Needs></Section>
          <Section title="Registries"><Needs kinds={["registries"]}>{() => <States of={store.list("registries").map((r) => [r.name, r.conditions?.find((c) => c.status !== "True") ?? r.conditions?.[0], "#/registries"])} none="None is used." />}</Needs></Section>
        </div>
      </div>
    </>
  );
}

/** In a sentence, whether somebody has to do something. */
function Verdict() {
  if (missing("contracts") || !store.synced.value) return null;
  const all = store.list("contracts");
  const waiting = all.filter((c) => c.waits).length;
  const silent = missing("registries") ? 0 : store.list("registries").filter((r) => r.conditions?.some((c) => c.status === "False")).length;
  const said = [waiting > 0 && attention(all), silent > 0 && `${count(silent, "registry", "registries")} ${silent === 1 ? "is" : "are"} not followed, or not in order`].filter(Boolean).join("; ");
  return <p class={said ? "verdict problem" : "verdict ok"} role="status"><Icon of={said ? "problem" : "ok"} />{said || "Nothing waits for you"}.</p>;
}

function States({ of, none }: { of: [name: string, condition: Condition | undefined, to: string][]; none: string }) {
  if (of.length === 0) return <p class="muted">{none}</p>;
  return (
    <ul class="lines">{of.map(([name, c, to]) => (
      <li key={name}><a class="cut" href={to}>{plain(name)}</a> <State tone={!c ? "off" : c.status === "True" ? "ok" : "problem"}>{c ? why(c) : "closed"}</State></li>
    ))}</ul>
  );
}

function Look() {
  const all = store.list("contracts");
  const waiting = all.filter((c) => c.waits);
  const wrong = all.filter((c) => !c.waits && c.ready.status === "False" && !["Ended", "Rejected", "Expired", "Failed"].includes(c.state ?? ""));
  if (all.length === 0) return <><p class="muted">This cluster has neither bought nor sold anything.</p><Command line={kubectl("offers")} /></>;
  return (
    <>
      <p>{count(all.filter((c) => !c.sold).length, "contract")} bought, {all.filter((c) => c.sold).length} sold; {all.filter((c) => c.ready.status === "True").length} can be used.</p>
      <ul class="lines">{[...waiting, ...wrong].map((c) => (
        <li key={`${c.sold} ${c.name}`}><a class="cut" href={`#/contracts/${c.sold ? "sells" : "buys"}/${encodeURIComponent(c.name)}`}>{plain(c.name)}</a> <State tone="problem">{c.waits ? `terms ${c.waits} wait for your decision` : why(c.ready)}</State></li>
      ))}</ul>
    </>
  );
}
