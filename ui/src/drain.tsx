// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// What a drain of a provider would do, before anybody does it.

import { useEffect, useRef, useState } from "preact/hooks";
import type { DrainedPod, DrainPreview, Provider } from "./api";
import { Deeds } from "./deeds";
import { foresee, sentence, type Verdict, verdicts, whereTo } from "./foresight";
import { count, nameOf, plain, titleOf } from "./format";
import { Head, Icon, Named, providerState, Single, State } from "./parts";
import { kubectl, matches } from "./place";
import { href } from "./routes";
import { drainPreview } from "./server";

const icons = { Stays: "off", Later: "later", Moves: "moves" } as const;
const words = { Stays: "would stay", Later: "would move later", Moves: "would move at once" };

/** A preview, why there is none, or neither while it is made; and when it came. */
interface Asked {
  preview?: DrainPreview;
  problem?: string;
  at?: number;
}

function useDrain(id: string, settled?: (said: string) => void): [Asked, () => void] {
  const [asked, set] = useState<Asked>({});
  const last = useRef(0);
  const ask = () => {
    const mine = ++last.current;
    const answer = (of: Asked) => {
      if (mine !== last.current) return;
      set({ ...of, at: Date.now() });
      settled?.(plain(of.preview?.message));
    };
    set({});
    drainPreview(id).then((preview) => answer({ preview }), (error: Error) => answer({ problem: error.message }));
  };
  useEffect(() => {
    ask();
    return () => { last.current = -1; };
  }, [id]);
  return [asked, ask];
}

/** What the dialog shows before a provider is drained. */
export function Foreseen({ provider, settled }: { provider: Provider; settled: (said: string) => void }) {
  const [asked, ask] = useDrain(provider.id, settled);
  return (
    <>
      <Preview of={asked} ask={ask} />
      {asked.preview && <p><a href={href(["providers", provider.id, "drain"])}>See it on a page of its own</a></p>}
    </>
  );
}

export function DrainScreen({ id }: { id: string }) {
  return <Single title="Drain" of="providers" id={id} what="provider">{(p) => <One p={p} />}</Single>;
}

function One({ p }: { p: Provider }) {
  const [asked, ask] = useDrain(p.id);
  const state = providerState(p);
  const drained = p.scheduling === "Drained";
  return (
    <>
      <Head title={<>Drain of <span class="cut" title={titleOf(p)}>{nameOf(p)}</span></>} command={kubectl("drain", p.id, "--dry-run")}
        hint={<><State tone={state.tone}>{state.word}</State> <a href={href(["providers", p.id])}>See the provider</a></>}>
        <Deeds of="providers" cluster={p} at={p.scheduling} deeds={[
          { verb: "Drain", to: "Drained", does: "No new pods come, and those that are there move to other providers." },
          ...(drained ? [{ verb: "Enable", to: "Active", does: "New pods may come again." }] : []),
        ]} />
        <button type="button" disabled={!asked.at} onClick={ask}>Plan again</button>
      </Head>
      {drained && <p class="notice"><Icon of="off" /> It is being drained. This is what becomes of the pods that are there yet.</p>}
      <Preview of={asked} ask={ask} screen fits={(pod) => matches(pod.pod, pod.namespace, nameOf(pod.consumer), pod.verdict, pod.why, whereTo(pod))} />
    </>
  );
}

function Preview({ of: { preview, problem, at }, ask, fits, screen }: {
  of: Asked; ask: () => void; fits?: (pod: DrainedPod) => boolean; screen?: boolean;
}) {
  if (!preview) {
    return (
      <div class="notice" role="status" aria-busy={!problem}>
        <Icon of={problem ? "off" : "later"} />
        <span>{problem ? (SAVED ? problem : `${problem} It can be drained all the same.`) : "Planning what it would do …"}</span>
        {problem && !screen && <button type="button" class="small" onClick={ask}>Ask again</button>}
      </div>
    );
  }
  const { namespaces, more } = foresee(preview, fits);
  const counts: Record<Verdict, number> = { Stays: preview.stays, Later: preview.later, Moves: preview.moves };
  const all = Math.max(preview.stays + preview.later + preview.moves, 1);
  return (
    <div class="preview">
      <p role="status">{sentence(preview.message)}</p>
      <div class="split" aria-hidden="true">
        {verdicts.filter((v) => counts[v] > 0).map((v) => <span key={v} class={v} style={{ width: `${(100 * counts[v]) / all}%` }} />)}
      </div>
      <ul class="split-of">
        {verdicts.map((v) => <li key={v} class={v}><Icon of={icons[v]} /><b class="num">{counts[v].toLocaleString("en")}</b> {words[v]}</li>)}
      </ul>
      {namespaces.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Pods at the provider">
          <table class="wraps">
            <colgroup><col class="pod" /><col class="fate" /><col /></colgroup>
            <thead><tr><th scope="col">Pod</th><th scope="col">Verdict</th><th scope="col">Where to, and why</th></tr></thead>
            {namespaces.map((ns) => (
              <tbody key={ns.key}>
                <tr class="group"><th scope="rowgroup" colSpan={3} title={`at the broker ${plain(ns.key)}`}>
                  {ns.name} <span class="muted">{ns.consumer ? `of ${ns.consumer}` : "of no consumer"} · {count(ns.pods.length, "pod")}</span>
                </th></tr>
                {ns.pods.map((pod) => <Row key={pod.pod} of={pod} />)}
              </tbody>
            ))}
          </table>
        </div>
      )}
      {namespaces.length === 0 && preview.pods?.length > 0 && <p class="muted">No pod fits the filter.</p>}
      {more > 0 && <p class="muted">and {more.toLocaleString("en")} more {more === 1 ? "pod" : "pods"}</p>}
      <p class="muted small">
        {preview.remembers ? "" : "Who planned this has not watched these pods: it takes those that are ready to have served for long. "}
        Planned at {new Date(at!).toLocaleTimeString()}, as if what is placed elsewhere becomes ready there.
      </p>
    </div>
  );
}

function Row({ of: pod }: { of: DrainedPod }) {
  const where = pod.candidates ?? [];
  return (
    <tr>
      <td>{plain(pod.pod)}</td>
      <td><span class={`state ${pod.verdict}`}><Icon of={icons[pod.verdict] ?? "unknown"} /><span>{plain(pod.verdict)}</span></span></td>
      <td>
        {where.length > 0 && <span class="names">{where.map((c) => <Named key={c.id} as="providers" of={c} />)}{pod.moreCandidates ? <span class="muted">and {pod.moreCandidates} more</span> : null}</span>}
        {pod.why && <span class="muted">{sentence(pod.why)}</span>}
      </td>
    </tr>
  );
}
