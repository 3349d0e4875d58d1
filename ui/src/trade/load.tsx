// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// The screens of trade, which are loaded when one is opened: most pages are of brokers, which need none of them.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { State } from "../parts";

const screens = signal<typeof import("./screens") | undefined>(undefined);
const trouble = signal("");

export function TradeScreen({ parts }: { parts: string[] }) {
  useEffect(() => {
    if (!screens.value) import("./screens").then((all) => ((screens.value = all), (trouble.value = "")), (error: Error) => (trouble.value = error.message));
  }, [parts.join("/")]);
  const all = screens.value;
  if (all) return <all.Screen parts={parts} />;
  return trouble.value
    ? <p><State tone="problem">The screen was not loaded: {trouble.value}. Open another one, and this one again.</State></p>
    : <p class="notice" aria-busy="true">Loading the screen …</p>;
}
