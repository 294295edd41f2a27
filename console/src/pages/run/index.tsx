import { useEffect, useMemo, useState } from "preact/hooks";
import { get } from "../../api/client";
import type { Curves, Kind } from "../../api/curves";
import { curves } from "../../api/curves";
import { bottleneck } from "../../api/live";
import { overview } from "../../api/run";
import { who } from "../../api/session";
import type { Mark } from "../../api/types";
import type { Picture } from "../../components/chart";
import { Chart } from "../../components/chart";
import { useOrdered } from "../../components/ordered";
import { useRefresh } from "../../components/refresh";
import { Services } from "../../components/services";
import { TimeBar } from "../../components/timebar";
import { number, rating, span } from "../../text";
import { marks, recorded, shownRange } from "../../timeline";
import { SHEETS, fieldsOf, ratingPictures } from "./pictures";

const POINTS = 400;
const AGAIN_MS = 4000;  // minimum time between two requests for the same curves or marks

/** Curves, read again after new versions and events, and when another range is shown. */
function useCurves(kind: Kind, fields: readonly string[]): Curves | null {
  const [found, setFound] = useState<Curves | null>(null);
  const ordered = useOrdered();
  const key = fields.join(","), range = shownRange.value;
  const read = () => {
    ordered(curves(kind, fields, POINTS, range?.from ?? null, range?.to ?? null), (data) => {
      if (data.first !== null && data.last !== null) {
        const before = recorded.peek();
        const next = { from: Math.min(before?.from ?? Infinity, data.first), to: Math.max(before?.to ?? 0, data.last) };
        if (next.from !== before?.from || next.to !== before?.to) recorded.value = next;
      }
      setFound(data);
    }, () => refresh());
  };
  const refresh = useRefresh(read, AGAIN_MS);
  useEffect(read, [key, range?.from, range?.to]);
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
  if (now === undefined) return <p class="quiet">Asking the controller…</p>;
  if (now === null) return <p class="warn">Run {who.value?.run} does not exist in the controller's store yet.</p>;
  const versions = now.newest.versions ?? {}, rated = now.newest.ratings ?? {};
  const figures: [string, string][] = [
    ["version", now.version === null ? "none yet" : String(now.version)],
    ["hero-steps a second", number(versions.hero_steps_per_second, 0)],
    ["hero-steps received", number(versions.hero_steps, 0)],
    ["TrueSkill", rated.mu === undefined ? "–" : rating(rated.mu, rated.sigma)],
    ["staleness, median", number(versions.staleness_median, 1)],
    ["sample reuse", number(versions.reuse, 2)],
    ["epoch", String(now.epoch)],
  ];
  return <>
    <dl class="facts">{figures.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
      <div class="wide"><dt>bottleneck</dt><dd class="words">{bottleneck.value || "–"}</dd></div></dl>
    {now.stalled_seconds > 0 && <p class="bad">No new version for {span(now.stalled_seconds)}: the figures are of the last one.</p>}
    {Object.entries(now.faults ?? {}).map(([name, why]) =>
      <p key={name} class="warn">{name} {why}; the run goes on.</p>)}
  </>;
}

/** The run as a whole: its figures, its charts on one time line, its services. */
export function RunPage() {
  const ordered = useOrdered();
  const read = () => {
    ordered(get<Mark[]>("console/timeline"), (found) => { marks.value = found; }, () => refresh());
  };
  const refresh = useRefresh(read, AGAIN_MS);
  useEffect(read, []);
  return <>
    <h1 class="sr">Run</h1>
    <Figures />
    <TimeBar />
    <div class="charts"><RatingSheet />{SHEETS.map((s) => <Sheet key={s.kind} {...s} />)}</div>
    <Services />
  </>;
}
