// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// What should be looked at, and how much there is of what.

import { Happened } from "./activity";
import type { Group, Status } from "./api";
import { commandIn, count, plain, resourcesOf } from "./format";
import { Bar, Command, Empty, Head, Icon, Needs, Section, State } from "./parts";
import { kubectl, matches } from "./place";
import { href } from "./routes";
import { me, missing, store } from "./server";
import { LoadedScreen } from "./load";

export function OverviewScreen() {
  return (
    <>
      <Head title="Overview" command={kubectl("status")} />
      <Needs kinds={["status"]}>{() => {
        const status = store.list("status")[0];
        return status ? <Shown status={status} /> : <Empty command={kubectl("status")}>The broker has not looked around yet.</Empty>;
      }}</Needs>
      {me.value && missing("contracts")?.length !== 0 && <LoadedScreen of="Trade" parts={["summary"]} />}
      <Happened title="Last activity" most={8} />
    </>
  );
}

function Shown({ status }: { status: Status }) {
  const next = status.next.filter((finding) => matches(finding.what, finding.do));
  const resources = resourcesOf(status.offered, status.used);
  const groups: [string, Group, string][] = [
    ["Providers", status.providers, "providers"], ["Consumers", status.consumers, "consumers"], ["Policies", status.policies, "policies"],
    ["Provider queries", status.queries, ""],
  ];
  return (
    <>
      <p class={status.healthy ? "verdict ok" : "verdict problem"} role="status"><Icon of={status.healthy ? "ok" : "problem"} />{verdict(status)}</p>
      <div class="columns">
        <Section title="What to look at">
          {status.next.length === 0 && <p class="muted">Nothing.</p>}
          {next.length === 0 && status.next.length > 0 && <p class="muted">Nothing that the filter lets through.</p>}
          <ul class="lines">
            {next.map((finding) => {
              const command = commandIn(finding.do);
              const words = command ? finding.do.slice(0, finding.do.lastIndexOf(command)).replace(/[`(:\s]+$/, "") : finding.do;
              return (
                <li key={finding.what + finding.do}>
                  <State tone={finding.problem ? "problem" : "off"}>{plain(finding.what)}</State>
                  {words && <p>{plain(words)}</p>}
                  {command && <Command line={command} />}
                </li>
              );
            })}
          </ul>
          {status.more ? <p class="muted">and {count(status.more, "more finding")}</p> : null}
        </Section>
        <div>
          <Section title="Capacity">
            {resources.length === 0 && <p class="muted">Nothing is offered, or nothing is known of it.</p>}
            <ul class="bars">{resources.map((name) => <li key={name}><span class="cut" title={plain(name)}>{plain(name)}</span><Bar wide resource={name} of={status} /></li>)}</ul>
          </Section>
          <Section title="Counts">
            <dl class="facts">
              {groups.map(([name, group, at]) => (
                <div key={name}>
                  <dt>{at ? <a href={href([at])}>{name}</a> : name}</dt>
                  <dd>
                    <b class="num">{group.total.toLocaleString("en")}</b>
                    {Object.entries(group.states ?? {}).sort().map(([state, n]) => (
                      <span key={state} class="chip"><span class="num">{n.toLocaleString("en")}</span> {plain(state)}</span>
                    ))}
                  </dd>
                </div>
              ))}
              <div>
                <dt>Decisions</dt>
                <dd>
                  <b class="num">{status.decisions.total.toLocaleString("en")}</b>
                  {status.decisions.empty > 0 && <span class="chip"><span class="num">{status.decisions.empty}</span> chose nobody</span>}
                </dd>
              </div>
              <div><dt>Modes</dt><dd>{status.modes.map(plain).join(", ") || "none"}</dd></div>
            </dl>
          </Section>
        </div>
      </div>
    </>
  );
}

function verdict(status: Status): string {
  const problems = status.next.filter((finding) => finding.problem).length;
  const serves = `${count(status.providers.total, "provider")} for ${count(status.consumers.total, "consumer")}`;
  return status.healthy ? `All is as it should be: ${serves}.` : `${count(problems, "thing")} ${problems === 1 ? "needs" : "need"} somebody: ${serves}.`;
}
