// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// The pods of consumers.

import type { ComponentChildren } from "preact";
import type { Cluster, Workload } from "./api";
import { sentence } from "./foresight";
import { nameOf, plain, titleOf } from "./format";
import { Amounts, type Column, Command, Empty, Facts, Head, Icon, Named, Needs, Path, Rows, Section, shownOf, Single, State, Table, type Tone, When } from "./parts";
import { kubectl, matches, narrow, route } from "./place";
import { href } from "./routes";
import { Candidates, Outlook } from "./score";
import { store } from "./server";

/** A workload with its key in the stream. */
export interface Pod {
  key: string;
  w: Workload;
}

function tone(w: Workload): Tone {
  if (w.ready) return "ok";
  return w.status === "Succeeded" || w.status === "Terminating" ? "off" : w.status === "Waiting" || w.status === "Pending" ? "unknown" : "problem";
}

export function Status({ of: w, children }: { of: Workload; children: ComponentChildren }) {
  const is = tone(w);
  return <State tone={is} icon={is === "unknown" ? "later" : undefined} title={plain(w.why)}>{children}</State>;
}

/** By which path it is reached. A pod that is nowhere has none. */
function Way({ of: w }: { of: Workload }) {
  return w.provider || w.path ? <Path of={w.path} /> : <span class="muted">none</span>;
}

export const columns: Column<Pod>[] = [
  { name: "Pod", width: 12, by: ({ w }) => plain(w.pod), cell: ({ key, w }) => <a class="cut" href={href(["workloads", key])} title={plain(w.pod)}>{plain(w.pod)}</a> },
  { name: "Status", width: 9, by: ({ w }) => w.status, cell: ({ w }) => <Status of={w}>{w.status === "Running" && !w.ready ? "Not ready" : plain(w.status)}</Status> },
  { name: "Provider", width: 10, by: ({ w }) => nameOf(w.provider), cell: ({ w }) => <Named as="providers" of={w.provider} /> },
  { name: "Path", width: 7, by: ({ w }) => w.path, cell: ({ w }) => <Way of={w} /> },
  { name: "Consumer", width: 10, from: "mid", by: ({ w }) => nameOf(w.consumer), cell: ({ w }) => <Named as="consumers" of={w.consumer} /> },
  { name: "Address", width: 8, from: "wide", by: ({ w }) => w.address, cell: ({ w }) => plain(w.address) || <span class="muted">unknown</span> },
  { name: "Since", width: 6, from: "wide", by: ({ w }) => w.since, cell: ({ w }) => <When time={w.since} /> },
];

export type Narrowed = Partial<Record<"consumer" | "provider" | "path" | "namespace", string>>;

export function pods(only: Narrowed): Pod[] {
  const all: Pod[] = [];
  for (const [key, w] of store.all("workloads")) {
    if ((!only.consumer || w.consumer.id === only.consumer) && (!only.provider || w.provider?.id === only.provider)
      && (!only.path || w.path === only.path) && (!only.namespace || w.namespace === only.namespace)) all.push({ key, w });
  }
  return all.sort((a, b) => (a.w.namespace < b.w.namespace ? -1 : a.w.namespace > b.w.namespace ? 1 : a.key < b.key ? -1 : 1));
}

/** The pods of one cluster, below what else is shown of it. */
export function Pods({ only }: { only: Narrowed }) {
  return (
    <Needs kinds={["workloads"]}>{() => {
      const rows = pods(only);
      if (rows.length === 0) return <p class="muted">None.</p>;
      return (
        <>
          <p><a href={href(["workloads"], only)}>{shownOf(rows.length, rows.length, "pod")}, with filters</a></p>
          <Table label="Workloads" columns={columns.filter((column) => !only[column.name.toLowerCase() as keyof Narrowed])} rows={rows}
            keyOf={(p) => p.key} group={(p) => plain(p.w.namespace)} />
        </>
      );
    }}</Needs>
  );
}

export function WorkloadsScreen() {
  return (
    <Needs title="Workloads" kinds={["workloads"]}>{() => {
      const only: Narrowed = route.value.query;
      const all = store.all("workloads");
      const rows = pods(only).filter(({ w }) => matches(w.pod, w.namespace, w.status, w.address, w.path, w.policy, w.why, nameOf(w.consumer), nameOf(w.provider)));
      const list = [...all.values()];
      return (
        <>
          <Head title="Workloads" hint={shownOf(rows.length, all.size, "pod")} command={kubectl("where", ...(only.namespace ? [only.namespace] : []))} />
          <Filters of={list}><Choice name="consumer" options={clusters(list.map((w) => w.consumer))} /></Filters>
          <Rows all={all.size} none={<Empty command="kubectl label namespace NAMESPACE liqo.io/scheduling-enabled=true">No consumer runs pods here. On a consumer, offload a namespace:</Empty>}
            misfit="No pod fits the filters." label="Workloads" columns={columns} rows={rows} keyOf={(p) => p.key} group={(p) => plain(p.w.namespace)} />
        </>
      );
    }}</Needs>
  );
}

function clusters(of: Cluster[]): [string, string][] {
  return [...new Map(of.map((c) => [c.id, c]))].map(([id, c]) => [id, nameOf(c)] as [string, string]).sort((a, b) => (a[1] < b[1] ? -1 : 1));
}

function Choice({ name, options }: { name: keyof Narrowed; options: [string, string][] }) {
  const chosen = route.value.query[name] ?? "";
  const known = chosen && !options.some(([value]) => value === chosen) ? [...options, [chosen, plain(chosen)] as [string, string]] : options;
  return (
    <label>{name}
      <select value={chosen} onChange={(event) => narrow({ [name]: event.currentTarget.value })}>
        <option value="">all</option>
        {known.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
      </select>
    </label>
  );
}

/** What narrows a list of workloads, with what comes before that. */
export function Filters({ of, children }: { of: Workload[]; children?: ComponentChildren }) {
  return (
    <div class="filters">
      {children}
      <Choice name="provider" options={clusters(of.flatMap((w) => w.provider ?? []))} />
      <Choice name="namespace" options={[...new Set(of.map((w) => w.namespace))].sort().map((name) => [name, plain(name)])} />
      <Choice name="path" options={[["direct", "direct"], ["relay", "relay"]]} />
    </div>
  );
}

export function WorkloadScreen({ id }: { id: string }) {
  return <Single title="Workload" of="workloads" id={id} what="pod">{(w) => <One w={w} />}</Single>;
}

function One({ w }: { w: Workload }) {
  const command = kubectl("explain", `${w.brokerNamespace}/${w.pod}`);
  return (
    <>
      <Head title={<span class="cut" title={plain(w.pod)}>{plain(w.pod)}</span>} command={command}
        hint={<Status of={w}>{plain(w.status)}{w.ready ? ", ready" : ", not ready"}</Status>} />
      <Reason of={w} command={command} />
      <ol class="chain" aria-label="Where it is">
        <li><span class="muted">consumer</span><Named as="consumers" of={w.consumer} /></li>
        <li><span class="muted">policy</span><PolicyOf of={w} /></li>
        <li><span class="muted">provider</span><Named as="providers" of={w.provider} /></li>
        <li><span class="muted">path</span><Way of={w} /></li>
      </ol>
      <div class="columns">
        <Section title={w.policy ? <>What {plain(w.policy)} has decided for {nameOf(w.consumer)}</> : "Decision"}><DecisionFor w={w} /></Section>
        <Section title="About">
          <Facts of={[
            ["Namespace", <a href={href(["workloads"], { namespace: w.namespace })}>{plain(w.namespace)}</a>],
            ["At the broker", plain(w.brokerNamespace)],
            ["Follows", <PolicyOf of={w} />],
            ["Requests", <Amounts of={w.requests} />],
            ["Address from the broker", plain(w.address) || <span class="muted">unknown</span>],
            ["Bound", w.provider ? <When time={w.since} /> : <span class="muted">not yet</span>],
            ["Consumer's ID", <span class="cut" title={titleOf(w.consumer)}>{plain(w.consumer.id)}</span>],
          ]} />
        </Section>
      </div>
    </>
  );
}

/** Why it waits, or is not where it should be. */
function Reason({ of: w, command }: { of: Workload; command: string }) {
  if (w.why) return <p class="reason"><Icon of={w.provider ? "off" : "later"} /><span><b>{w.provider ? "Not where it is to be" : "Why it waits"}</b> {sentence(w.why)}</span></p>;
  if (w.provider) return null;
  return <div class="reason"><Icon of="later" /><div><b>It waits</b> Why is not told here. This says more:<Command line={command} /></div></div>;
}

function PolicyOf({ of: w }: { of: Workload }) {
  if (!w.policy) return <span class="muted">no policy</span>;
  return <a class="cut" href={href(["policies", w.policy], { consumer: w.consumer.id, provider: w.provider?.id })} title={plain(w.policy)}>{plain(w.policy)}</a>;
}

/** What the policy that its namespace follows has decided for its consumer. */
function DecisionFor({ w }: { w: Workload }) {
  if (!w.policy) return <p class="muted">Its namespace follows no policy: all providers come into question that are ready.</p>;
  return (
    <Needs kinds={["decisions"]}>{() => {
      const d = store.list("decisions").find((one) => one.consumer.id === w.consumer.id && one.policy === w.policy);
      if (!d) return <p class="muted">It has not decided for this consumer yet.</p>;
      const here = w.provider && d.providers.find((c) => c.id === w.provider!.id);
      return (
        <>
          {here && !here.chosen && <p><State tone="off">It is at {nameOf(w.provider)}, where new pods would not go now.</State></p>}
          <Outlook of={d} />
          <Candidates of={d} at={w.provider} />
        </>
      );
    }}</Needs>
  );
}
