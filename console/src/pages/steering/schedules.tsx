import { useEffect, useRef, useState } from "preact/hooks";
import { get, request } from "../../api/client";
import { overview } from "../../api/run";
import type { Page, Schedule, ScheduleChange, ScheduleState } from "../../api/types";
import { ActButton } from "../../components/act";
import { NumberField } from "../../components/number";
import { useOrdered } from "../../components/ordered";
import { useRefresh } from "../../components/refresh";
import { dateTime, number } from "../../text";

const NAMES = ["learning_rate", "entropy_coefficient", "team_spirit", "gae_horizon_seconds", "scripted_fraction",
  "scripted_bot", "game_seconds", "middle_fraction", "building_health"] as const;
const AGAIN_MS = 2000;  // minimum time between two requests for the same schedule or history
const WIDTH = 640, HEIGHT = 170, LEFT = 60, BOTTOM = 24;

/** A schedule's value at a position in its unit, as five.agent.schedules has it: linear from ramp to ramp. */
function valueAt(schedule: Schedule, version: number): number {
  let value = schedule.initial;
  for (const ramp of schedule.ramps) {
    if (version < ramp.start) break;
    const from = ramp.from ?? value;
    value = ramp.length === 0 || version >= ramp.start + ramp.length ? ramp.to
      : from + ((ramp.to - from) * (version - ramp.start)) / ramp.length;
  }
  return value;
}

/** The unit's word: "version 951", "hero-step 7400000". */
const word = (schedule: Schedule) => schedule.unit === "hero_steps" ? "hero-step" : "version";

/** The present position in the schedule's unit. */
const positionOf = (state: ScheduleState) => state.schedule.unit === "hero_steps" ? state.hero_steps : state.version;

/** The earliest start of a change that the run has not reached when it is sent. */
const nextStart = (state: ScheduleState) => state.schedule.unit === "hero_steps" ? state.next_start
  : (overview.value?.version ?? state.version) + 1;

interface Wish { start: number; length: number; to: number }

/** The schedule as it would be: what was planned from the start on is dropped. */
function changed(schedule: Schedule, wish: Wish): Schedule {
  const kept = schedule.ramps.filter((r) => r.start < wish.start);
  return { ...schedule, ramps: [...kept, { ...wish, from: valueAt({ ...schedule, ramps: kept }, wish.start) }] };
}

function Curve({ now, schedule, wish, onWish }: {
  now: number; schedule: Schedule; wish: Wish; onWish: (next: Wish) => void;
}) {
  const place = useRef<SVGSVGElement>(null);
  const next = changed(schedule, wish);
  const last = Math.max(wish.start + wish.length, ...schedule.ramps.map((r) => r.start + r.length), now + 10);
  const first = Math.max(0, Math.min(now, ...schedule.ramps.map((r) => r.start)));
  const width = Math.max(last - first, 1) * 1.15;
  const xs = Array.from({ length: 121 }, (_, i) => first + (width * i) / 120);
  const values = [...xs.map((x) => valueAt(next, x)), ...xs.map((x) => valueAt(schedule, x)), wish.to];
  const top = Math.max(...values) * 1.15 || 1, low = Math.min(0, ...values);
  const x = (v: number) => LEFT + ((v - first) / width) * (WIDTH - LEFT - 8);
  const y = (v: number) => HEIGHT - BOTTOM - ((v - low) / (top - low)) * (HEIGHT - BOTTOM - 8);
  const path = (s: Schedule) => xs.map((v, i) => `${i ? "L" : "M"}${x(v).toFixed(1)},${y(valueAt(s, v)).toFixed(1)}`).join("");
  const dragTo = (event: PointerEvent, what: "start" | "end") => {
    const box = place.current?.getBoundingClientRect();
    if (!box) return;
    const version = Math.round(first + (((event.clientX - box.left) * (WIDTH / box.width) - LEFT) / (WIDTH - LEFT - 8)) * width);
    const value = low + ((HEIGHT - BOTTOM - (event.clientY - box.top) * (HEIGHT / box.height)) / (HEIGHT - BOTTOM - 8)) * (top - low);
    if (what === "start") onWish({ ...wish, start: Math.max(now, version), length: Math.max(0, wish.start + wish.length - Math.max(now, version)) });
    else onWish({ ...wish, length: Math.max(0, version - wish.start), to: Number(Math.max(0, value).toPrecision(3)) });
  };
  const handle = (what: "start" | "end", cx: number, cy: number) => <circle class="handle" cx={cx} cy={cy} r={7}
    onPointerDown={(e) => e.currentTarget.setPointerCapture(e.pointerId)}
    onPointerMove={(e) => { if (e.currentTarget.hasPointerCapture(e.pointerId)) dragTo(e, what); }} />;
  return <svg ref={place} class="curve" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img"
              aria-label={`from ${number(valueAt(schedule, now), 6)} at ${word(schedule)} ${now} to ${number(wish.to, 6)} at ${word(schedule)} ${wish.start + wish.length}`}>
    <path d={path(schedule)} class="was" /><path d={path(next)} class="wish" />
    <line x1={x(now)} x2={x(now)} y1={4} y2={HEIGHT - BOTTOM} class="now" />
    <text x={x(now) + 4} y={14}>{word(schedule)} {now}</text>
    {[low, (low + top) / 2, top / 1.15].map((v) => <text key={v} x={LEFT - 6} y={y(v) + 4} text-anchor="end">{number(v, 5)}</text>)}
    {[first, first + width / 2, first + width / 1.15].map((v) =>
      <text key={v} x={x(v)} y={HEIGHT - 6} text-anchor="middle">{Math.round(v)}</text>)}
    {handle("start", x(wish.start), y(valueAt(next, wish.start)))}
    {handle("end", x(wish.start + wish.length), y(wish.to))}
  </svg>;
}

function Editor({ name }: { name: string }) {
  const [state, setState] = useState<{ now: ScheduleState; tag: string } | null>(null);
  const [wish, setWish] = useState<Wish | null>(null);
  const [trouble, setTrouble] = useState("");
  const ordered = useOrdered();
  const read = (keep: boolean) => {
    const answer = request("GET", `schedules/${name}`).then(async (found) =>
      ({ now: await found.json() as ScheduleState, tag: found.headers.get("ETag") ?? "" }));
    ordered(answer, (found) => {
      const { now } = found;
      setState(found);
      setTrouble("");
      setWish((before) => keep && before ? before : {
        start: nextStart(now), to: now.value,
        length: now.schedule.unit === "hero_steps" ? 50 * (now.next_start - now.hero_steps) : 100 });
    }, (error) => { setTrouble(error.message); refresh(); });
  };
  const refresh = useRefresh(() => read(true), AGAIN_MS);
  useEffect(() => read(false), [name]);
  if (!state || !wish) return <p class="quiet">{trouble || "Asking…"}</p>;
  const { now, tag } = state, epoch = overview.value?.epoch ?? null;
  const body = () => ({ start: Math.max(wish.start, nextStart(now)), length: wish.length, to: wish.to, epoch });
  const put = (parameters: Record<string, boolean>, reason = "") => request("PUT", `schedules/${name}`,
    { body: { ...body(), reason }, match: tag, parameters }).then((a) => a.json() as Promise<ScheduleState>);
  const field = (key: keyof Wish, label: string, step: number | "any") =>
    <NumberField label={label} step={step} min={0} value={wish[key]} onChange={(value) => setWish({ ...wish, [key]: value })} />;
  return <>
    {trouble && <p class="bad" role="alert">{trouble}</p>}
    <Curve now={positionOf(now)} schedule={now.schedule} wish={wish} onWish={setWish} />
    <div class="row">
      {field("start", `from ${word(now.schedule)}`, 1)}{field("length", `over ${word(now.schedule)}s`, 1)}{field("to", "to", "any")}
      <ActButton act={{ verb: "Change schedule", reasoned: true,
        says: <p>{name.replaceAll("_", " ")}: from {number(now.value, 6)} now to <b>{number(wish.to, 6)}</b>, from {word(now.schedule)} {wish.start} over {wish.length} {word(now.schedule)}s. What was planned from there on is dropped.</p>,
        rehearse: async () => {
          const then = await put({ dry_run: true });
          return <p>It would be: {then.schedule.ramps.slice(-3).map((r) => `${number(r.to, 6)} by ${word(then.schedule)} ${r.start + r.length}`).join(", then ")}.</p>;
        },
        carryOut: (reason) => put({}, reason), done: () => read(false) }} />
    </div></>;
}

function History() {
  const [page, setPage] = useState<readonly ScheduleChange[] | null>(null);
  const ordered = useOrdered();
  const read = () => {
    ordered(get<Page<ScheduleChange>>("schedules/history", { limit: 8 }), (p) => setPage(p.items), () => refresh());
  };
  const refresh = useRefresh(read, AGAIN_MS);
  useEffect(read, []);
  if (!page) return <p class="quiet">Asking…</p>;
  if (!page.length) return <p class="quiet">No schedule has been changed yet.</p>;
  return <div class="scroll" tabIndex={0} role="region" aria-label="Changes of schedules"><table>
    <thead><tr><th>when</th><th>who</th><th>schedule</th><th>to</th><th>why</th><th><span class="sr">take back</span></th></tr></thead>
    <tbody>{page.map((c) => { const ramp = c.after.ramps[c.after.ramps.length - 1]; return <tr key={c.id}>
      <td class="no-wrap">{dateTime(c.at)}</td><td>{c.who}</td><td>{c.name.replaceAll("_", " ")}</td>
      <td>{ramp ? `${number(ramp.to, 6)} by ${word(c.after)} ${ramp.start + ramp.length}` : number(c.after.initial, 6)}</td><td>{c.reason}</td>
      <td><ActButton act={{ verb: "Take back", reasoned: true,
        says: <p>From two versions ahead on, {c.name.replaceAll("_", " ")} is what it was before this change.</p>,
        rehearse: async () => {
          const then = await request("POST", `schedules/history/${c.id}/revert`, { body: {}, parameters: { dry_run: true } });
          return <p>It would be {number(((await then.json()) as ScheduleState).value, 6)}.</p>;
        },
        carryOut: (reason) => request("POST", `schedules/history/${c.id}/revert`, { body: { reason } }) }} /></td></tr>; })}</tbody>
  </table></div>;
}

/** Values that change during the run, edited as curves. */
export function Schedules() {
  const [name, setName] = useState<string>(NAMES[0]);
  return <section class="card"><h2>Schedules</h2>
    <div class="row" role="group" aria-label="Schedule">{NAMES.map((n) => <button key={n} type="button" aria-pressed={n === name}
      onClick={() => setName(n)}>{n.replaceAll("_", " ")}</button>)}</div>
    <Editor key={name} name={name} />
    <History />
  </section>;
}
