/** An event's details in one line of plain text. */
export function detailsText(details: Record<string, unknown>): string {
  return Object.entries(details).filter(([, v]) => v !== "" && v !== null)
    .map(([k, v]) => `${k} ${typeof v === "object" ? JSON.stringify(v) : String(v)}`).join(" · ").slice(0, 400);
}
