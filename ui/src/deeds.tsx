// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Buttons that change whether a cluster gets anything new, and the dialog that asks before.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Cluster } from "./api";
import { nameOf, titleOf } from "./format";
import { State } from "./parts";
import { copy, kubectl, say } from "./place";
import { refusal, schedule } from "./server";

export interface Deed {
  verb: string;
  to: string;
  /** What it does, for who does not know the word. */
  does: string;
  /** What is shown before it is done. It is not done before settled was called, with what is said then; admission may say the same. */
  before?: (settled: (said: string) => void) => ComponentChildren;
}

/** The buttons that change whether a cluster gets anything new. One that may not be used says why. */
export function Deeds({ of, cluster, at, deeds }: { of: "providers" | "consumers"; cluster: Cluster; at: string; deeds: Deed[] }) {
  const [chosen, choose] = useState<Deed>();
  const id = useId();
  const why = refusal(`update ${of}`);
  return (
    <>
      {deeds.filter((deed) => deed.to !== at).map((deed) => (
        <button type="button" key={deed.verb} aria-disabled={why ? "true" : undefined} aria-describedby={why ? id : undefined} title={why || deed.does}
          onClick={() => (why ? say(why) : choose(deed))}>{deed.verb}</button>
      ))}
      {why && <span id={id} class="muted why">{why}</span>}
      {chosen && <DeedDialog of={of} cluster={cluster} deed={chosen} done={() => choose(undefined)} />}
    </>
  );
}

/** Asks what would happen, shows it, and does it when told so. */
function DeedDialog({ of, cluster, deed, done }: { of: "providers" | "consumers"; cluster: Cluster; deed: Deed; done: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [warnings, setWarnings] = useState<string[]>();
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(true);
  const [seen, setSeen] = useState<string | undefined>(deed.before ? undefined : "");
  const title = useId();
  const attempt = async (task: () => Promise<void>) => {
    setBusy(true);
    setProblem("");
    try {
      await task();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  useEffect(() => {
    dialog.current?.showModal();
    void attempt(async () => setWarnings(await schedule(of, cluster.id, deed.to, true)));
  }, []);
  const act = () => attempt(async () => {
    const said = await schedule(of, cluster.id, deed.to, false);
    say([`${nameOf(cluster)} is ${deed.to}.`, ...said].join(" "));
    done();
    document.querySelector<HTMLElement>("h1")?.focus(); // The button that led here may be gone.
  });
  return (
    <dialog ref={dialog} class={deed.before ? "large" : undefined} aria-labelledby={title} onClose={done}>
      <h2 id={title}>{deed.verb}<span class="cut" title={titleOf(cluster)}>{nameOf(cluster)}?</span></h2>
      <p>{deed.does}</p>
      {deed.before?.(setSeen)}
      <div aria-live="polite">
        {busy && <p class="muted">{warnings ? "Doing it …" : "Trying it, without doing it …"}</p>}
        {warnings && warnings.length > 0 && <ul class="lines">{warnings.filter((line) => line !== seen).map((line) => <li key={line}><State tone="off">{line}</State></li>)}</ul>}
        {warnings && !busy && warnings.length === 0 && !problem && <p class="muted">It was tried: nothing stands against it.</p>}
        {problem && <p><State tone="problem">{problem}</State></p>}
      </div>
      <p class="tools">
        <button type="button" class="main" disabled={busy || !warnings || seen === undefined} onClick={act}>{deed.verb}</button>
        <button type="button" onClick={() => dialog.current?.close()}>Cancel</button>
        <button type="button" onClick={() => copy(kubectl(deed.verb.toLowerCase(), cluster.id))}>Copy command</button>
      </p>
    </dialog>
  );
}
