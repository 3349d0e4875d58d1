// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// What several screens are made of.

import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Cluster, Condition, Consumer, Provider } from "./api";
import { amount, count, nameOf, plain, quantity, type Resources, titleOf, usedOf, usedText, when } from "./format";
import { copy, kubectl, narrow, now, route } from "./place";
import { href } from "./routes";
import { connection, missing, store } from "./server";
import type { Kind, Things } from "./store";

const icons = {
  activity: "M1 8h3l2-5 4 10 2-5h3", ok: "M3 8.5l3.2 3L13 4.5", problem: "M8 3v6M8 12v1", off: "M4 8h8", unknown: "M5.5 5.5a2.5 2.5 0 1 1 3.4 2.4c-.6.3-.9.7-.9 1.6M8 12v1",
  plus: "M8 3.5v9M3.5 8h9", direct: "M2 12C5 4 11 4 14 12", relay: "M1 12h4V6h6v6h4", overview: "M2 2h5v5H2zM9 2h5v5H9zM2 9h5v5H2zM9 9h5v5H9z",
  map: "M3 4h3v3H3zM10 2h3v3h-3zM10 11h3v3h-3zM6 5.5h2l2-2M8 5.5v7h2", providers: "M2 3h12v4H2zM2 9h12v4H2zM4.5 5h.01M4.5 11h.01",
  consumers: "M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2 14c0-3 2.5-4.5 6-4.5s6 1.500 6 4.5",
  later: "M8 2.250a5.750 5.750 0 1 0 0 11.500 5.750 5.750 0 0 0 0-11.500zM8 5v3.250l2 1.500", moves: "M2.500 8h11M9.500 4l4 4-4 4",
  workloads: "M8 1.500l6 3.250v6.500L8 14.5l-6-3.250v-6.500zM2 4.750L8 8l6-3.250M8 8v6.500", policies: "M2 4h12M2 8h12M2 12h12M5 2.500v3M10.500 6.500v3M7 10.500v3",
  market: "M2 6l1-3.500h10L14 6M2 6c0 2 3 2 3 0 0 2 3 2 3 0 0 2 3 2 3 0 0 2 3 2 3 0M3 8v5.500h10V8", contracts: "M4 1.500h6l3 3v10H4zM6.500 7h4M6.500 10h4",
  offers: "M8.500 2H13.500V7L7 13.500 2 8.500zM11 4.500h.01", registries: "M3 3h10v10H3zM3 6.300h10M6.300 6.300V13",
};

export function Icon({ of }: { of: keyof typeof icons }) {
  return <svg class={`icon is-${of}`} viewBox="0 0 16 16" aria-hidden="true"><path d={icons[of]} /></svg>;
}

export type Tone = "ok" | "problem" | "off" | "unknown";

export function State({ tone, icon, children, title }: { tone: Tone; icon?: keyof typeof icons; children: ComponentChildren; title?: string }) {
  return <span class={`state ${tone}`} title={title}><Icon of={icon ?? tone} /><span>{children}</span></span>;
}

export function Path({ of }: { of: string | undefined }) {
  if (of !== "direct" && of !== "relay") return <span class="muted">unknown</span>;
  return <span class={`state path ${of}`}><Icon of={of} /><span>{of}</span></span>;
}

/** A time, seen from now; the exact one is its title. */
export function When({ time }: { time: string | undefined }) {
  if (!time) return <span class="muted">unknown</span>;
  return <time dateTime={time} title={new Date(time).toLocaleString()}>{when(time, now.value)}</time>;
}

export function Named({ of, as }: { of: Cluster | undefined; as: "providers" | "consumers" }) {
  if (!of) return <span class="muted">none</span>;
  if (missing(as)?.length === 0) return <span class="cut" title={titleOf(of)}>{nameOf(of)}</span>; // There is no such screen.
  return <a class="cut" href={href([as, of.id])} title={titleOf(of)}>{nameOf(of)}</a>;
}

/** How much of what is offered is used. What is not known has no bar. */
export function Bar({ resource, of, wide }: { resource: string; of: { offered?: Resources; used?: Resources; free?: Resources }; wide?: boolean }) {
  const offered = amount(of.offered?.[resource]);
  const used = usedOf(resource, of);
  const shown = offered === undefined || used === undefined ? undefined : offered === 0 ? (used > 0 ? 100 : 0) : Math.min((100 * used) / offered, 100);
  const usedAs = used === undefined ? "unknown" : quantity(usedText(resource, of), resource);
  const words = offered === undefined ? "unknown" : `${usedAs} of ${quantity(of.offered?.[resource], resource)}`;
  return (
    <span class={wide ? "bar wide" : "bar"} title={`${resource}: ${words} used`}>
      <span class={shown === undefined ? "track unknown" : "track"} aria-hidden="true">
        {shown !== undefined && <span class={used! > offered! ? "fill over" : "fill"} style={{ width: `${shown}%` }} />}
      </span>
      <span class="num">{words}</span>
    </span>
  );
}

/** All resources, as a sentence. */
export function Amounts({ of }: { of: Resources | undefined }) {
  const entries = Object.entries(of ?? {});
  if (entries.length === 0) return <span class="muted">unknown</span>;
  return <span class="num">{entries.map(([name, value]) => `${plain(name)} ${quantity(value, name)}`).join(", ")}</span>;
}

/** The head of a screen: what it shows, what can be done, and the line of kubectl that says the same. */
export function Head({ title, hint, command, children }: { title: ComponentChildren; hint?: ComponentChildren; command: string; children?: ComponentChildren }) {
  const link = () => copy(location.href, `${location.href}, elsewhere ${kubectl("ui", "--open", location.hash.slice(1) || "/")}`);
  return (
    <header class="head">
      <div class="titles"><h1 tabIndex={-1}>{title}</h1>{hint && <p class="muted">{hint}</p>}</div>
      <div class="tools">
        {children}
        <button type="button" title={command} onClick={() => copy(command)}>Copy command</button>
        <button type="button" onClick={link}>Copy link</button>
      </div>
    </header>
  );
}

export function Command({ line }: { line: string }) {
  return (
    <span class="command">
      <code>{plain(line)}</code>
      <button type="button" class="small" aria-label={`Copy ${plain(line)}`} onClick={() => copy(line)}>Copy</button>
    </span>
  );
}

/** What needs kinds of things: says which rights lack, or that they are not here yet. */
export function Needs({ kinds, title, quiet, children }: { kinds: Kind[]; title?: string; quiet?: boolean; children: () => ComponentChildren }) {
  const head = title && <header class="head"><h1 tabIndex={-1}>{title}</h1></header>;
  const lines = kinds.flatMap((kind) => {
    const rights = missing(kind);
    if (!rights) return [];
    return [rights.length ? `You may not ${rights.map(plain).join(", nor ")}, which ${kind} need.` : `This cluster has no ${kind}.`];
  });
  const reading = connection.value.state === "starting" || connection.value.state === "live" ? "Reading what is there …" : "Nothing was read yet.";
  if (quiet && (lines.length > 0 || !store.synced.value)) return null; // What says so is above it.
  if (lines.length > 0) return <>{head}<p class="notice"><Icon of="off" /> {lines.join(" ")}</p></>;
  if (!store.synced.value) return <>{head}<p class="notice" aria-busy="true">{reading}</p></>;
  return <>{children()}</>;
}

export function Empty({ children, command }: { children: ComponentChildren; command?: string }) {
  return <div class="empty"><p>{children}</p>{command && <Command line={command} />}</div>;
}

export interface Column<T> {
  name: string;
  /** The part of the width that it takes. */
  width: number;
  /** From which width of the page on it is there. */
  from?: "mid" | "wide";
  num?: boolean;
  by?: (of: T) => number | string | undefined;
  cell: (of: T) => ComponentChildren;
}

const rowHeight = 40;
/** As in app.css. */
const widths = { mid: "(min-width: 900px)", wide: "(min-width: 1320px)" };

interface Tabled<T> {
  label: string;
  columns: Column<T>[];
  rows: T[];
  keyOf: (of: T) => string;
  group?: (of: T) => string;
}

/** A table of what fits the filter, or what is said where there is nothing at all, or nothing that fits. */
export function Rows<T>(of: Tabled<T> & { all: number; none: ComponentChildren; misfit: string }) {
  return <>{of.all === 0 ? of.none : of.rows.length === 0 ? <Empty>{of.misfit}</Empty> : <Table {...of} />}</>;
}

/** A table of which only the rows in sight are in the page. Its order is in the address. */
export function Table<T>({ label, columns, rows, group, keyOf }: Tabled<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const look = () => box.current && setView({ top: box.current.scrollTop, height: box.current.clientHeight });
  useLayoutEffect(() => {
    look();
    addEventListener("resize", look);
    return () => removeEventListener("resize", look);
  }, []);

  const sort = route.value.query.sort ?? "";
  const by = columns.find((column) => column.by && column.name === sort.replace(/^-/, ""));
  const lines = useMemo(() => { // Whoever only scrolls sees the same rows.
    const sorted = by ? rows.toSorted((a, b) => compare(by.by!(a), by.by!(b), sort.startsWith("-"))) : rows;
    return group ? [...Map.groupBy(sorted, group)].flatMap(([name, members]) => [`${name} · ${members.length.toLocaleString("en")}`, ...members]) : sorted;
  }, [rows, sort]);

  const span = columns.filter((column) => !column.from || matchMedia(widths[column.from]).matches).length; // More would make columns of their own.
  const first = lines.length < 80 ? 0 : Math.max(Math.min(Math.floor(view.top / rowHeight) - 10, lines.length - 1), 0);
  const end = lines.length < 80 ? lines.length : Math.min(first + Math.ceil(view.height / rowHeight) + 20, lines.length);
  const gap = (rowsOf: number) => rowsOf > 0 && <tr aria-hidden="true" class="gap" style={{ height: `${rowsOf * rowHeight}px` }}><td colSpan={span} /></tr>;
  const classes = (column: Column<T>) => `${column.from ?? ""} ${column.num ? "num" : ""}`;
  return (
    <div class="scroll" ref={box} onScroll={look} tabIndex={0} role="region" aria-label={label}>
      <table aria-rowcount={lines.length + 1}>
        <colgroup>{columns.map((column) => <col key={column.name} class={column.from} style={{ "--share": column.width }} />)}</colgroup>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" class={classes(column)}
                aria-sort={by === column ? (sort.startsWith("-") ? "descending" : "ascending") : undefined}>
                {column.by
                  ? <button type="button" class="plain" onClick={() => narrow({ sort: sort === column.name ? `-${column.name}` : column.name })}>
                      {column.name}<span aria-hidden="true">{by === column ? (sort.startsWith("-") ? " ↓" : " ↑") : ""}</span>
                    </button>
                  : column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {gap(first)}
          {lines.slice(first, end).map((line, i) => typeof line === "string"
            ? <tr key={`group ${line}`} class="group" aria-rowindex={first + i + 2}><th scope="rowgroup" colSpan={span}>{line}</th></tr>
            : <tr key={keyOf(line)} aria-rowindex={first + i + 2}>
                {columns.map((column) => <td key={column.name} class={classes(column)}>{column.cell(line)}</td>)}
              </tr>)}
          {gap(lines.length - end)}
        </tbody>
      </table>
    </div>
  );
}

/** What is not known comes last, whichever way. */
function compare(a: number | string | undefined, b: number | string | undefined, down: boolean): number {
  if (a === undefined || b === undefined) return (a === undefined ? 1 : 0) - (b === undefined ? 1 : 0);
  const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  return down ? -order : order;
}

/** What is said of an object of the broker or of the trade. */
export function Conditions({ of }: { of: (Omit<Condition, "status"> & { status: string })[] | undefined }) {
  if (!of?.length) return <p class="muted">None is known.</p>;
  return (
    <ul class="lines">
      {of.map((c) => (
        <li key={c.type}>
          <State tone={c.status === "True" ? "ok" : c.status === "False" ? "problem" : "unknown"} title={`${plain(c.type)} is ${c.status}`}>{plain(c.type)}</State>
          <span class="muted">{plain(c.reason)}, <When time={c.since} /></span>
          {c.message && <p>{plain(c.message)}</p>}
        </li>
      ))}
    </ul>
  );
}

export function providerState(p: Provider): { tone: Tone; word: string } {
  if (p.unreachableSince) return { tone: "problem", word: "Unreachable" };
  if (p.scheduling !== "Active") return { tone: "off", word: p.scheduling };
  return p.ready ? { tone: "ok", word: "Ready" } : { tone: "problem", word: plain(p.reason) || "Not ready" };
}

export function consumerState(c: Consumer): { tone: Tone; word: string } {
  if (c.scheduling !== "Active") return { tone: "off", word: c.scheduling };
  return c.ready ? { tone: "ok", word: "Ready" } : { tone: "problem", word: plain(c.reason) || "Not ready" };
}

export function Section({ title, children }: { title: ComponentChildren; children: ComponentChildren }) {
  const id = useId();
  return <section aria-labelledby={id}><h2 id={id}>{title}</h2>{children}</section>;
}

/** Words and what they are. */
export function Facts({ of }: { of: [string, ComponentChildren][] }) {
  return <dl class="facts">{of.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}

/** The screen of one thing of a kind, or of that there is none. */
export function Single<K extends Kind>({ title, of, id, what, back = of, children }: {
  title: string; of: K; id: string; what: string; back?: string; children: (one: Things[K]) => ComponentChildren;
}) {
  return (
    <Needs title={title} kinds={[of]}>{() => {
      const one = store.all(of).get(id);
      return one ? children(one) : <Gone what={what} back={back} />;
    }}</Needs>
  );
}

export function Gone({ what, back }: { what: string; back: string }) {
  return <div class="empty"><h1 tabIndex={-1}>There is no such {what}, or not any more.</h1><a href={href([back])}>All {back}</a></div>;
}

export function shownOf(shown: number, all: number, one: string): string {
  return shown === all ? count(all, one) : `${shown.toLocaleString("en")} of ${count(all, one)}`;
}
