// Data embedded in a report; libs/five/reports/run_report.py writes it into the page.
import type { Curves, Kind } from "../api/curves";
import type { Branch, Mark, RunEvent } from "../api/types";

export interface Report {
  name: string; made: number; facts: readonly (readonly [string, string])[]; curves: Record<Kind, Curves>;
  marks: readonly Mark[]; branches: readonly Branch[]; events: readonly RunEvent[]; film: { name: string; bytes: number } | null; note: string;
}

const text = (id: string): string => document.getElementById(id)?.textContent ?? "";

export const report: Report = JSON.parse(text("run"));

/** Returns the recording, decoded from base64. */
export function film(): Uint8Array<ArrayBuffer> {
  const packed = atob(text("film"));
  const out = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) out[i] = packed.charCodeAt(i);
  return out;
}
