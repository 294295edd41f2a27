// Formatting of numbers and times for people.

export function number(value: unknown, digits = 2): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 10 ** -digits || size >= 1e9)) return value.toExponential(2);
  return value.toLocaleString("en-GB", { maximumFractionDigits: size >= 1000 ? 0 : digits });
}

/** A stretch of seconds: "3 d 4 h", "12 min". */
export function span(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 90) return `${s} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 2 * 86400) return `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.round((s % 86400) / 3600)} h`;
}

export function clock(at: number): string {
  return new Date(at * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
}

export const ago = (at: number, now = Date.now() / 1000): string => `${span(now - at)} ago`;
