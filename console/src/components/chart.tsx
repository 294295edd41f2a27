// Chart over the run's time line. Zoom, hover and annotations are shared by all charts of a page.
import { useEffect, useRef } from "preact/hooks";
import { useSignalEffect } from "@preact/signals";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Curves } from "../api/curves";
import { branches } from "../api/live";
import type { Branch } from "../api/types";
import { colour, theme } from "../shell/theme";
import { number } from "../text";
import { linkedTime, marks, showRange, shownRange, wholeRange } from "../timeline";

export interface Curve {
  field: string;
  label: string;
  /** Fields with the ends of an interval around it, or the field with one standard deviation. */
  low?: string;
  high?: string;
  deviation?: string;
}

export interface Band { from: number; to: number; label: string }

export interface Picture {
  title: string;
  unit: string;
  curves: readonly Curve[];
  band?: Band;
  note?: string;
  log?: boolean;
}

const HEIGHT = 190;
const LARGE = new Intl.NumberFormat("en-GB", { notation: "compact" }); // an axis label has space for four digits
const sync = uPlot.sync("time-line");
// Times as in the rest of the console: the smallest distance of ticks in seconds, their text, and what the first tick of
// another year, month, day, hour, minute and second adds to it. 1: adds, not replaces.
const TIMES = [
  [365 * 86400, "{YYYY}", null, null, null, null, null, null, 1],
  [28 * 86400, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [86400, "{D} {MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [60, "{HH}:{mm}", "\n{D} {MMM} {YYYY}", null, "\n{D} {MMM}", null, null, null, 1],
  [0, "{HH}:{mm}:{ss}", "\n{D} {MMM} {YYYY}", null, "\n{D} {MMM}", null, null, null, 1],
];

type Row = (number | null)[];

/** Returns the columns for uPlot: time, then for each curve its line, its reverted part, and the interval around it. */
function rows(data: Curves, picture: Picture, undone: readonly Branch[]): uPlot.AlignedData {
  const versions = data.fields.version?.mean ?? [];
  const ghost = data.at.map((_, i) => {
    const v = versions[i];
    return v !== null && v !== undefined && undone.some((b) => v >= b.first && v <= b.last);
  });
  const at: number[] = [];
  const from: number[] = [];  // index of each row's point; -1 breaks the line at a gap
  const breaks = data.gaps.map(([a]) => a);
  let b = 0;
  data.at.forEach((t, i) => {
    while (b < breaks.length && (breaks[b] as number) < t) {
      const gap = breaks[b] as number;
      if (at.length && gap >= (at[at.length - 1] as number)) { at.push(gap + 0.001); from.push(-1); }
      b += 1;
    }
    at.push(t);
    from.push(i);
  });
  const out: Row[] = [];
  for (const curve of picture.curves) {
    const field = data.fields[curve.field];
    const deviation = curve.deviation ? data.fields[curve.deviation]?.mean : undefined;
    const low = (curve.low ? data.fields[curve.low]?.mean : undefined) ?? field?.low;
    const high = (curve.high ? data.fields[curve.high]?.mean : undefined) ?? field?.high;
    const of = (row: Row | undefined) => from.map((i) => (i < 0 ? null : row?.[i] ?? null));
    const mean = of(field?.mean);
    const aside = from.map((i) => i >= 0 && ghost[i]);
    // The first point after a revert belongs to both lines, so that they meet there.
    out.push(mean.map((v, i) => (aside[i] ? null : v)));
    out.push(mean.map((v, i) => (aside[i] || aside[i + 1] ? v : null)));
    if (deviation) {
      const around = of(deviation);
      out.push(mean.map((v, i) => (v === null ? null : v - (around[i] ?? 0))));
      out.push(mean.map((v, i) => (v === null ? null : v + (around[i] ?? 0))));
    } else {
      out.push(of(low), of(high));
    }
  }
  return [at, ...out] as unknown as uPlot.AlignedData;
}

const PER_CURVE = 4;

/** Draws gaps without versions, the target's band, and marks below the lines. */
function underlay(picture: Picture, gaps: () => readonly [number, number][]): uPlot.Plugin {
  return { hooks: { drawClear: (plot) => {
    const { ctx } = plot;
    const { left, top, width, height } = plot.bbox;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    ctx.fillStyle = colour("--gap");
    for (const [a, b] of gaps()) {
      const x = plot.valToPos(a, "x", true);
      ctx.fillRect(x, top, plot.valToPos(b, "x", true) - x, height);
    }
    if (picture.band) {
      const y = plot.valToPos(picture.band.to, "y", true);
      ctx.fillStyle = colour("--band");
      ctx.fillRect(left, y, width, plot.valToPos(picture.band.from, "y", true) - y);
    }
    for (const mark of marks.peek()) {
      const x = Math.round(plot.valToPos(mark.at, "x", true));
      if (x < left || x > left + width) continue;
      ctx.fillStyle = colour(`--mark-${mark.kind}`, "--dim");
      ctx.fillRect(x, top, Math.max(1, devicePixelRatio), height);
    }
    const at = linkedTime.peek();
    if (at !== null) {
      ctx.fillStyle = colour("--accent");
      ctx.fillRect(Math.round(plot.valToPos(at, "x", true)) - 1, top, 3, height);
    }
    ctx.restore();
  } } };
}

function options(picture: Picture, width: number, gaps: () => readonly [number, number][]): uPlot.Options {
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  picture.curves.forEach((curve, i) => {
    const stroke = colour(`--line-${i % 6}`);
    const value = (_: uPlot, v: number | null) => number(v, 3);
    const first = series.length;
    series.push(
      { label: curve.label, stroke, width: 1.6, value, points: { show: false } },
      { label: `${curve.label}, reverted`, stroke, width: 1.2, dash: [4, 4], alpha: 0.45, value, points: { show: false } },
      { label: "low", stroke: "transparent", width: 0, points: { show: false } },
      { label: "high", stroke: "transparent", width: 0, points: { show: false } });
    bands.push({ series: [first + 3, first + 2], fill: `${stroke}2a` });
  });
  const axis: uPlot.Axis = { stroke: colour("--dim"), grid: { stroke: colour("--grid"), width: 1 },
    ticks: { stroke: colour("--grid"), width: 1 }, font: "11px system-ui, sans-serif" };
  return {
    width, height: HEIGHT, series, bands,
    cursor: { sync: { key: sync.key, setSeries: false }, drag: { x: true, y: false, setScale: false }, focus: { prox: 24 } },
    legend: { show: false },
    scales: { x: { time: true }, y: picture.log ? { distr: 3 } : picture.band ? {
      range: (_, min, max) => uPlot.rangeNum(Math.min(min ?? 0, picture.band?.from ?? 0),
                                             Math.max(max ?? 1, picture.band?.to ?? 1), 0.1, true) } : {} },
    axes: [{ ...axis, values: TIMES }, { ...axis, size: 52, values: (_, splits) => splits.map((v) => (v === null ? "" : Math.abs(v) >= 1e5 ? LARGE.format(v) : number(v, 3))) }],
    plugins: [underlay(picture, gaps)],
    hooks: { setSelect: [(plot) => {
      if (plot.select.width < 6) return;
      showRange({ from: plot.posToVal(plot.select.left, "x"), to: plot.posToVal(plot.select.left + plot.select.width, "x") });
      plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    }] },
  };
}

export function Chart({ picture, data }: { picture: Picture; data: Curves | null }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const gaps = useRef<readonly [number, number][]>([]);
  const legend = useRef<HTMLDivElement>(null);
  const shade = theme.value;
  const undone = branches.value;  // may arrive after the data

  const showValues = (index: number | null) => { if (legend.current) fill(legend.current, picture, plot.current, index); };

  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const made = new uPlot(options(picture, Math.max(element.clientWidth, 200), () => gaps.current),
                           [[], ...picture.curves.flatMap(() => [[], [], [], []])] as uPlot.AlignedData, element);
    plot.current = made;
    made.hooks.setCursor = [(p) => showValues(p.cursor.idx ?? null)];
    const sizes = new ResizeObserver(() => made.setSize({ width: Math.max(element.clientWidth, 200), height: HEIGHT }));
    sizes.observe(element);
    return () => { sizes.disconnect(); made.destroy(); plot.current = null; };
  }, [picture, shade]);

  useEffect(() => {
    if (!plot.current || !data) return;
    gaps.current = data.gaps;
    const range = shownRange.peek() ?? wholeRange.peek();
    plot.current.setData(rows(data, picture, undone), false);
    // Either call draws everything. A redraw would undo a range that was just set, and would keep the old axes.
    if (range) plot.current.setScale("x", { min: range.from, max: range.to });
    else plot.current.redraw(true, true);
    showValues(null);
  }, [data, picture, shade, undone]);

  useSignalEffect(() => {
    const range = shownRange.value ?? wholeRange.value;
    marks.value; linkedTime.value;
    if (plot.current && range) plot.current.setScale("x", { min: range.from, max: range.to });
  });

  const empty = data !== null && !picture.curves.some((c) => data.fields[c.field]?.mean.some((v) => v !== null));
  return <figure class="chart">
    <figcaption><h3>{picture.title}</h3><span class="quiet">{picture.unit}</span></figcaption>
    <div ref={legend}><ul class="legend">{picture.curves.map((curve, i) =>
      <li key={curve.field} data-line={i % 6}>{curve.label} <b>–</b></li>)}</ul></div>
    <div ref={place} class="plot" role="img" aria-label={`${picture.title}: ${summary(picture, data)}`} />
    {empty && <p class="none quiet">nothing yet</p>}
    {(picture.band || picture.note) && <p class="quiet small">{[picture.band?.label, picture.note].filter(Boolean).join(" ")}</p>}
  </figure>;
}

/** Writes the values at a row into the legend, without rendering the page again; null: the newest values. */
function fill(place: HTMLElement, picture: Picture, plot: uPlot | null, index: number | null): void {
  place.querySelectorAll("b").forEach((cell, i) => {
    const row = plot?.data[1 + i * PER_CURVE] as Row | undefined;
    const ghost = plot?.data[2 + i * PER_CURVE] as Row | undefined;
    let at = index;
    if (row && at === null) for (at = row.length - 1; at > 0 && row[at] == null;) at -= 1;
    if (picture.curves[i]) cell.textContent = number(at === null ? null : row?.[at] ?? ghost?.[at], 3);
  });
}

/** The text of a chart for screen readers: the newest value of each line. */
function summary(picture: Picture, data: Curves | null): string {
  return picture.curves.map((curve) => {
    const values = (data?.fields[curve.field]?.mean ?? []).filter((v) => v !== null);
    return `${curve.label} ${values.length ? number(values[values.length - 1], 3) : "nothing yet"}`;
  }).join(", ");
}
