// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// The pods of consumers.

import type { Cluster, Decision, Workload } from "./api";
import { nameOf, plain, titleOf } from "./format";
import { type Column, Empty, Facts, Gone, Head, Named, Needs, Path, Section, shownOf, State, Table, type Tone, When } from "./parts";
import { kubectl, matches, narrow, route } from "./place";
import { Candidates } from "./policies";
import { href } from "./routes";
import { store } from "./server";

/** A workload with its key in the stream. */
interface Pod {
  key: string;
  w: Workload;
}

function tone(w: Workload): Tone {
  if (w.ready) return "ok";
  return w.status === "Succeeded" || w.status === "Terminating" ? "off" : w.status === "Waiting" || w.status === "Pending" ? "unknown" : "problem";
}

const columns: Column<Pod>[] = [
  { name: "Pod", width: 12, by: ({ w }) => plain(w.pod), cell: ({ key, w }) => <a class="cut" href={href(["workloads", key])} title={plain(w.pod)}>{plain(w.pod)}</a> },
  { name: "Status", width: 9, by: ({ w }) => w.status, cell: ({ w }) => <State tone={tone(w)}>{w.status === "Running" && !w.ready ? "Not ready" : plain(w.status)}</State> },
  { name: "Provider", width: 10, by: ({ w }) => nameOf(w.provider), cell: ({ w }) => <Named as="providers" of={w.provider} /> },
  { name: "Path", width: 7, by: ({ w }) => w.path, cell: ({ w }) => <Path of={w.path} /> },
  { name: "Consumer", width: 10, from: "mid", by: ({ w }) => nameOf(w.consumer), cell: ({ w }) => <Named as="consumers" of={w.consumer} /> },
  { name: "Address", width: 8, from: "wide", by: ({ w }) => w.address, cell: ({ w }) => plain(w.address) || <span class="muted">unknown</span> },
  { name: "Since", width: 6, from: "wide", by: ({ w }) => w.since, cell: ({ w }) => <When time={w.since} /> },
];

type Narrowed = Partial<Record<"consumer" | "provider" | "path" | "namespace", string>>;

function pods(only: Narrowed): Pod[] {
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
      const rows = pods(only).filter(({ w }) => matches(w.pod, w.namespace, w.status, w.address, w.path, nameOf(w.consumer), nameOf(w.provider)));
      const list = [...all.values()];
      return (
        <>
          <Head title="Workloads" hint={shownOf(rows.length, all.size, "pod")} command={kubectl("where", ...(only.namespace ? [only.namespace] : []))} />
          <div class="filters">
            <Choice name="consumer" options={clusters(list.map((w) => w.consumer))} />
            <Choice name="provider" options={clusters(list.flatMap((w) => w.provider ?? []))} />
            <Choice name="namespace" options={[...new Set(list.map((w) => w.namespace))].sort().map((name) => [name, plain(name)])} />
            <Choice name="path" options={[["direct", "direct"], ["relay", "relay"]]} />
          </div>
          {all.size === 0
            ? <Empty command="kubectl label namespace NAMESPACE liqo.io/scheduling-enabled=true">No consumer runs pods here. On a consumer, offload a namespace:</Empty>
            : rows.length === 0 ? <Empty>No pod fits the filters.</Empty>
            : <Table label="Workloads" columns={columns} rows={rows} keyOf={(p) => p.key} group={(p) => plain(p.w.namespace)} />}
        </>
      );
    }}</Needs>
  );
}

function clusters(of: Cluster[]): [string, string][] {
  return [...new Map(of.map((c) => [c.id, nameOf(c)]))].sort((a, b) => (a[1] < b[1] ? -1 : 1));
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

export function WorkloadScreen({ id }: { id: string }) {
  return (
    <Needs title="Workload" kinds={["workloads"]}>{() => {
      const w = store.all("workloads").get(id);
      return w ? <One w={w} /> : <Gone what="pod" back="workloads" />;
    }}</Needs>
  );
}

function One({ w }: { w: Workload }) {
  return (
    <>
      <Head title={<span class="cut" title={plain(w.pod)}>{plain(w.pod)}</span>} command={kubectl("explain", `${w.brokerNamespace}/${w.pod}`)}
        hint={<State tone={tone(w)}>{plain(w.status)}{w.ready ? ", ready" : ", not ready"}</State>} />
      <ol class="chain" aria-label="Where it is">
        <li><span class="muted">consumer</span><Named as="consumers" of={w.consumer} /></li>
        <li><span class="muted">path</span><Path of={w.path} /></li>
        <li><span class="muted">provider</span><Named as="providers" of={w.provider} /></li>
      </ol>
      <div class="columns">
        <Section title="Decisions for its consumer">
          <Needs kinds={["decisions"]}>{() => {
            const all = store.list("decisions").filter((d) => d.consumer.id === w.consumer.id);
            return all.length === 0
              ? <p class="muted">No policy has decided for it: all providers that are ready come into question.</p>
              : <>{all.map((d) => <DecisionFor key={d.policy} d={d} at={w.provider} />)}</>;
          }}</Needs>
        </Section>
        <Section title="About">
          <Facts of={[
            ["Namespace", <a href={href(["workloads"], { namespace: w.namespace })}>{plain(w.namespace)}</a>],
            ["At the broker", plain(w.brokerNamespace)],
            ["Address from the broker", plain(w.address) || <span class="muted">unknown</span>],
            ["Bound", <When time={w.since} />],
            ["Consumer's ID", <span class="cut" title={titleOf(w.consumer)}>{plain(w.consumer.id)}</span>],
          ]} />
        </Section>
      </div>
    </>
  );
}

function DecisionFor({ d, at }: { d: Decision; at: Cluster | undefined }) {
  const chosen = at && d.providers.find((c) => c.id === at.id);
  return (
    <div>
      <h3><a href={href(["policies", d.policy])}>{plain(d.policy)}</a></h3>
      {chosen && !chosen.chosen && <p><State tone="off">It is at {nameOf(at)}, where new pods would not go now.</State></p>}
      <Candidates of={d} at={at?.id} />
    </div>
  );
}
