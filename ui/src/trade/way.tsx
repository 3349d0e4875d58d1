// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// How far a contract is, as a picture of its states, or as a list where there is no place for one.

import { useEffect, useState } from "preact/hooks";
import { plain } from "../format";
import { State, type Tone } from "../parts";
import type { Contract } from "../trade";
import { box, drawn } from "./machine";
import { track } from "./words";

/** Where the words of the picture can be read. */
const wide = matchMedia("(min-width: 1100px)");

export function Way({ c, tone }: { c: Contract; tone: Tone }) {
  const [picture, setPicture] = useState(wide.matches);
  useEffect(() => {
    const look = () => setPicture(wide.matches);
    wide.addEventListener("change", look);
    return () => wide.removeEventListener("change", look);
  }, []);
  return picture ? <Picture c={c} tone={tone} /> : <List c={c} tone={tone} />;
}

const words = { past: ", was", now: ", is", other: "" };

function Picture({ c, tone }: { c: Contract; tone: Tone }) {
  const { width, height, states, arrows } = drawn(c);
  return (
    <svg class="way machine" viewBox={`0 0 ${width} ${height}`} role="group" aria-label="States">
      <defs>
        {["", "taken"].map((name) => <marker key={name} id={`head${name}`} class={name} viewBox="0 0 6 6" refX="5.500" refY="3" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L6 3L0 6z" /></marker>)}
      </defs>
      {arrows.map(({ d, taken }) => <path key={d} class={taken ? "arrow taken" : "arrow"} d={d} marker-end={taken ? "url(#headtaken)" : "url(#head)"} aria-hidden="true" />)}
      {states.map(({ name, x, y, when }) => (
        <g key={name} class={`${when} ${tone}`} role={when === "other" ? "presentation" : "img"} aria-label={when === "other" ? undefined : name + words[when]} aria-current={when === "now" ? "step" : undefined}>
          <rect x={x} y={y} width={box.width} height={box.height} rx="6" />
          <text x={x + box.width / 2} y={y + box.height / 2} aria-hidden="true">{name}</text>
        </g>
      ))}
    </svg>
  );
}

/** The states that it went through, has, and will have if all goes well. */
function List({ c, tone }: { c: Contract; tone: Tone }) {
  return (
    <ol class="way steps" aria-label="States">
      {track(c).map(({ state, when }) => (
        <li key={state} class={when} aria-current={when === "now" ? "step" : undefined}>
          {when === "now" ? <State tone={tone}>{plain(state)}</State> : plain(state)}<span class="hidden">{when === "past" ? ", was" : when === "next" ? ", then" : ""}</span>
        </li>
      ))}
    </ol>
  );
}
