// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// What has happened, and who did it.

import type { Activity } from "./api";
import { plain } from "./format";
import { aboutOf, kindOf, newestFirst, placeOf, whoOf, wordsOf } from "./happened";
import { type Column, Empty, Head, Needs, Rows, Section, shownOf, State, When } from "./parts";
import { matches, plainKubectl } from "./place";
import { href } from "./routes";
import { missing, store } from "./server";

type Row = [string, Activity];

const columns: Column<Row>[] = [
  { name: "When", width: 9, by: ([, a]) => a.time, cell: ([, a]) => <When time={a.time} /> },
  { name: "What", width: 10, by: ([, a]) => aboutOf(a), cell: ([, a]) => <About of={a} /> },
  { name: "Who", width: 9, from: "mid", by: ([, a]) => whoOf(a), cell: ([, a]) => <Who of={a} /> },
  { name: "Reason", width: 9, from: "wide", by: ([, a]) => a.reason, cell: ([, a]) => <span class="cut" title={plain(a.reason)}>{plain(a.reason)}</span> },
  { name: "Message", width: 20, cell: ([, a]) => <span class="told"><Marks of={a} /><span class="cut" title={wordsOf(a)}>{wordsOf(a)}</span></span> },
];

/** The line of kubectl that says about the same. */
function command(): string {
  return plainKubectl("get", "events", "--namespace", "default", "--field-selector", "involvedObject.apiVersion=brokering.liqo.io/v1alpha1");
}

function fits(a: Activity): boolean {
  return matches(a.name, aboutOf(a), kindOf(a), a.kind, a.reason, a.message, whoOf(a), a.warning ? "problem" : "");
}

function About({ of: a }: { of: Activity }) {
  const place = placeOf(a);
  const title = `${plain(a.kind)} ${plain(a.name)}`;
  if (!place || missing(place[0]) || !store.all(place[0]).has(place[1])) return <span class="cut" title={title}>{kindOf(a)} {aboutOf(a)}</span>;
  return <a class="cut" href={href(place[2] ?? [place[0], place[1]])} title={title}>{kindOf(a)} {aboutOf(a)}</a>;
}

function Who({ of: a }: { of: Activity }) {
  return <span class={a.by ? "cut" : "cut muted"} title={whoOf(a)}>{whoOf(a)}</span>;
}

/** That it is a problem, and how often it has happened. */
function Marks({ of: a }: { of: Activity }) {
  return (
    <>
      {a.warning && <State tone="problem" title={plain(a.reason)}>problem</State>}
      {a.count > 1 && <span class="chip num" title={a.first && `for the first time ${new Date(a.first).toLocaleString()}`}>{a.count.toLocaleString("en")} times</span>}
    </>
  );
}

export function ActivityScreen() {
  return (
    <Needs title="Activity" kinds={["activity"]}>{() => {
      const all = newestFirst([...store.all("activity")]);
      const rows = all.filter(([, a]) => fits(a));
      return (
        <>
          <Head title="Activity" hint={shownOf(rows.length, all.length, "event") + ", as long as the cluster keeps them: mostly an hour"} command={command()} />
          <Rows all={all.length} none={<Empty command={command()}>Nothing has happened that the cluster remembers. It keeps events for about an hour:</Empty>}
            misfit="Nothing that has happened fits the filter." label="Activity" columns={columns} rows={rows} keyOf={([key]) => key} />
        </>
      );
    }}</Needs>
  );
}

/** The newest of what has happened, in full; nothing of a cluster of which no activity is told. */
export function Happened({ title, most, only }: { title: string; most: number; only?: (a: Activity) => boolean }) {
  if (missing("activity")?.length === 0) return null;
  return (
    <Section title={title}>
      <Needs kinds={["activity"]}>{() => {
        const all = newestFirst([...store.all("activity")].filter(([, a]) => !only || only(a)));
        const shown = all.slice(0, most);
        return (
          <>
            {all.length === 0 && <p class="muted">Nothing that the cluster remembers.</p>}
            <ul class="lines">
              {shown.map(([key, a]) => (
                <li key={key}>
                  <span class="told">{!only && <About of={a} />}<Marks of={a} /></span>
                  <span class="muted told"><Who of={a} /><When time={a.time} /></span>
                  <p>{wordsOf(a)}</p>
                </li>
              ))}
            </ul>
            {all.length > shown.length && <p class="muted"><a href={href(["activity"])}>All activity</a></p>}
          </>
        );
      }}</Needs>
    </Section>
  );
}
