// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// The screen of the map: the picture, which can be moved and enlarged, and below it the tables that say all that the picture does. It
// draws what it is given; where that comes from it does not know.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { layOut, memberAt, type Box, type Drawing, type Grouping, type Line } from "./layout";
import { read, total, type Data, type Model, type Node, type Path, type Tunnel } from "./model";
import { plain, trip } from "./text";
import { useView } from "./view";

export interface MapProps extends Data {
  /** Rights that lack, as "list workloads"; the lists for which they lack should be missing too. */
  missing?: readonly string[];
  /** With this line of Liqo there are no direct paths. */
  relayOnly?: boolean;
  /** The key of what is selected, of the address of the page; without it the map keeps it itself. */
  selected?: string;
  onSelect?: (key: string | undefined) => void;
  /** How long ago a time was, in words. */
  ago?: (time: string) => string;
  /** What the tables are narrowed by; without it the map asks for it itself. */
  filter?: string;
}

/** How long what is shown stays at least, in ms, however often the data change. */
const calm = 500;
const rows = 100;

const to = (kind: string, id: string) => `#/${kind}/${encodeURIComponent(id)}`;
const toNode = (n: Node) => to(n.role === "consumer" ? "consumers" : "providers", n.id);
const toPods = (query: Record<string, string | undefined>) =>
  "#/workloads?" + new URLSearchParams(Object.entries(query).filter((e): e is [string, string] => e[1] !== undefined)).toString();
const toSelection = (key: string) => "#/map?" + new URLSearchParams({ selected: key }).toString();

/** The value as it was at most a moment ago: it changes no more often than every so many ms. */
function useCalm<T>(value: T, ms: number): T {
  const [shown, show] = useState(value);
  const latest = useRef(value);
  const last = useRef(0);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  latest.current = value;
  useEffect(() => {
    if (timer.current !== undefined || Object.is(shown, value)) return;
    timer.current = setTimeout(() => {
      timer.current = undefined;
      last.current = Date.now();
      show(latest.current);
    }, Math.max(last.current + ms - Date.now(), 0));
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return shown;
}

export function MapScreen(props: MapProps) {
  const { providers, consumers, links, flows, brokerName } = props;
  const data = useCalm(useMemo(() => ({ providers, consumers, links, flows, brokerName }), [providers, consumers, links, flows, brokerName]), calm);
  const model = useMemo(() => read(data), [data]);
  const [own, setOwn] = useState<string>();
  const selected = props.onSelect ? props.selected : own ?? props.selected;
  const select = props.onSelect ?? setOwn;
  const [chosen, setGrouping] = useState<Grouping>();
  const grouping = chosen ?? (model.providers.length <= 60 ? "none" : model.regions ? "region" : "state");
  const [hovered, hover] = useState<string>();
  const [width, setWidth] = useState(0);
  const frame = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    setWidth(frame.current!.clientWidth); // It is drawn in its first frame.
    const sized = new ResizeObserver((entries) => setWidth(Math.floor(entries[0]!.contentRect.width)));
    sized.observe(frame.current!);
    return () => sized.disconnect();
  }, []);
  const focus = useMemo(() => [selected, hovered].filter((key): key is string => !!key), [selected, hovered]);
  const drawing = useMemo(() => (width > 0 ? layOut(model, { width, grouping, focus }) : undefined), [model, width, grouping, focus]);
  const empty = model.consumers.length + model.providers.length === 0;
  // What is drawn is compared with what was only when it is another picture: the data may change much more often.
  const picture = useMemo(() => drawing && !empty && (
    <Picture {...{ drawing, select, hover, selected }}>
      <Legend relayOnly={props.relayOnly} model={model} tiles={drawing.boxes.some((b) => b.grid)} />
    </Picture>
  ), [drawing, selected, props.relayOnly]);
  const group = drawing?.boxes.find((b) => b.key === selected && b.grid)?.members;
  const members = useMemo(() => group, [model, grouping, selected, width > 0]);
  const tables = useMemo(() => !empty && (
    <Tables {...{ model, members, selected, hover }} filter={props.filter} ago={props.ago} known={links !== undefined} />
  ), [model, members, selected, props.filter]);

  return (
    <div class="map">
      <p class="map-about">
        Paths, pods and round-trip times as the broker knows them. How much traffic there is, it does not know.
        {props.relayOnly && " With Liqo 1.x all traffic goes through the broker: there are no direct paths."}
      </p>
      {props.missing?.map((right) => <p key={right} class="map-missing">You may not {plain(right)}: what follows from it is shown as unknown.</p>)}
      <div class="map-bar">
        <label>Providers{" "}
          <select value={grouping} onChange={(e) => setGrouping(e.currentTarget.value as Grouping)}>
            <option value="none">by name</option>
            <option value="state">by state</option>
            {model.regions && <option value="region">by region</option>}
          </select>
        </label>
        {selected && <button type="button" onClick={() => select(undefined)}>Show all</button>}
      </div>
      <div class="map-frame" ref={frame}>
        {picture}
        {empty && (
          <p class="map-empty">
            {providers && consumers
              ? <>No cluster peers with this broker yet. Next: <code>kubectl liqo-broker join --provider CONTEXT --consumer CONTEXT</code></>
              : "Which clusters there are is not known."}
          </p>
        )}
      </div>
      <Said drawing={drawing} hovered={hovered} model={model} />
      {tables}
    </div>
  );
}

interface PictureProps {
  drawing: Drawing;
  selected?: string;
  select: (key: string | undefined) => void;
  hover: (key: string | undefined) => void;
  children: ComponentChildren;
}

function Picture({ drawing: d, selected, select, hover, children }: PictureProps) {
  const view = useView(d.width, d.height);
  const over = (b: Box) => (e: PointerEvent) => {
    const at = b.grid && view.at(e);
    hover((at && memberAt(b, at.x, at.y)?.key) || b.key);
  };
  const pick = (b: Box) => (e: MouseEvent) => {
    if (!b.grid || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    const at = e.detail > 0 ? view.at(e) : undefined;
    const member = at && memberAt(b, at.x, at.y);
    if (member) location.hash = toNode(member);
    else select(selected === b.key ? undefined : b.key);
  };
  const way = (l: Line) => toPods({ consumer: l.consumer?.id, provider: l.provider?.id, path: l.path === "unknown" ? undefined : l.path });
  const b = d.broker;
  const reachable = d.lines.length <= 60;
  return (
    <>
      <div class="map-pane" ref={view.pane} role="group" aria-label="Map of the federation. The tables below say the same." tabindex={0}
        onPointerLeave={() => hover(undefined)}>
        <svg ref={view.moved} class={d.focused ? "map-picture focused" : "map-picture"} width={d.width} height={d.height}>
          {d.waiting && (
            <a class="pill" href={toPods({ q: "Waiting" })} aria-label={`${d.waiting.text} at the broker`}>
              <rect x={d.waiting.x} y={d.waiting.y} width={d.waiting.w} height={d.waiting.h} rx={13} />
              <text class="sub" x={d.waiting.x + d.waiting.w / 2} y={d.waiting.y + 17} text-anchor="middle">{d.waiting.text}</text>
            </a>
          )}
          {d.headings.map((h) => <text key={h.anchor} class="heading" x={h.x} y={h.y} text-anchor={h.anchor}>{h.text}</text>)}
          {d.boxes.map((box) => (
            <a key={box.key} class={`box ${box.state}${box.on ? " on" : ""}`} href={box.grid ? toSelection(box.key) : toNode(box.members[0]!)} aria-label={box.title}
              onPointerMove={over(box)} onPointerLeave={() => hover(undefined)} onFocus={() => hover(box.key)} onBlur={() => hover(undefined)} onClick={pick(box)}>
              <rect x={box.x} y={box.y} width={box.w} height={box.h} rx={box.h < 36 ? 5 : 10} />
              <Inside box={box} />
            </a>
          ))}
          {d.waiting && <path class="line waits" d={d.waiting.d} stroke-width={2} />}
          {d.lines.map((l) => (
            <a key={l.key} href={way(l)} class={`way ${l.kind}${l.on ? " on" : ""}`} aria-label={l.title} tabindex={reachable ? 0 : -1}>
              <path class="line" d={l.d} stroke-width={l.width} />
            </a>
          ))}
          {d.singles.map((s) => <path key={s.key} class={`line single ${s.kind}`} d={s.d} stroke-width={s.width} />)}
          <rect class="broker" x={b.x} y={b.y} width={b.w} height={b.h} rx={12} />
          <text class="name" x={b.x + b.w / 2} y={b.y + b.h / 2 - 3} text-anchor="middle">{b.name}</text>
          <text class="sub" x={b.x + b.w / 2} y={b.y + b.h / 2 + 15} text-anchor="middle">{b.sub}</text>
          {d.lines.map(({ key, label: t, on }) => t && (
            <text key={key} class={`trip${t.down ? " down" : ""}${on ? " on" : ""}`} x={t.x} y={t.y} text-anchor={t.anchor}>{t.text}</text>
          ))}
          {d.marks.map((m, i) => <rect key={i} class="mark" x={m.x - 2.5} y={m.y - 2.5} width={m.size + 5} height={m.size + 5} rx={2} />)}
        </svg>
      </div>
      <div class="map-foot">
        {children}
        <div class="map-zoom" role="group" aria-label="Size of the map">
          <button type="button" aria-label="Enlarge" title="Enlarge (+)" onClick={() => view.zoom(1.25)}>+</button>
          <button type="button" aria-label="Make smaller" title="Make smaller (-)" onClick={() => view.zoom(0.8)}>−</button>
          <button type="button" title="As at first (0)" onClick={view.reset}>Reset</button>
        </div>
      </div>
    </>
  );
}

const signs = { ok: "M-4 0l3 3 5-6", problem: "M0-5l5.5 9.5h-11zM0-1.5v3", off: "M-2.5-4v8M2.5-4v8", unknown: "M-2.5-2a2.5 2.5 0 1 1 2.5 3v1.2M0 4.2v.6" };

function Inside({ box }: { box: Box }) {
  const low = box.h < 36 && !box.grid;
  const x = box.x + (box.grid ? 10 : 26);
  return (
    <>
      {box.state !== "group" && <path class="sign" d={signs[box.state]} transform={`translate(${box.x + 14} ${box.y + (low ? 10 : box.h / 2 - 9)})`} />}
      <text class="name" x={x} y={box.y + (low ? 14 : box.grid ? 18 : box.h / 2 - 4)}>{box.name}</text>
      {" "}
      {box.sub && (low ? <text class="sub" x={box.x + box.w - 7} y={box.y + 14} text-anchor="end">{box.sub}</text>
        : <text class="sub" x={x} y={box.y + (box.grid ? 35 : box.h / 2 + 13)}>{box.sub}</text>)}
      {box.tiles.map((t) => <path key={t.state} class={`tiles ${t.state}`} d={t.d} fill-rule="evenodd" />)}
    </>
  );
}

const signsOfTiles = [
  ["ok", "M0 1h8v8h-8z", "ready"], ["problem", "M4 0l5 9h-10z", "problem"], ["off", "M0 1h8v8h-8zM2 3v4h4v-4z", "takes none"],
  ["unknown", "M2.5 3.5h3v3h-3z", "state unknown"],
] as const;

function Legend({ relayOnly, model, tiles }: { relayOnly?: boolean; model: Model; tiles: boolean }) {
  const kinds: [string, string][] = [["relay", "through the broker"]];
  if (!relayOnly) kinds.push(["direct", "direct, past it"]);
  kinds.push(["idle", model.counted ? "tunnel, no pods" : "tunnel, pods unknown"], ["down", "tunnel down"], ["unknown", "unknown"]);
  if (model.waiting > 0) kinds.push(["waits", "pods that wait"]);
  return (
    <ul class="map-legend" aria-label="Legend">
      {kinds.map(([kind, words]) => (
        <li key={kind}><svg width="36" height="10" aria-hidden="true"><path class={`line ${kind}`} d="M1 5H35" stroke-width={kind === "idle" ? 1.3 : 3} /></svg>{words}</li>
      ))}
      <li>wider: more pods</li>
      {tiles && signsOfTiles.map(([state, d, words]) => (
        <li key={state}><svg width="12" height="10" viewBox="-1 0 12 10" aria-hidden="true"><path class={`tiles ${state}`} d={d} fill-rule="evenodd" /></svg>{words}</li>
      ))}
    </ul>
  );
}

/** What the pointer or the focus is on, in words. */
function Said({ drawing, hovered, model }: { drawing?: Drawing; hovered?: string; model: Model }) {
  const box = drawing?.boxes.find((b) => b.key === hovered);
  const node = box ? undefined : hovered && [...model.providers, ...model.consumers].find((n) => n.key === hovered);
  const [drawn, all] = [drawing?.singles.length ?? 0, drawing?.allSingles ?? 0];
  const cut = all > drawn ? ` The ${drawn} of ${all.toLocaleString("en")} curves with most pods are drawn.` : "";
  const words = box?.title ?? (node ? `${node.role} ${node.name}, ${node.word}: ${model.counted ? total(node.pods) : "unknown"} pods` : "");
  return <p class="map-said">{words ? words + "." : "Point at a cluster to see its paths. Ctrl and wheel, or + and −, enlarge; drag to move."}{cut}</p>;
}

interface TablesProps {
  model: Model;
  /** The clusters of the group that is selected. */
  members?: Node[];
  selected?: string;
  filter?: string;
  hover: (key: string | undefined) => void;
  ago?: (time: string) => string;
  /** Whether tunnels are known. */
  known: boolean;
}

function Tables({ filter, model, members, selected, hover, ago, known }: TablesProps) {
  const [wanted, want] = useState("");
  const text = (filter ?? wanted).trim().toLowerCase();
  const group = useMemo(() => new Set(members), [members]);
  const shown = (n: Node) => (!selected || n.key === selected || group.has(n)) && (!text || `${n.name} ${n.id} ${n.word} ${n.region ?? ""}`.toLowerCase().includes(text));
  const clusters = [...model.consumers, ...model.providers].filter(shown);
  const odd = model.providers.some((n) => n.pods.unknown > 0);
  const paths: { key: string; p: Model["pairs"][number]; path: Path }[] = [];
  for (const p of model.pairs) {
    if (!shown(p.consumer) && !shown(p.provider)) continue;
    for (const path of ["direct", "relay", "unknown"] as const) {
      if (p.pods[path] > 0 || (path === "direct" && p.tunnel)) paths.push({ key: path + p.key, p, path });
    }
  }
  const number = (value: number) => (model.counted ? value.toLocaleString("en") : "unknown");
  const name = (n: Node) => (
    <a href={toNode(n)} title={plain(n.id)} onFocus={() => hover(n.key)} onBlur={() => hover(undefined)}
      onMouseEnter={() => hover(n.key)} onMouseLeave={() => hover(undefined)}><bdi>{n.name}</bdi></a>
  );
  return (
    <div class="map-tables">
      {filter === undefined && <label>Find in the tables <input type="search" value={wanted} onInput={(e) => want(e.currentTarget.value)} /></label>}
      <Table title="Clusters and their tunnels to the broker"
        heads={["Cluster", "Role", "State", "Pods relayed", "Pods direct", ...(odd ? ["Path unknown"] : []), "Waiting", "Tunnel", "Round trip"]}
        all={clusters} row={(n) => [n.key, [name(n), n.role, n.word, number(n.pods.relay), number(n.pods.direct), ...(odd ? [number(n.pods.unknown)] : []),
          n.role === "consumer" ? number(n.waiting) : "–", known ? n.tunnel.state : "unknown", <Trip tunnel={n.tunnel} ago={ago} />]]} />
      <Table title="Paths between consumers and providers" heads={["Consumer", "Provider", "Path", "Pods", "Ready", "Direct tunnel", "Round trip"]}
        all={paths} row={({ key, p, path }) => [key, [name(p.consumer), name(p.provider), path,
          <a href={toPods({ consumer: p.consumer.id, provider: p.provider.id, path: path === "unknown" ? undefined : path })}>{number(p.pods[path])}</a>,
          number(p.ready[path]), path === "direct" ? p.tunnel?.state ?? "unknown" : "–", path === "direct" ? <Trip tunnel={p.tunnel} ago={ago} /> : "–"]]} />
    </div>
  );
}

function Trip({ tunnel, ago }: { tunnel?: Tunnel; ago?: (time: string) => string }) {
  const took = trip(tunnel?.seconds);
  return took ? <time dateTime={tunnel?.measured} title={tunnel?.measured}>{took}{ago && tunnel?.measured && `, ${ago(tunnel.measured)}`}</time> : <>not measured</>;
}

interface TableProps<T> { title: string; heads: string[]; all: T[]; row: (of: T) => [string, ComponentChildren[]] }

/** Makes the rows that it shows, and no others. */
function Table<T>({ title, heads, all, row }: TableProps<T>) {
  const [most, setMost] = useState(rows);
  return (
    <section>
      <h2>{title} <span class="map-count">{all.length.toLocaleString("en")}</span></h2>
      {all.length === 0 ? <p>None.</p> : (
        <div class="map-scroll" tabindex={0} role="region" aria-label={title}>
          <table>
            <thead><tr>{heads.map((h) => <th key={h} scope="col">{h}</th>)}</tr></thead>
            <tbody>{all.slice(0, most).map(row).map(([key, cells]) => <tr key={key}>
              {cells.map((c, i) => (i === 0 ? <th key={i} scope="row">{c}</th> : <td key={i}>{c}</td>))}
            </tr>)}</tbody>
          </table>
        </div>
      )}
      {all.length > most && (
        <button type="button" onClick={() => setMost(most + rows)}>
          Show {Math.min(rows, all.length - most)} more of {(all.length - most).toLocaleString("en")}
        </button>
      )}
    </section>
  );
}
