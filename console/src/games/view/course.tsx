import type { TimedEvent, TrackPoint } from "../film.ts";
import { clock, plain } from "../reading.ts";

const SWINGS = 5, SWING_SECONDS = 20, APART_SECONDS = 30;

interface Swing { readonly time: number; readonly change: number }

/** Returns the largest changes of the win probability within SWING_SECONDS, APART_SECONDS from each other. */
function swings(track: readonly TrackPoint[]): Swing[] {
  const found: Swing[] = [];
  let start = 0;
  track.forEach(([time, win], k) => {
    while (start < k && track[start]![0] < time - SWING_SECONDS) start++;
    const before = track[start]![1];
    if (win !== null && before !== null) found.push({ time: track[start]![0], change: win - before });
  });
  found.sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
  const kept: Swing[] = [];
  for (const swing of found)
    if (kept.length < SWINGS && Math.abs(swing.change) >= 0.02 && kept.every((k) => Math.abs(k.time - swing.time) > APART_SECONDS)) kept.push(swing);
  return kept.sort((a, b) => a.time - b.time);
}

function line(points: readonly (readonly [number, number])[]): string {
  return points.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
}

/** Chart of win probability and net worth over the game so far. A click seeks. */
export function Course({ track, time, go }: { track: readonly TrackPoint[]; time: number; go: (time: number) => void }) {
  const first = track[0]?.[0] ?? 0, last = track[track.length - 1]?.[0] ?? 1, width = 600, height = 110;
  const x = (t: number): number => (t - first) / Math.max(last - first, 1) * width;
  const most = track.reduce((largest, t) => Math.max(largest, Math.abs(t[2] - t[3])), 1000);
  // Downsampled to the number of pixels.
  const every = Math.max(1, Math.ceil(track.length / width));
  const thin = track.filter((_, k) => k % every === 0);
  const wins = thin.filter((t) => t[1] !== null).map((t) => [x(t[0]), height * (1 - t[1]!)] as const);
  const worth = thin.map((t) => [x(t[0]), height / 2 - (t[2] - t[3]) / most * height / 2] as const);
  const click = (event: MouseEvent): void => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    go(first + (event.clientX - box.left) / box.width * (last - first));
  };
  return <figure class="course">
    <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" onClick={click} role="img"
      aria-label={wins.length ? `Radiant's win probability over the game, ${Math.round(100 * (1 - wins[wins.length - 1]![1] / height))}% at its end` : "Lead in net worth over the game"}>
      <line x1={0} x2={width} y1={height / 2} y2={height / 2} class="middle" />
      <path d={line(worth)} class="worth" />
      <path d={line(wins)} class="win" />
      <line x1={x(time)} x2={x(time)} y1={0} y2={height} class="now" />
    </svg>
    <figcaption><span class="key win">Radiant wins</span> <span class="key worth">lead in net worth, ±{most}</span></figcaption>
  </figure>;
}

export function Swings({ track, go }: { track: readonly TrackPoint[]; go: (time: number) => void }) {
  const found = swings(track);
  if (!found.length) return null;
  return <div><h3>Largest swings</h3><ul class="swings">{found.map((s) => <li key={s.time}>
    <button type="button" onClick={() => go(s.time - 3)}>{clock(s.time)} <span class={s.change > 0 ? "radiant" : "dire"}>
      {s.change > 0 ? "Radiant" : "Dire"} +{Math.round(100 * Math.abs(s.change))}%</span></button></li>)}</ul></div>;
}

/** Returns the text of an event. `hero` names a hero by its number, 0 to 9. */
export function eventText(event: Readonly<Record<string, unknown>>, hero: (place: number) => string): string {
  const name = (v: unknown): string => hero(Number(v)) || `hero ${Number(v) + 1}`;
  switch (event.kind) {
    case "death": {
      const by = Array.isArray(event.by) ? event.by.map(name) : [];
      return by.length ? `${by.join(", ")} killed ${name(event.hero)}` : `${name(event.hero)} died`;
    }
    case "building": return `${["Radiant", "Dire"][Number(event.team)] ?? ""}'s ${plain(String(event.unit)).replace(/^(good|bad)guys /, "")} fell`;
    case "roshan": return "Roshan died";
    case "item": return `${name(event.hero)}: ${plain(String(event.item))}`;
    case "end": return ["Radiant won", "Dire won", "nobody won"][Number(event.winner)] ?? "the game is over";
    default: return String(event.kind);
  }
}

export function Feed({ events, time, hero, go, items }: {
  events: readonly TimedEvent[]; time: number; hero: (place: number) => string; go: (time: number) => void; items: boolean;
}) {
  const shown = events.filter((e) => e.time <= time && (items || e.event.kind !== "item")).slice(-8).reverse();
  return <ol class="feed" aria-label="What happened">{shown.map((e, k) => <li key={`${e.time}${k}`}>
    <button type="button" onClick={() => go(e.time - 3)}>{clock(e.time)}</button> {eventText(e.event, hero)}</li>)}</ol>;
}
