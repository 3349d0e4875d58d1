// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Screens that are loaded when one is opened: most pages are of brokers, which need none of those of trade, nor those of consumers.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { State } from "./parts";

const screens = signal<typeof import("./loaded") | undefined>(undefined);
const trouble = signal("");

export function LoadedScreen({ parts, of }: { parts: string[]; of: "Trade" | "Own" }) {
  useEffect(() => {
    if (!screens.value) import("./loaded").then((all) => ((screens.value = all), (trouble.value = "")), (error: Error) => (trouble.value = error.message));
  }, [parts.join("/")]);
  const Screen = screens.value?.[of];
  if (Screen) return <Screen parts={parts} />;
  return trouble.value
    ? <p><State tone="problem">The screen was not loaded: {trouble.value}. Open another one, and this one again.</State></p>
    : <p class="notice" aria-busy="true">Loading the screen …</p>;
}
