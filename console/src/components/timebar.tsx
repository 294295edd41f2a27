// Time bar: selects the visible part of the run and shows its events.
import { useRef, useState } from "preact/hooks";
import { branches } from "../api/live";
import type { Mark } from "../api/types";
import { MARKS, linkTo, linkedTime, marks, showRange, shownRange, wholeRange } from "../timeline";
import { dateTime, span } from "../text";

const LAST: readonly [string, number][] = [["1 h", 3600], ["6 h", 6 * 3600], ["1 d", 86400], ["7 d", 7 * 86400]];
const SIDE_BY_SIDE = 60;
const LISTED = 12; // of a group's marks

/** Groups marks that would overlap. */
function grouped(found: readonly Mark[], range: { from: number; to: number }): Mark[][] {
  const out: Mark[][] = [];
  const width = (range.to - range.from) / SIDE_BY_SIDE;
  for (const mark of found) {
    if (mark.at < range.from || mark.at > range.to) continue;
    const last = out[out.length - 1];
    if (last && mark.at - (last[0] as Mark).at < width) last.push(mark);
    else out.push([mark]);
  }
  return out;
}

export function TimeBar() {
  const all = wholeRange.value;
  const lane = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<{ a: number; b: number } | null>(null);
  if (!all) return null;
  const range = shownRange.value ?? all;
  const whole = Math.max(all.to - all.from, 1);
  const share = (t: number) => Math.min(1, Math.max(0, (t - all.from) / whole)) * 100;
  const at = (event: PointerEvent) => {
    const box = lane.current?.getBoundingClientRect();
    return box ? all.from + Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * whole : all.from;
  };
  const end = () => {
    if (drag && Math.abs(drag.b - drag.a) > whole / 200) showRange({ from: Math.min(drag.a, drag.b), to: Math.max(drag.a, drag.b) });
    setDrag(null);
  };
  const move = (by: number) => {
    const width = range.to - range.from;
    const from = Math.min(Math.max(range.from + by * width, all.from), all.to - width);
    showRange({ from, to: from + width });
  };
  const zoom = (factor: number) => {
    const middle = (range.from + range.to) / 2, half = ((range.to - range.from) * factor) / 2;
    if (half * 2 >= whole) showRange(null);
    else showRange({ from: Math.max(middle - half, all.from), to: Math.min(middle + half, all.to) });
  };
  const brush = drag ? { from: Math.min(drag.a, drag.b), to: Math.max(drag.a, drag.b) } : range;
  return <section class="timebar card" aria-label="Time line">
    <div class="row">
      <b>{span(range.to - range.from)}</b>
      <span class="quiet">{dateTime(range.from)} to {dateTime(range.to)}</span>
      <span class="spring" />
      <button type="button" onClick={() => move(-0.5)} aria-label="Earlier">‹</button>
      <button type="button" onClick={() => move(0.5)} aria-label="Later">›</button>
      <button type="button" onClick={() => zoom(0.5)} aria-label="Closer">+</button>
      <button type="button" onClick={() => zoom(2)} aria-label="Further away">−</button>
      {LAST.filter(([, s]) => s < whole).map(([name, s]) =>
        <button key={name} type="button" onClick={() => showRange({ from: all.to - s, to: all.to })}>{name}</button>)}
      <button type="button" aria-pressed={shownRange.value === null} onClick={() => showRange(null)}>all</button>
    </div>
    <div class="lane" ref={lane}
         onPointerDown={(event) => { if (event.target === event.currentTarget) setDrag({ a: at(event), b: at(event) }); }}
         onPointerMove={(event) => { if (drag) setDrag({ ...drag, b: at(event) }); }}
         onPointerUp={end} onPointerLeave={end}>
      <span class="brush" style={{ left: `${share(brush.from)}%`, width: `${share(brush.to) - share(brush.from)}%` }} />
      {linkedTime.value !== null && <span class="moment" style={{ left: `${share(linkedTime.value)}%` }} />}
      {grouped(marks.value, all).map((group) => <MarkButton key={group[0]?.at} group={group} left={share((group[0] as Mark).at)} />)}
    </div>
    {branches.value.length > 0 && <p class="quiet small">Dashed lines are of branches that were left: {branches.value
      .map((b) => `versions ${b.first} to ${b.last}, back to ${b.went_back_to} by ${b.who}`).join("; ")}.</p>}
  </section>;
}

function MarkButton({ group, left }: { group: Mark[]; left: number }) {
  const first = group[0] as Mark;
  const lines = group.slice(0, LISTED).map((m) => `${dateTime(m.at)}: ${m.label}${m.who ? `, ${m.who}` : ""}`);
  const words = [...lines, ...(group.length > LISTED ? [`and ${group.length - LISTED} more`] : [])].join("\n");
  return <button type="button" class={`mark mark-${first.kind}`} style={{ left: `${left}%` }} title={words}
                 aria-label={words} aria-pressed={linkedTime.value !== null && Math.abs(linkedTime.value - first.at) < 1}
                 onClick={() => linkTo(linkedTime.value !== null && Math.abs(linkedTime.value - first.at) < 1 ? null : first.at)}>
    {group.length > 1 ? group.length : MARKS[first.kind]?.letter ?? "•"}
  </button>;
}
