// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// What somebody does: the button, and the dialog in which it is tried first, and then done.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { State } from "./parts";
import { copy, say } from "./place";

/** A button. Where there is a reason why it may not be used, it says that instead. */
export function Act({ why, does, act, ...rest }: {
  why: string; does?: string | undefined; act: () => void; children: ComponentChildren; class?: string | undefined; "aria-label"?: string; "aria-describedby"?: string | undefined;
}) {
  return <button type="button" aria-disabled={why ? "true" : undefined} title={why || does} onClick={() => (why ? say(why) : act())} {...rest} />;
}

export interface Task {
  verb: string;
  /** What it is about, and what is said of that besides. */
  name: string;
  title?: string;
  does: ComponentChildren;
  /** What is shown before it is done. It is not done before settled was called, with what is said then; admission may say the same. */
  before?: (settled: (said: string) => void) => ComponentChildren;
  /** What is filled in. What is asked for afterwards is tried again. */
  fields?: ComponentChildren;
  /** Tries it, or does it; returns what is said then, and what admission says to it. */
  attempt: (dry: boolean) => Promise<{ said: string; warnings: string[]; shown?: ComponentChildren }>;
  /** Has what was tried count also when it could not be done. */
  again?: boolean;
  command?: string;
  done: (did: boolean) => void;
}

/** Asks what would happen, shows it, and does it when told so. */
export function Dialog({ task }: { task: Task }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const title = useId();
  const [tried, setTried] = useState<{ warnings: string[]; shown?: ComponentChildren }>();
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(!task.fields);
  const [seen, setSeen] = useState(task.before ? undefined : "");
  const changes = useRef(0); // How often something was filled in.
  useEffect(() => {
    dialog.current?.showModal();
    if (!task.fields) void go(true);
  }, []);
  const go = async (dry: boolean) => {
    setBusy(true);
    setProblem("");
    const before = changes.current;
    try {
      const { said, warnings, shown } = await task.attempt(dry);
      if (!dry) {
        say([said, ...warnings].join(" "));
        task.done(true);
        document.querySelector<HTMLElement>("h1")?.focus(); // The button that led here may be gone.
      } else if (before === changes.current) setTried({ warnings, shown });
    } catch (error) {
      if (!task.again) setTried(undefined);
      setProblem(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  const warnings = tried?.warnings.filter((line) => line !== seen);
  return (
    <dialog ref={dialog} class={task.fields || task.before ? "large" : undefined} aria-labelledby={title} onClose={() => task.done(false)}>
      <h2 id={title}>{task.verb}<span class="cut" title={task.title ?? task.name}>{task.name}?</span></h2>
      <p>{task.does}</p>
      <form onSubmit={(event) => (event.preventDefault(), void go(!tried))}>
        {task.before?.(setSeen)}
        {task.fields && <div class="ask" onInput={() => (changes.current++, setTried(undefined))}>{task.fields}</div>}
        <div aria-live="polite">
          {busy && <p class="muted">{tried ? "Doing it …" : "Trying it, without doing it …"}</p>}
          {tried?.shown}
          {tried && tried.warnings.length > 0 && <ul class="lines">{warnings!.map((line) => <li key={line}><State tone="off">{line}</State></li>)}</ul>}
          {tried && !busy && !problem && tried.warnings.length === 0 && <p class="muted">It was tried: nothing stands against it.</p>}
          {problem && <p><State tone="problem">{problem}</State></p>}
        </div>
        <p class="tools">
          {task.fields && !tried
            ? <button type="submit" class="main" disabled={busy}>Try it</button>
            : <button type="submit" class="main" disabled={busy || !tried || seen === undefined}>{task.verb}</button>}
          <button type="button" onClick={() => dialog.current?.close()}>Cancel</button>
          {task.command && <button type="button" onClick={() => copy(task.command!)}>Copy command</button>}
        </p>
      </form>
    </dialog>
  );
}
