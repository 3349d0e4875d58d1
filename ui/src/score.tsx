// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Why a policy has decided as it has: the scores and what they are made of, what is better, and how many providers it uses.

import type { ComponentChildren } from "preact";
import type { Better, Candidate, Cluster, Decision, Scaling, Term } from "./api";
import { bandOf, bandWords } from "./band";
import { digits, plain, span } from "./format";
import { Icon, Named, State, When } from "./parts";
import { now } from "./place";

/** How many candidates are explained at once, and how many more where somebody asks for them. */
const most = { chosen: 20, others: 100 };

function valueOf(t: Term): string {
  if (t.value === undefined) return t.unknown ? `unknown: ${plain(t.unknown)}` : "unknown";
  return `${digits(t.value)} ${plain(t.unit)}`.trim();
}

/** The points of a score side by side on a scale to 100, and below it the same as text. */
export function Terms({ of }: { of: Term[] }) {
  const points = (t: Term) => (Number.isFinite(t.points) ? Math.max(t.points, 0) : 0);
  const scale = Math.max(of.reduce((sum, t) => sum + points(t), 0), 100);
  return (
    <>
      <div class="points" aria-hidden="true">{of.map((t, i) => <span key={t.name} class={`term t${i % 6}`} style={{ width: `${(100 * points(t)) / scale}%` }} />)}</div>
      <ul class="terms">
        {of.map((t, i) => (
          <li key={t.name}>
            <span class={`key term t${i % 6}`} aria-hidden="true" />
            <span>{plain(t.name)} <span class={t.value === undefined ? "muted" : "num"}>{valueOf(t)}</span></span>
            <span class="num muted" title={t.weight < 0 ? "less is better" : "more is better"}>weight {t.weight}</span>
            <b class="num">{digits(t.points)} points</b>
          </li>
        ))}
      </ul>
    </>
  );
}

/** What a policy says of one provider. */
export function Reasons({ c }: { c: Candidate }) {
  const terms = c.terms ?? [];
  const told = c.why?.filter((line) => line !== c.excluded && !terms.some((t) => line.startsWith(`${t.name}: `))) ?? [];
  return (
    <>
      <p class="verdict-of">
        {c.chosen ? <State tone="ok">chosen</State> : c.excluded ? <State tone="off">excluded</State> : <b>not chosen</b>}
        {c.score !== undefined && <span class="num">score {digits(c.score)} of 100</span>}
        {c.excluded && <span>{plain(c.excluded)}</span>}
      </p>
      {terms.length > 0 && <Terms of={terms} />}
      {told.length > 0 && <ul class="why">{told.map((line) => <li key={line}>{plain(line)}</li>)}</ul>}
    </>
  );
}

/** The candidates of one decision: those that are chosen, and where the pod is; the others where somebody asks for them. */
export function Candidates({ of, at }: { of: Decision; at?: Cluster | undefined }) {
  const first = of.providers.filter((c) => c.chosen || c.id === at?.id).slice(0, most.chosen);
  const others = of.providers.filter((c) => !first.includes(c));
  const shown = others.slice(0, most.others);
  const excluded = others.filter((c) => c.excluded).length;
  const line = (c: Candidate) => <li key={c.id}><Named as="providers" of={c} />{c.id === at?.id && <span class="chip">it is here</span>}<Reasons c={c} /></li>;
  return (
    <>
      {!of.providers.some((c) => c.chosen) && <p><State tone="problem">No provider is chosen.</State></p>}
      <ul class="lines">{first.map(line)}</ul>
      {others.length > 0 && (
        <details>
          <summary>{others.length.toLocaleString("en")} more{excluded > 0 ? `, ${excluded.toLocaleString("en")} of them excluded` : ""}</summary>
          <ul class="lines">{shown.map(line)}{others.length > shown.length && <li class="muted">and {(others.length - shown.length).toLocaleString("en")} more</li>}</ul>
        </details>
      )}
      {!of.complete && <p class="muted">Not all providers are explained.</p>}
    </>
  );
}

/** What is about to change in a decision, and how many providers it uses by a KPI. */
export function Outlook({ of }: { of: Decision }) {
  return (
    <>
      {of.better?.map((b) => <p key={b.id}><BetterOne of={b} /></p>)}
      {of.scaling && <Band of={of.scaling} />}
    </>
  );
}

function BetterOne({ of: b }: { of: Better }) {
  const due = Date.parse(b.due);
  const takes: ComponentChildren = due > now.value ? <>, and takes its place {<When time={b.due} />} if that lasts</> : ", and takes its place when the broker looks next";
  return <span class="better"><Icon of="moves" /><span><Named as="providers" of={b} /> has been better than a chosen one for {span((now.value - Date.parse(b.since)) / 1000)}{takes}.</span></span>;
}

/** The band in which a KPI is to stay, and where it is. */
export function Band({ of: s }: { of: Scaling }) {
  const { from, to, at } = bandOf(s);
  const limits = s.min !== undefined || s.max !== undefined ? `, ${s.min ?? 0} at least${s.max === undefined ? "" : `, ${s.max} at most`}` : "";
  return (
    <div class="scaling">
      <p>
        <State tone={s.unknown || s.value === undefined ? "unknown" : s.direction ? "off" : "ok"}>{bandWords(s, now.value)}</State>
      </p>
      <div class="band" aria-hidden="true">
        <span class="within" style={{ left: `${from}%`, width: `${Math.max(to - from, 0)}%` }} />
        {at !== undefined && <span class={s.unknown ? "value old" : "value"} style={{ left: `${at}%` }} />}
      </div>
      <p class="band-of num">
        <span>fewer below {digits(s.unoffloadBelow)} {plain(s.unit)}</span>
        <span>{s.value === undefined ? "value unknown" : <><b>{digits(s.value)} {plain(s.unit)}</b>{s.measured && <span class="muted">, <When time={s.measured} /></span>}</>}</span>
        <span>more above {digits(s.offloadAbove)} {plain(s.unit)}</span>
      </p>
      <p class="muted num">Uses {s.count.toLocaleString("en")} {s.groupBy ? `groups by ${plain(s.groupBy)}` : s.count === 1 ? "provider" : "providers"}{limits}.</p>
    </div>
  );
}
