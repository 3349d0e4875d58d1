// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// The dialog in which something is tried first, and then done.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { plain } from "../format";
import { State } from "../parts";
import { copy, say } from "../place";
import type { Party } from "../trade";

export interface Task {
  verb: string;
  /** What it is about. */
  name: string;
  does: string;
  /** What is filled in. What is asked for afterwards is tried again. */
  fields?: ComponentChildren;
  /** Tries it, or does it; returns what is said then, and what admission says to it. */
  attempt: (dry: boolean) => Promise<{ said: string; warnings: string[]; shown?: ComponentChildren }>;
  command: string;
  done: (did: boolean) => void;
}

/** Asks what would happen, shows it, and does it when told so. */
export function Dialog({ task }: { task: Task }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const title = useId();
  const [tried, setTried] = useState<{ warnings: string[]; shown?: ComponentChildren }>();
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    dialog.current?.showModal();
    if (!task.fields) void go(true);
  }, []);
  const go = async (dry: boolean) => {
    setBusy(true);
    setProblem("");
    try {
      const { said, warnings, shown } = await task.attempt(dry);
      if (dry) setTried({ warnings, shown });
      else {
        say([said, ...warnings].join(" "));
        task.done(true);
        document.querySelector<HTMLElement>("h1")?.focus();
      }
    } catch (error) {
      setTried(undefined);
      setProblem(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  return (
    <dialog ref={dialog} class={task.fields ? "large" : undefined} aria-labelledby={title} onClose={() => task.done(false)}>
      <h2 id={title}>{task.verb}<span class="cut" title={task.name}>{task.name}?</span></h2>
      <p>{task.does}</p>
      <form onSubmit={(event) => (event.preventDefault(), void go(!tried))}>
        {task.fields && <div class="ask" onInput={() => setTried(undefined)}>{task.fields}</div>}
        <div aria-live="polite">
          {busy && <p class="muted">{tried ? "Doing it …" : "Trying it, without doing it …"}</p>}
          {tried?.shown}
          {tried && tried.warnings.length > 0 && <ul class="lines">{tried.warnings.map((line) => <li key={line}><State tone="off">{line}</State></li>)}</ul>}
          {tried && !busy && tried.warnings.length === 0 && <p class="muted">It was tried: nothing stands against it.</p>}
          {problem && <p><State tone="problem">{problem}</State></p>}
        </div>
        <p class="tools">
          {task.fields && !tried && <button type="submit" class="main" disabled={busy}>Try it</button>}
          {(tried || !task.fields) && <button type="submit" class="main" disabled={busy || !tried}>{task.verb}</button>}
          <button type="button" onClick={() => dialog.current?.close()}>Cancel</button>
          <button type="button" onClick={() => copy(task.command)}>Copy command</button>
        </p>
      </form>
    </dialog>
  );
}

/** A party, never by its name alone: that is what gives way where there is no room for both. */
export function Who({ of }: { of: Party }) {
  return <span class="party" title={plain(of.id)}><span class="cut">{plain(of.name)}</span> <code class="muted">{plain(of.short)}</code></span>;
}

/** A field of a form, with what it takes. */
export function Field({ name, value, set, hint, required }: {
  name: string; value: string; set: (to: string) => void; hint?: string; required?: boolean;
}) {
  return (
    <label class={hint && hint.length > 16 ? "long" : undefined}>{name}
      <input value={value} placeholder={hint} required={required} autocomplete="off" spellcheck={false}
        onInput={(event) => set(event.currentTarget.value)} />
    </label>
  );
}
