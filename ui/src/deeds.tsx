// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Buttons that change whether a cluster gets anything new.

import { useId, useState } from "preact/hooks";
import type { Cluster } from "./api";
import { Act, Dialog, type Task } from "./dialog";
import { nameOf, titleOf } from "./format";
import { kubectl } from "./place";
import { refusal, schedule } from "./server";

/** What it does is said for who does not know the word. */
export interface Deed extends Pick<Task, "verb" | "before"> {
  to: string;
  does: string;
}

/** The buttons that change whether a cluster gets anything new. One that may not be used says why. */
export function Deeds({ of, cluster, at, deeds }: { of: "providers" | "consumers"; cluster: Cluster; at: string; deeds: Deed[] }) {
  const [chosen, choose] = useState<Deed>();
  const id = useId();
  const why = refusal(`update ${of}`);
  return (
    <>
      {deeds.filter((deed) => deed.to !== at).map((deed) => (
        <Act key={deed.verb} why={why} aria-describedby={why ? id : undefined} does={deed.does} act={() => choose(deed)}>{deed.verb}</Act>
      ))}
      {why && <span id={id} class="muted why">{why}</span>}
      {chosen && <Dialog task={{
        ...chosen, name: nameOf(cluster), title: titleOf(cluster), again: true,
        command: kubectl(chosen.verb.toLowerCase(), cluster.id), done: () => choose(undefined),
        attempt: async (dry) => ({ said: `${nameOf(cluster)} is ${chosen.to}.`, warnings: await schedule(of, cluster.id, chosen.to, dry) }),
      }} />}
    </>
  );
}
