// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// The screens of a consumer: its own pods that are at brokers, and what should be there and is not.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Happened } from "../activity";
import type { Status as Found, Workload } from "../api";
import { commandIn, count, nameOf, plain } from "../format";
import { Amounts, type Column, Command, Empty, Facts, Head, Icon, Named, Needs, Path, Rows, Section, shownOf, Single, State, Table, When } from "../parts";
import { kubectl, matches, plainKubectl, route } from "../place";
import { href } from "../routes";
import { me, missing, store } from "../server";
import { columns as ofBroker, Filters, type Narrowed, type Pod, pods, Status } from "../workloads";
import { Summary } from "../trade/selling";
import { draw, type Place, placesOf, type Shape } from "./picture";

export function Screen({ parts: [first, id] }: { parts: string[] }) {
  if (first === "map") return <MapScreen />;
  return first !== "workloads" ? <Overview /> : id ? <Workload key={id} id={id} /> : <Workloads />;
}

const brokers = () => store.list("status")[0]?.brokers ?? [];
const untold = <span class="muted">not told</span>;
const Provider = ({ of: w }: { of: Pick<Workload, "provider"> }) => (w.provider ? <Named as="providers" of={w.provider} /> : untold);

function Overview() {
  return (
    <>
      <Head title="Overview" command={kubectl("where", "-A")} />
      <Needs kinds={["flows"]}>{() => <Verdict places={placesOf(store.list("flows"))} />}</Needs>
      <div class="columns">
        <Section title="What to look at">
          <Needs kinds={["status"]}>{() => <Findings of={store.list("status")[0]?.next ?? []} />}</Needs>
        </Section>
        <Needs kinds={["flows"]} quiet>{() => store.all("flows").size > 0 && <Section title="Where they are"><Places of={placesOf(store.list("flows"))} /></Section>}</Needs>
      </div>
      {missing("contracts")?.length !== 0 && <Summary />}
      <Happened title="Last activity" most={8} />
    </>
  );
}

/** How many pods are where, and are reached how, in a sentence. */
function Verdict({ places }: { places: Place[] }) {
  const sum = (of: (p: Place) => number) => places.reduce((n, p) => n + of(p), 0);
  const [all, direct, relay, unknown, ready] = [sum((p) => p.pods), sum((p) => p.direct), sum((p) => p.relay), sum((p) => p.unknown), sum((p) => p.ready)];
  const problem = store.list("status")[0]?.next.some((finding) => finding.problem) || ready < all;
  const at = brokers().length > 0 ? ` at ${brokers().length === 1 ? nameOf(brokers()[0]!) : count(brokers().length, "broker")}` : missing("status") ? " at brokers" : "";
  const words = all > 0 ? `${count(all, "pod")} of this cluster ${all === 1 ? "is" : "are"}${at}` : at ? `No pod of this cluster is${at}` : "This cluster uses no broker";
  return (
    <>
      <p class={problem ? "verdict problem" : at ? "verdict ok" : "verdict"} role="status"><Icon of={problem ? "problem" : at ? "ok" : "off"} />
        <span>{words}{ready < all ? `, and ${(all - ready).toLocaleString("en")} ${all - ready === 1 ? "is" : "are"} not ready.` : "."}</span></p>
      {all > 0 && (
        <p class="own-counts">
          {([["direct", direct], ["relay", relay], ["", unknown]] as const).map(([path, n]) => (n > 0 || path) && (
            <a key={path} class="chip" href={href(["workloads"], { path })}><b class="num">{n.toLocaleString("en")}</b> <Path of={path} /></a>
          ))}
        </p>
      )}
    </>
  );
}

function Findings({ of }: { of: Found["next"] }) {
  const shown = of.filter((finding) => matches(finding.what, finding.do));
  if (shown.length === 0) return <p class="muted">{of.length === 0 ? "Nothing: what is to run elsewhere does." : "Nothing that the filter lets through."}</p>;
  return (
    <ul class="lines">
      {shown.map((finding) => (
        <li key={finding.what}>
          <State tone={finding.problem ? "problem" : "off"}>{plain(finding.what)}</State>
          {finding.do.split(/; |\. (?=Then: )/).map((part) => {
            const command = commandIn(part);
            const words = command ? part.slice(0, part.lastIndexOf(command)).replace(/[`(:\s]+$/, "") : part;
            return <>{words && <p>{plain(words)}</p>}{command && <Command line={command} />}</>;
          })}
        </li>
      ))}
    </ul>
  );
}

const places: Column<Place>[] = [
  { name: "Provider", width: 10, by: (p) => nameOf(p.provider), cell: (p) => <Provider of={p} /> },
  { name: "Broker", width: 8, from: "mid", by: (p) => nameOf(p.broker), cell: (p) => <Named as="providers" of={p.broker} /> },
  ...(["direct", "relay"] as const).map((path): Column<Place> => ({
    name: path === "direct" ? "Direct" : "Relay", width: 5, num: true, by: (p) => p[path], cell: (p) => <Number of={p} n={p[path]} path={path} />,
  })),
  { name: "Unknown", width: 7, num: true, from: "mid", by: (p) => p.unknown, cell: (p) => p.unknown.toLocaleString("en") },
  { name: "Ready", width: 6, num: true, by: (p) => p.ready, cell: (p) => `${p.ready.toLocaleString("en")} of ${p.pods.toLocaleString("en")}` },
];

function Number({ of: p, n, path }: { of: Place; n: number; path: string }) {
  return n > 0 && p.provider ? <a href={href(["workloads"], { provider: p.provider.id, path })}>{n.toLocaleString("en")}</a> : <>{n.toLocaleString("en")}</>;
}

function Places({ of, whole }: { of: Place[]; whole?: boolean }) {
  const rows = of.filter((p) => matches(nameOf(p.provider), nameOf(p.broker)));
  const columns = places.filter(({ name }) => name === "Broker" ? of.some((p) => p.broker.id !== of[0]!.broker.id) : whole || name !== "Unknown");
  return rows.length === 0 ? <p class="muted">Nowhere.</p> : <Table label="Providers" columns={columns} rows={rows} keyOf={(p) => p.key} />;
}

function MapScreen() {
  return (
    <Needs title="Map" kinds={["flows"]}>{() => {
      const all = placesOf(store.list("flows"));
      return (
        <>
          <Head title="Map" hint={`${count(all.reduce((n, p) => n + p.pods, 0), "pod")} at ${count(brokers().length, "broker")}`} command={kubectl("where", "-A")} />
          {all.length + brokers().length === 0 ? <Empty command={kubectl("diagnose")}>No pod of this cluster is at a broker.</Empty> : <Drawn of={all} />}
        </>
      );
    }}</Needs>
  );
}

function Drawn({ of }: { of: Place[] }) {
  const [width, setWidth] = useState(0);
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const sized = new ResizeObserver((entries) => setWidth(Math.floor(entries[0]!.contentRect.width)));
    sized.observe(frame.current!);
    return () => sized.disconnect();
  }, []);
  const own = plain(me.value?.cluster?.name || me.value?.context) || "this cluster";
  const p = useMemo(() => (width > 0 ? draw(own, brokers(), of, width) : undefined), [width, of, own]);
  return (
    <div class="map">
      <p class="map-about">Paths and pods as this cluster knows them. How much traffic there is, it does not know. The table below says the same.</p>
      <div class="map-frame" ref={frame}>
        {p && (
          <svg class="map-picture" width={p.width} height={p.height} role="group" aria-label="Map of this cluster's pods">
            {p.headings.map((h) => <text key={h.anchor} class="heading" x={h.x} y={20} text-anchor={h.anchor}>{h.text}</text>)}
            {p.lines.map((l) => <path key={l.key} class={`line ${l.kind}`} d={l.d} stroke-width={l.width} />)}
            {p.brokers.map((b) => <g key={b.key}><title>{b.title}</title><rect class="broker" x={b.x} y={b.y} width={b.w} height={b.h} rx={12} /><Inside of={b} middle /></g>)}
            {[p.own, ...p.places].map((b) => (
              <a key={b.key} class="box" href={href(["workloads"], b.query)} aria-label={b.title}><rect x={b.x} y={b.y} width={b.w} height={b.h} rx={10} /><Inside of={b} /></a>
            ))}
          </svg>
        )}
        <div class="map-foot"><ul class="map-legend" aria-label="Legend">
          {([["relay", "through the broker"], ["direct", "direct, past it"], ["unknown", "path unknown"]] as const).map(([kind, words]) => (
            <li key={kind}><svg width="36" height="10" aria-hidden="true"><path class={`line ${kind}`} d="M1 5H35" stroke-width={3} /></svg>{words}</li>
          ))}
          <li>wider: more pods</li>
        </ul></div>
      </div>
      <Section title="Where they are"><Places of={of} whole /></Section>
    </div>
  );
}

function Inside({ of: b, middle }: { of: Shape; middle?: boolean }) {
  const x = middle ? b.x + b.w / 2 : b.x + 10;
  const anchor = middle ? "middle" : "start";
  return <><text class="name" x={x} y={b.y + 20} text-anchor={anchor}>{b.name}</text> <text class="sub" x={x} y={b.y + 37} text-anchor={anchor}>{b.sub}</text></>;
}

const columns: Column<Pod>[] = [
  ...ofBroker.filter((column) => !/Consumer|Provider|Path/.test(column.name)),
  { name: "Provider", width: 10, by: ({ w }) => nameOf(w.provider), cell: ({ w }) => <Provider of={w} /> },
  { name: "Path", width: 7, by: ({ w }) => w.path, cell: ({ w }) => <Path of={w.path} /> },
  { name: "Node", width: 10, from: "mid", by: ({ w }) => w.node, cell: ({ w }) => <span class="cut" title={plain(w.node)}>{plain(w.node)}</span> },
];
const order = ["Pod", "Status", "Provider", "Path", "Node", "Address", "Since"];
columns.sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name));

function Workloads() {
  return (
    <Needs title="Workloads" kinds={["workloads"]}>{() => {
      const only: Narrowed = route.value.query;
      const all = store.all("workloads");
      const rows = pods(only).filter(({ w }) => matches(w.pod, w.namespace, w.status, w.address, w.path, w.node, nameOf(w.provider)));
      return (
        <>
          <Head title="Workloads" hint={shownOf(rows.length, all.size, "pod")} command={kubectl("where", only.namespace ?? "-A")} />
          <Filters of={[...all.values()]} />
          <Rows all={all.size} none={<Empty command="liqoctl offload namespace NAMESPACE">No pod of this cluster is at a broker. Offload a namespace:</Empty>}
            misfit="No pod fits the filters." label="Workloads" columns={columns} rows={rows} keyOf={(p) => p.key} group={(p) => plain(p.w.namespace)} />
        </>
      );
    }}</Needs>
  );
}

function Workload({ id }: { id: string }) {
  return <Single title="Workload" of="workloads" id={id} what="pod">{(w) => <One w={w} />}</Single>;
}

function One({ w }: { w: Workload }) {
  const link = (name: string, what: ComponentChildren) => <li><span class="muted">{name}</span>{what}</li>;
  return (
    <>
      <Head title={<span class="cut" title={plain(w.pod)}>{plain(w.pod)}</span>} command={kubectl("where", w.namespace, "-o", "wide")}
        hint={<Status of={w}>{plain(w.status)}{w.ready ? ", ready" : ", not ready"}</Status>} />
      <ol class="chain" aria-label="Where it is">
        {link("broker", <Named as="providers" of={w.broker} />)}
        {link("provider", <Provider of={w} />)}
        {link("path", <Path of={w.path} />)}
      </ol>
      <div class="columns">
        <Section title="About">
          <Facts of={[
            ["Namespace", <a href={href(["workloads"], { namespace: w.namespace })}>{plain(w.namespace)}</a>],
            ["Node", <span class="cut" title={plain(w.node)}>{plain(w.node)}</span>],
            ["Address", plain(w.address) || <span class="muted">unknown</span>],
            ["So since", <When time={w.since} />],
            ["Requests", <Amounts of={w.requests} />],
          ]} />
        </Section>
        <Section title="Why it is there">
          <p class="muted">Only its broker knows. What has happened to the pod itself:</p>
          <Command line={plainKubectl("describe", "pod", "-n", w.namespace, w.pod)} />
        </Section>
      </div>
    </>
  );
}
