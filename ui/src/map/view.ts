// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Which part of a picture is seen: moving and enlarging an SVG by pointer, wheel and keys. It changes how one element is moved, and draws nothing.

import { useEffect, useMemo, useRef } from "preact/hooks";

const smallest = 0.25;
const largest = 6;

/**
 * What is seen of a picture of a size. It stays as it is when the picture is drawn again. The SVG as a whole is moved within its pane: a part
 * of it would be drawn anew in each frame.
 */
export function useView(width: number, height: number) {
  const pane = useRef<HTMLDivElement>(null);
  const moved = useRef<SVGSVGElement>(null);
  const size = useRef({ width, height });
  size.current = { width, height };
  const view = useMemo(() => {
    const now = { x: 0, y: 0, k: 1 };
    let rests: ReturnType<typeof setTimeout> | undefined;
    const show = () => {
      const { width: w, height: h } = size.current;
      // Some of the picture stays in sight.
      now.x = Math.min(Math.max(now.x, 80 - w * now.k), w - 80);
      now.y = Math.min(Math.max(now.y, 80 - h * now.k), h - 80);
      const picture = moved.current;
      if (!picture) return;
      picture.style.transform = `translate(${now.x}px, ${now.y}px) scale(${now.k})`;
      // While it moves, what is drawn already is moved; once it rests, it is drawn sharply.
      picture.classList.add("moving");
      clearTimeout(rests);
      rests = setTimeout(() => picture.classList.remove("moving"), 200);
    };
    const point = (e: MouseEvent) => {
      const box = pane.current!.getBoundingClientRect();
      return { x: e.clientX - box.left, y: e.clientY - box.top };
    };
    const zoom = (by: number, at = { x: size.current.width / 2, y: size.current.height / 2 }) => {
      const k = Math.min(Math.max(now.k * by, smallest), largest);
      now.x = at.x - ((at.x - now.x) * k) / now.k;
      now.y = at.y - ((at.y - now.y) * k) / now.k;
      now.k = k;
      show();
    };
    const move = (x: number, y: number) => {
      now.x += x;
      now.y += y;
      show();
    };
    const reset = () => {
      Object.assign(now, { x: 0, y: 0, k: 1 });
      show();
    };
    /** Where in the picture the pointer is. */
    const at = (e: MouseEvent) => {
      const p = point(e);
      return { x: (p.x - now.x) / now.k, y: (p.y - now.y) / now.k };
    };
    return { zoom, move, reset, at, point };
  }, []);

  useEffect(() => {
    const seen = pane.current!;
    const ends = new AbortController();
    const listen = { signal: ends.signal };
    let from: { x: number; y: number } | undefined;
    let dragged = false;
    // The wheel alone scrolls the page, unless somebody is at work in the picture.
    seen.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && !e.metaKey && document.activeElement !== seen) return;
      e.preventDefault();
      view.zoom(Math.exp(-Math.min(Math.max(e.deltaY, -100), 100) / 400), view.point(e));
    }, { ...listen, passive: false });
    seen.addEventListener("pointerdown", (e) => {
      dragged = false;
      if (e.button === 0) from = { x: e.clientX, y: e.clientY };
    }, listen);
    seen.addEventListener("pointermove", (e) => {
      if (!from) return;
      if (!(e.buttons & 1)) from = undefined;
      else if (dragged || Math.hypot(e.clientX - from.x, e.clientY - from.y) > 4) {
        if (!dragged) seen.setPointerCapture(e.pointerId);
        dragged = true;
        view.move(e.clientX - from.x, e.clientY - from.y);
        from = { x: e.clientX, y: e.clientY };
      }
    }, listen);
    for (const end of ["pointerup", "pointercancel"] as const) seen.addEventListener(end, () => (from = undefined), listen);
    // Who has dragged does not want to follow the link below the pointer; nor is a link itself dragged.
    seen.addEventListener("click", (e) => {
      if (!dragged) return;
      e.preventDefault();
      e.stopPropagation();
    }, { ...listen, capture: true });
    seen.addEventListener("dragstart", (e) => e.preventDefault(), listen);
    seen.addEventListener("keydown", (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      const steps: Record<string, [number, number]> = { ArrowLeft: [48, 0], ArrowRight: [-48, 0], ArrowUp: [0, 48], ArrowDown: [0, -48] };
      const step = steps[e.key];
      if (e.key === "+" || e.key === "=") view.zoom(1.25);
      else if (e.key === "-") view.zoom(0.8);
      else if (e.key === "0") view.reset();
      else if (step) view.move(...step);
      else return;
      e.preventDefault();
    }, listen);
    return () => ends.abort();
  }, []);
  return { pane, moved, ...view };
}
