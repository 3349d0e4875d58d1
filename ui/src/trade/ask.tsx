// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Parties, and fields of forms.

import { plain } from "../format";
import type { Party } from "../trade";

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
