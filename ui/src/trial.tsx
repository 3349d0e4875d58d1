// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// A policy as a text, beside what it would choose now, and applied when told so.

import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Cluster, PolicyTrial, TriedDecision } from "./api";
import { Act, Dialog } from "./dialog";
import { count, plain } from "./format";
import { Head, Icon, Named, Needs, Section, State } from "./parts";
import { copy, kubectl, plainKubectl } from "./place";
import { href } from "./routes";
import { applyPolicy, me, policyManifest, Refusal, refusal, tryPolicy } from "./server";

/** How long nobody types before it is tried, in ms. */
const pause = 500;

const example = `# The cheapest, half as important how near. See deploy/examples/placementpolicies for others.
apiVersion: brokering.liqo.io/v1alpha1
kind: PlacementPolicy
metadata:
  name: cheapest
spec:
  appliesTo:
    # Default for all namespaces, Consumers, Namespaces, or OnRequest for those whose pods ask for it.
    scope: OnRequest
  # CEL expressions that a provider must fulfil, over id, name, labels and kpi.
  # filters:
  #   - kpi.roundTripTime < 50
  weights:
    priceCPU: -10
    priceMemory: -10
    roundTripTime: -5
  maxProviders: 1
`;

/** The line that a fault is in; 0 if it does not say. */
export function lineOf(fault: string): number {
  return Number(/^line (\d+)/.exec(fault)?.[1] ?? 0);
}

interface Asked {
  text: string;
  trial?: PolicyTrial;
  faults: string[];
}

export function TrialScreen({ id }: { id?: string }) {
  return <Needs title={id ? "Edit a policy" : "New policy"} kinds={["policies"]}>{() => <Editor {...(id ? { id } : {})} />}</Needs>;
}

function Editor({ id }: { id?: string }) {
  const [text, setText] = useState(id ? "" : example);
  const [waits, setWaits] = useState(Boolean(id)); // What is typed before the policy is here would be lost.
  const [last, setLast] = useState<Asked>();
  const [trouble, setTrouble] = useState("");
  useEffect(() => {
    if (id) policyManifest(id).then(setText).finally(() => setWaits(false)).catch((error: Error) => setTrouble(`The policy cannot be read as a text: ${error.message}`));
  }, []);
  useEffect(() => {
    if (!text.trim()) return;
    const gone = new AbortController();
    const later = setTimeout(() => {
      tryPolicy(text, gone.signal).then(
        (trial) => (setTrouble(""), setLast({ text, trial, faults: [] })),
        (error: Error) => {
          if (gone.signal.aborted) return;
          if (error instanceof Refusal && error.status === 422) (setTrouble(""), setLast({ text, faults: error.faults }));
          else setTrouble(error.message);
        });
    }, pause);
    return () => (clearTimeout(later), gone.abort());
  }, [text]);
  const current = last?.text === text;
  const good = current && last.trial ? last.trial : undefined;
  return (
    <>
      <Head title={id ? <>Edit <span class="cut" title={plain(id)}>{plain(id)}</span></> : "New policy"} hint="What it would choose now is shown as you write. Nothing is changed before you apply it."
        command={kubectl("policy", "check", "FILE")}>
        <Apply text={text} trial={good} />
        <button type="button" onClick={() => copy(plainKubectl("apply", "-f", "FILE"))}>Copy apply command</button>
      </Head>
      <div class="columns trial">
        <Section title="Policy"><Text text={text} set={setText} faults={current ? last.faults : []} waits={waits} /></Section>
        <Section title="What it would choose now">
          <div aria-live="polite" aria-busy={!current} class={current ? "" : "old"}>
            {!current && !trouble && <p class="muted">Asking …</p>}
            {trouble && <p><State tone="problem">{plain(trouble)}</State></p>}
            {last?.trial && <Outcome of={last.trial} />}
            {last && !last.trial && <p class="muted">Nothing, as long as the text has faults.</p>}
          </div>
        </Section>
      </div>
    </>
  );
}

/** The text, and what is wrong with it: each fault leads to its line. Tab leaves it. */
function Text({ text, set, faults, waits }: { text: string; set: (text: string) => void; faults: string[]; waits: boolean }) {
  const area = useRef<HTMLTextAreaElement>(null);
  const id = useId();
  const show = (line: number) => {
    const lines = text.split("\n");
    const from = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    area.current?.focus();
    area.current?.setSelectionRange(from, from + (lines[line - 1]?.length ?? 0));
  };
  return (
    <>
      <textarea ref={area} aria-label="Policy as YAML" aria-invalid={faults.length > 0} aria-describedby={id} spellcheck={false} autocomplete="off" wrap="off" rows={24} readOnly={waits} value={text}
        onInput={(event) => set(event.currentTarget.value)} />
      <div id={id} role="status">{faults.length > 0 && <ul class="lines">
        {faults.map((fault) => (
          <li key={fault}>
            <State tone="problem">{fault}</State>
            {lineOf(fault) > 0 && <>
              <pre><code>{text.split("\n")[lineOf(fault) - 1] ?? ""}</code></pre>
              <button type="button" class="small" onClick={() => show(lineOf(fault))}>Show line {lineOf(fault)}</button>
            </>}
          </li>
        ))}
      </ul>}</div>
    </>
  );
}

function Outcome({ of }: { of: PolicyTrial }) {
  return (
    <>
      <p>{of.exists ? <>It changes <b>{plain(of.policy)}</b>.</> : <>It is new: <b>{plain(of.policy)}</b>.</>}</p>
      {of.problems?.map((line) => <p key={line}><State tone="problem">{plain(line)}</State></p>)}
      <ul class="lines">{of.consumers.map((one) => <Tried key={one.decision.consumer.id} of={one} />)}</ul>
      {of.more ? <p class="muted">and {count(of.more, "further consumer")}</p> : null}
      {of.dropped?.length ? <p>It would decide no more for {of.dropped.map((c) => <span key={c.id}><Named as="consumers" of={c} /> </span>)}{of.moreDropped ? `and ${of.moreDropped} more` : ""}</p> : null}
      {of.notes?.map((line) => <p key={line} class="muted">{plain(line)}</p>)}
    </>
  );
}

/** What would be decided for one consumer: each provider with a word for what becomes of it. */
function Tried({ of }: { of: TriedDecision }) {
  const { consumer, providers } = of.decision;
  const comes = new Set(of.in?.map((c) => c.id));
  const stay = providers.filter((c) => c.chosen && !comes.has(c.id));
  const today = [...(of.today ?? []).map(plain), ...(of.free ? ["no policy"] : [])].join(", ");
  return (
    <li>
      {consumer.id ? <Named as="consumers" of={consumer} /> : <b>Any consumer, while it applies to none</b>}
      {today && <span class="muted">today: {today}{of.namespaces === undefined ? "" : `; ${count(of.namespaces, "namespace")} would follow it`}</span>}
      {of.problem && <p><State tone="problem">{plain(of.problem)}</State></p>}
      <ul class="changes">
        {of.in?.map((c) => <Change key={c.id} word="comes in" icon="plus" of={c} />)}
        {of.moreIn ? <li class="muted">{of.moreIn} more come in</li> : null}
        {of.out?.map((c) => <Change key={c.id} word="goes out" icon="off" of={c} />)}
        {of.moreOut ? <li class="muted">{of.moreOut} more go out</li> : null}
        {stay.map((c) => <Change key={c.id} word={consumer.id ? "stays" : "chosen"} icon="ok" of={c} />)}
      </ul>
      {of.podsOut ? <p><State tone="off">{count(of.podsOut, "pod")} on providers that go out</State></p> : null}
    </li>
  );
}

function Change({ word, icon, of }: { word: string; icon: "ok" | "off" | "plus"; of: Cluster }) {
  return <li><Icon of={icon} /> <b>{word}</b> <Named as="providers" of={of} /></li>;
}

/** The button that applies the text, where the server can: a hosted one leaves that to kubectl. */
function Apply({ text, trial }: { text: string; trial: PolicyTrial | undefined }) {
  const [open, setOpen] = useState(false);
  const [never, setNever] = useState(me.value?.context === undefined);
  if (never) return null;
  const pods = trial?.consumers.reduce((sum, one) => sum + (one.podsOut ?? 0), 0) ?? 0;
  const why = refusal("update placementpolicies") || (trial ? "" : "The text was not tried yet, or has faults.");
  return (
    <>
      <Act why={why} does="Try it on the API server, and then apply it." class="main" act={() => setOpen(true)}>Apply</Act>
      {open && trial && <Dialog task={{
        verb: "Apply", name: plain(trial.policy), again: true,
        does: <>{trial.exists ? "It takes the place of the policy of this name." : "It is a new policy."} {pods > 0 && `${count(pods, "pod")} on providers that go out would move.`}</>,
        attempt: async (dry) => {
          try {
            return { said: `${plain(trial.policy)} is applied.`, warnings: await applyPolicy(trial.policy, text, dry) };
          } catch (error) {
            if (error instanceof Refusal && (error.status === 404 || error.status === 405)) setNever(true);
            throw error;
          }
        },
        done: (did) => {
          setOpen(false);
          if (did) location.hash = href(["policies", trial.policy]).slice(1);
        },
      }} />}
    </>
  );
}
