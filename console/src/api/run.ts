// Latest known state of the run.
import { signal } from "@preact/signals";

export type RunStatus = "starting" | "running" | "pausing" | "paused" | "stopping" | "stopped" | "failed" |
  "operating" | "warming";

/** GET /v1/status. */
export interface Overview {
  run: string;
  status: RunStatus;
  since: number;
  by: string;
  reason: string;
  version: number | null;
  services: Record<string, number>;
  hyperparameters: Record<string, number>;
  newest: Record<string, Record<string, unknown> | null>;
  epoch: number;
  record_revision: number;
  publisher: string | null;
  drift: { key: string; file: unknown; record: unknown }[];
  /** Seconds without a new version; 0 while versions arrive in time. */
  stalled_seconds: number;
  waiting_for: string[];
  faults: Record<string, string>;
}

/** undefined: not received yet; null: the run does not exist. */
export const overview = signal<Overview | null | undefined>(undefined);
