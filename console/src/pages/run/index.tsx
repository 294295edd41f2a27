import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useSignalEffect } from "@preact/signals";
import type { Curves, Kind } from "../../api/curves";
import { curves } from "../../api/curves";
import { bottleneck, moved } from "../../api/live";
import { overview } from "../../api/run";
import type { Picture } from "../../components/chart";
import { Chart } from "../../components/chart";
import { Services } from "../../components/services";
import { TimeBar } from "../../components/timebar";
import { number } from "../../text";
import { known, readMarks, stretch } from "../../timeline";
import { SHEETS, fieldsOf, ratingPictures } from "./pictures";

const POINTS = 400;
const AGAIN_MS = 4000;  // minimum time between two requests for the same curves

/** Curves that are asked for again when there is something new, or another stretch is shown. */
function useCurves(kind: Kind, fields: readonly string[]): Curves | null {
  const [found, setFound] = useState<Curves | null>(null);
  const state = useRef({ asked: 0, timer: 0, gone: false, key: "" });
  const key = fields.join(",");
  const read = () => {
    const s = state.current;
    s.timer = 0;
    s.asked = Date.now();
    const range = stretch.peek();
    curves(kind, fields, POINTS, range?.from ?? null, range?.to ?? null).then((data) => {
      if (s.gone) return;
      if (data.first !== null && data.last !== null) {
        const now = known.peek();
        const next = { from: Math.min(now?.from ?? Infinity, data.first), to: Math.max(now?.to ?? 0, data.last) };
        if (next.from !== now?.from || next.to !== now?.to) known.value = next;
      }
      setFound(data);
    }).catch(() => { /* the header says that the connection is lost; it is asked again */ });
  };
  useEffect(() => () => { state.current.gone = true; clearTimeout(state.current.timer); }, []);
  useEffect(read, [key]);
  useSignalEffect(() => { stretch.value; read(); });
  useSignalEffect(() => {
    moved.value;
    const s = state.current;
    if (!s.timer) s.timer = window.setTimeout(read, Math.max(0, s.asked + AGAIN_MS - Date.now()));
  });
  return found;
}

function Sheet({ kind, pictures }: { kind: Kind; pictures: readonly Picture[] }) {
  const fields = useMemo(() => fieldsOf(pictures), [pictures]);
  const data = useCurves(kind, fields);
  return <>{pictures.map((p) => <Chart key={p.title} picture={p} data={data} />)}</>;
}

const NO_NAMES: readonly string[] = [];

function RatingSheet() {
  const [names, setNames] = useState(NO_NAMES);
  const pictures = useMemo(() => ratingPictures(names), [names]);
  const fields = useMemo(() => fieldsOf(pictures), [pictures]);
  const data = useCurves("ratings", fields);
  const found = (data?.names ?? []).filter((n) => n.startsWith("win_rates/"));
  useEffect(() => { if (found.join() !== names.join()) setNames(found); }, [found.join()]);
  return <>{pictures.map((p, i) => <Chart key={i} picture={p} data={data} />)}</>;
}

function Figures() {
  const now = overview.value;
  if (!now) return <p class="quiet">Asking the controller…</p>;
  const versions = now.newest.versions ?? {}, rating = now.newest.ratings ?? {};
  const figures: [string, string][] = [
    ["version", now.version === null ? "none yet" : String(now.version)],
    ["hero-steps a second", number(versions.hero_steps_per_second, 0)],
    ["hero-steps received", number(versions.hero_steps, 0)],
    ["TrueSkill", rating.mu === undefined ? "–" : `${number(rating.mu, 1)} ± ${number(rating.sigma, 1)}`],
    ["staleness, median", number(versions.staleness_median, 1)],
    ["sample reuse", number(versions.reuse, 2)],
    ["epoch", String(now.epoch)],
  ];
  return <>
    <dl class="facts">{figures.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
      <div class="wide"><dt>bottleneck</dt><dd class="words">{bottleneck.value || "–"}</dd></div></dl>
    {Object.entries(now.faults ?? {}).map(([name, why]) =>
      <p key={name} class="warn">{name} {why}; the run goes on.</p>)}
  </>;
}

/** The run as a whole: its figures, its charts on one time line, its services. */
export function RunPage() {
  useSignalEffect(() => { moved.value; void readMarks().catch(() => undefined); });
  return <>
    <h1 class="sr">Run</h1>
    <Figures />
    <TimeBar />
    <div class="charts"><RatingSheet />{SHEETS.map((s) => <Sheet key={s.kind} {...s} />)}</div>
    <Services />
  </>;
}
