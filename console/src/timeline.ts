// Time line shared by all charts: the visible range, the pointer's position, and the annotations.
import { computed, signal } from "@preact/signals";
import { get } from "./api/client";
import type { Mark } from "./api/types";
import { note, query } from "./shell/route";

export interface TimeRange { from: number; to: number }

const asked = (name: string): number | null => {
  const text = query.value.get(name);
  const found = text === null ? NaN : Number(text);
  return Number.isFinite(found) ? found : null;
};

/** The range that is shown, in seconds since the epoch; null: all of `known`. */
export const stretch = computed<TimeRange | null>(() => {
  const from = asked("from"), to = asked("to");
  return from !== null && to !== null && to > from ? { from, to } : null;
});

/** A moment that somebody has pointed out by a link. */
export const moment = computed(() => asked("at"));

/** Shows a stretch; the address says it, so that it can be sent. */
export function show(next: TimeRange | null): void {
  note(next ? { from: next.from.toFixed(0), to: next.to.toFixed(0) } : { from: null, to: null });
}

export function point(at: number | null): void {
  note({ at: at === null ? null : at.toFixed(0) });
}

/** Marks, oldest first. */
export const marks = signal<readonly Mark[]>([]);

/** Range of the records of all series; null before the first. */
export const recorded = signal<TimeRange | null>(null);

/** Range of the whole time line: a run that failed or was paused has marks after its last record. */
export const known = computed<TimeRange | null>(() => {
  const range = recorded.value, all = marks.value;
  return range && { from: Math.min(range.from, all[0]?.at ?? Infinity), to: Math.max(range.to, all[all.length - 1]?.at ?? 0) };
});

export async function readMarks(): Promise<void> {
  marks.value = await get<Mark[]>("console/timeline");
}

/** What each kind of mark looks like; the letter tells them apart without their colours. */
export const MARKS: Record<string, { letter: string; name: string }> = {
  surgery: { letter: "S", name: "surgery" },
  revert: { letter: "R", name: "revert" },
  ramp: { letter: "~", name: "schedule" },
  anneal: { letter: "A", name: "anneal" },
  pause: { letter: "‖", name: "pause" },
  start: { letter: "▸", name: "start" },
  stop: { letter: "■", name: "stop" },
  restart: { letter: "↻", name: "restart" },
  failure: { letter: "!", name: "failure" },
};
