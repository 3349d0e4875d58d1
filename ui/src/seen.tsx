// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// How available a provider was over time, as pictures and as numbers.

import { plain, span } from "./format";
import { draw, percent, picture, type Ring, ringsOf, times } from "./history";
import { Section } from "./parts";

/** The windows in which a provider was watched; nothing where the server does not tell of them. */
export function Seen({ of }: { of: { history?: unknown } }) {
  if (of.history === undefined) return null;
  const rings = ringsOf(of.history);
  return (
    <Section title="Availability">
      {rings.length === 0 ? <p class="muted">Nobody has watched it yet.</p> : (
        <>
          <ul class="rings">{rings.map((ring) => <li key={ring.name}><Picture of={ring} /></li>)}</ul>
          <p class="muted small">Of the time that the broker watched; the latest is on the right. Dots: not watched.</p>
          <details>
            <summary>As numbers</summary>
            <div class="scroll" tabIndex={0} role="region" aria-label="Availability as numbers">
              <table>
                <thead><tr><th scope="col">Watched time</th><th scope="col" class="num">Available</th></tr></thead>
                {rings.map((ring) => <Numbers key={ring.name} of={ring} />)}
              </table>
            </div>
          </details>
        </>
      )}
    </Section>
  );
}

function Picture({ of: ring }: { of: Ring }) {
  const { width, up, down, gap } = draw(ring);
  const gaps = ring.slots.filter((slot) => slot.share === undefined).length;
  const words = `${plain(ring.name)}: available for ${percent(ring.share)} of ${span(ring.watched)}` + (gaps > 0 ? `, not watched in ${gaps} of ${ring.slots.length} slots` : "");
  return (
    <>
      <span class="muted">{ring.length}</span>
      <svg class="ring" viewBox={`0 0 ${width} ${picture.height}`} preserveAspectRatio="none" role="img" aria-label={words}>
        <path class="up" d={up} /><path class="down" d={down} /><path class="gap" d={gap} />
      </svg>
      <b class="num" title={words}>{percent(ring.share)}</b>
    </>
  );
}

function Numbers({ of: ring }: { of: Ring }) {
  const when = times(ring);
  return (
    <tbody>
      <tr class="group"><th scope="rowgroup" colSpan={2}>{plain(ring.name)}</th></tr>
      {ring.slots.map((slot, i) => (
        <tr key={i}>
          <th scope="row">{when[i]}</th>
          <td class={slot.share === undefined ? "num muted" : "num"}>{slot.share === undefined ? "unknown" : percent(slot.share)}</td>
        </tr>
      )).toReversed()}
    </tbody>
  );
}
