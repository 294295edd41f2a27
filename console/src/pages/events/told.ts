/** An event's particulars in a line; what comes from a run is text and nothing else. */
export function told(details: Record<string, unknown>): string {
  return Object.entries(details).filter(([, v]) => v !== "" && v !== null)
    .map(([k, v]) => `${k} ${typeof v === "object" ? JSON.stringify(v) : String(v)}`).join(" · ").slice(0, 400);
}
