// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// The clusters that consume.

import { Happened } from "./activity";
import type { Advice, Consumer, Offer } from "./api";
import { Deeds } from "./deeds";
import { amount, count, nameOf, plain, quantity, resourcesOf, titleOf, usedOf, usedText } from "./format";
import { Amounts, Bar, type Column, Command, Conditions, consumerState, Empty, Facts, Head, Named, Needs, Rows, Section, shownOf, Single, State, When } from "./parts";
import { kubectl, matches } from "./place";
import { href } from "./routes";
import { store } from "./server";
import { Pods } from "./workloads";

const columns: Column<Consumer>[] = [
  { name: "Name", width: 11, by: (c) => nameOf(c), cell: (c) => <a class="cut" href={href(["consumers", c.id])} title={titleOf(c)}>{nameOf(c)}</a> },
  { name: "State", width: 10, by: (c) => consumerState(c).word, cell: (c) => <State tone={consumerState(c).tone} title={plain(c.reason)}>{consumerState(c).word}</State> },
  { name: "CPU", width: 12, by: (c) => usedOf("cpu", c), cell: (c) => <Bar resource="cpu" of={c} /> },
  { name: "Memory", width: 12, from: "mid", by: (c) => usedOf("memory", c), cell: (c) => <Bar resource="memory" of={c} /> },
  { name: "Mode", width: 9, from: "mid", by: (c) => c.mode ?? "", cell: (c) => plain(c.mode) || <span class="muted">not served</span> },
  { name: "Share", width: 5, from: "wide", num: true, by: (c) => c.sharePercent, cell: (c) => `${c.sharePercent} %` },
  { name: "Since", width: 6, from: "wide", by: (c) => c.created, cell: (c) => <When time={c.created} /> },
];

export function ConsumersScreen() {
  return (
    <Needs title="Consumers" kinds={["consumers"]}>{() => {
      const all = store.list("consumers");
      const rows = all.filter((c) => matches(c.id, nameOf(c), consumerState(c).word, c.reason, c.mode));
      return (
        <>
          <Head title="Consumers" hint={shownOf(rows.length, all.length, "cluster") + ", bars: used of offered"} command={kubectl("consumers")} />
          <Rows all={all.length} none={<Empty command={kubectl("join", "--consumer", "CLUSTER")}>No cluster consumes yet. Let one peer with the broker:</Empty>}
            misfit="No consumer fits the filter." label="Consumers" columns={columns} rows={rows} keyOf={(c) => c.id} />
        </>
      );
    }}</Needs>
  );
}

export function ConsumerScreen({ id }: { id: string }) {
  return <Single title="Consumer" of="consumers" id={id} what="consumer">{(c) => <One c={c} />}</Single>;
}

function One({ c }: { c: Consumer }) {
  const state = consumerState(c);
  return (
    <>
      <Head title={<span class="cut" title={titleOf(c)}>{nameOf(c)}</span>} command={kubectl("consumers", c.id, "-o", "wide")}
        hint={<><State tone={state.tone}>{state.word}</State> {plain(c.reason) !== state.word && plain(c.reason)}</>}>
        <Deeds of="consumers" cluster={c} at={c.scheduling} deeds={[
          { verb: "Suspend", to: "Suspended", does: "It keeps what it uses, and gets nothing new." },
          { verb: "Resume", to: "Active", does: "It is offered again what there is for it." },
        ]} />
      </Head>
      <div class="columns">
        <div>
          <Section title="Offered, granted, used">
            <Needs kinds={["offers"]}>{() => <Offers of={store.all("offers").get(c.id)} />}</Needs>
          </Section>
          <Section title="With whom it should peer">
            <Needs kinds={["advice"]}>{() => <AdviceFor of={store.all("advice").get(c.id)} />}</Needs>
          </Section>
        </div>
        <div>
          <Section title="About">
            <Facts of={[
              ["ID", <code class="cut" title={plain(c.id)}>{plain(c.id)}</code>],
              ["Mode", plain(c.mode) || <span class="muted">the broker does not serve it</span>],
              ["Sees", c.nodes === "PerProvider" ? "a node for each provider" : c.nodes === "One" ? "one node" : plain(c.nodes) || <span class="muted">unknown</span>],
              ["Reserved", c.reserved ? <Reserved of={c} /> : "nothing"],
              ["Limit", c.limit ? <Amounts of={c.limit} /> : "none"],
              ["Share of what is free", `${c.sharePercent} %`],
              ["Known since", <When time={c.created} />],
            ]} />
          </Section>
          <Section title="Conditions"><Conditions of={c.conditions} /></Section>
          <Happened title="Activity" most={8} only={(a) => a.consumer?.id === c.id} />
        </div>
      </div>
      <Section title="Its workloads"><Pods only={{ consumer: c.id }} /></Section>
    </>
  );
}

/** What is kept for it, and whether it is offered so much. */
function Reserved({ of: c }: { of: Consumer }) {
  const less = Object.entries(c.reserved ?? {}).filter(([name, value]) => {
    const offered = amount(c.offered?.[name]);
    return offered !== undefined && offered + (usedOf(name, c) ?? 0) < (amount(value) ?? 0);
  });
  return <><Amounts of={c.reserved} />{less.length > 0 && <State tone="problem">not met: {less.map(([name]) => plain(name)).join(", ")}</State>}</>;
}

function Offers({ of }: { of: Offer | undefined }) {
  if (!of) return <p class="muted">Nothing is offered to it.</p>;
  const names = resourcesOf(of.offered, of.granted, of.used);
  return (
    <>
      <table class="small">
        <thead><tr><th scope="col">Resource</th><th scope="col" class="num">Offered</th><th scope="col" class="num">Granted by Liqo</th><th scope="col" class="num">Used</th></tr></thead>
        <tbody>
          {names.map((name) => (
            <tr key={name}>
              <th scope="row">{plain(name)}</th>
              <td class="num">{quantity(of.offered?.[name], name)}</td>
              <td class="num">{quantity(of.granted?.[name], name)}</td>
              <td class="num">{quantity(usedText(name, of), name)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {of.nodes?.length ? (
        <table class="small">
          <thead><tr><th scope="col">Node</th><th scope="col">Provider</th><th scope="col">Offered there</th></tr></thead>
          <tbody>
            {of.nodes.map((node) => (
              <tr key={node.node ?? ""}>
                <th scope="row" title={plain(node.node)}><span class="cut">{plain(node.node) || "the broker's own"}</span></th>
                <td>{node.provider ? <Named as="providers" of={store.all("providers").get(node.provider) ?? { id: node.provider }} /> : "all"}</td>
                <td><Amounts of={node.offered} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
    </>
  );
}

function AdviceFor({ of }: { of: Advice | undefined }) {
  if (!of) return <p class="muted">There is no advice for it.</p>;
  return (
    <>
      <p><State tone={of.done ? "ok" : "off"}>{plain(of.message)}</State></p>
      <ul class="lines">
        {of.peers.map((peer) => (
          <li key={peer.provider.id}>
            <Named as="providers" of={peer.provider} />{" "}
            <State tone={peer.connected ? "ok" : "off"}>{peer.connected ? "connected" : "no tunnel known"}</State>{" "}
            <span class="muted">{count(peer.running, "pod")} there</span>
            {peer.reasons.length > 0 && <p>{peer.reasons.map(plain).join(" ")}</p>}
            {peer.check && <Command line={peer.check} />}
          </li>
        ))}
      </ul>
      {of.more ? <p class="muted">and {count(of.more, "more peer")}</p> : null}
    </>
  );
}
