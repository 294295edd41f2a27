// Formatting of numbers and times for people.

export function number(value: unknown, digits = 2): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 10 ** -digits || size >= 1e9)) return value.toExponential(2);
  return value.toLocaleString("en-GB", { maximumFractionDigits: size >= 1000 ? 0 : digits });
}

/** A TrueSkill rating: "0.0 ± 8.3". */
export function rating(mu: unknown, sigma: unknown): string {
  const fixed = (value: unknown): string => (Math.round(10 * Number(value)) / 10 || 0).toFixed(1);
  return `${fixed(mu)} ± ${fixed(sigma)}`;
}

/** A share as a percentage: 0.004 is "0.4 %". */
export const percent = (share: number, digits = 1): string => `${(100 * share).toFixed(digits)} %`;

/** A duration: "3 d 4 h", "12 min". */
export function span(seconds: number): string {
  const s = Math.max(0, Math.round(seconds)), minutes = Math.round(s / 60), hours = Math.round(s / 3600);
  if (s < 90) return `${s} s`;
  if (s < 5400) return `${minutes} min`;
  if (s < 2 * 86400) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

// Made once: `toLocaleString` makes one for each call, which takes longer than anything else in a table of events.
const DATE_TIME = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** Date and time of a moment, in seconds since the epoch, in the browser's time zone; "–" where there is none. */
export function dateTime(at: number): string {
  const date = new Date(at * 1000);
  return Number.isNaN(date.getTime()) ? "–" : DATE_TIME.format(date);
}
