// Time line shared by all charts: the visible range, the pointer's position, and the annotations.
import { computed, signal } from "@preact/signals";
import type { Mark } from "./api/types";
import { note, query } from "./shell/route";

export interface TimeRange { from: number; to: number }

const parameter = (name: string): number | null => {
  const text = query.value.get(name);
  const found = text === null ? NaN : Number(text);
  return Number.isFinite(found) ? found : null;
};

/** The range that is shown, in seconds since the epoch; null: all of `wholeRange`. */
export const shownRange = computed<TimeRange | null>(() => {
  const from = parameter("from"), to = parameter("to");
  return from !== null && to !== null && to > from ? { from, to } : null;
});

/** The time that the URL points to, in seconds since the epoch; null: none. */
export const linkedTime = computed(() => parameter("at"));

/** Shows a range, or the whole time line for null. The URL holds it, so that it can be shared. */
export function showRange(next: TimeRange | null): void {
  note(next ? { from: next.from.toFixed(0), to: next.to.toFixed(0) } : { from: null, to: null });
}

/** Makes the URL point to a time, or to none for null. */
export function linkTo(at: number | null): void {
  note({ at: at === null ? null : at.toFixed(0) });
}

/** Marks, oldest first. */
export const marks = signal<readonly Mark[]>([]);

/** Range of the records of all series; null before the first. */
export const recorded = signal<TimeRange | null>(null);

/** Range of the whole time line: a run that failed or was paused has marks after its last record. */
export const wholeRange = computed<TimeRange | null>(() => {
  const range = recorded.value, all = marks.value;
  return range && { from: Math.min(range.from, all[0]?.at ?? Infinity), to: Math.max(range.to, all[all.length - 1]?.at ?? 0) };
});

/** Letter and name of each kind of mark: the letter distinguishes them without their colours. */
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
