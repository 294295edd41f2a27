// REST API documents that the pages read (docs/api.md lists all).

export interface Instance {
  kind: string; id: string; address: string; metrics_address: string; started_at: number; beaten_at: number;
  stats: Record<string, unknown>;
}

export interface Opponent { version: number; quality: number; games: number; wins: number }

export interface Score { won: number; drawn: number; lost: number; score: number; low: number; high: number }

export interface Rating {
  player: string; version: number | null; mu: number; sigma: number; games: number; aborted: number;
  reference: boolean; draw_probability: number; against: Record<string, Score>;
}

export interface Slice<T> { items: T[]; total: number; next: number | null }

export interface Branch {
  first: number; last: number; left_by: string; who: string; at: number; went_back_to: number; continued_as: number;
}

export interface RunEvent { id: string; at: number; who: string; what: string; details: Record<string, unknown> }

export interface Page<T> { items: T[]; newer: string | null; older: string | null }

export interface Step {
  name: string; state: "waiting" | "going" | "done" | "failed" | "skipped"; attempt: number;
  started_at: number | null; ended_at: number | null; deadline: number | null; error: string;
  waiting_for: string[]; result: Record<string, unknown>;
}

export interface Operation {
  id: string; kind: "check" | "surgery" | "revert" | "anneal"; who: string; reason: string;
  request: { plan: string; digest: string; name: string; epoch: number; hold: boolean; warm_up_versions: number;
    to_version: number | null };
  created_at: number; ended_at: number | null;
  state: "going" | "rolling_back" | "done" | "failed" | "cancelled";
  steps: Step[]; cancel: Word | null; go_on: Word | null; failed_at: string; waiting_for: string[]; outcome: string;
}

export interface Word { who: string; at: number; reason: string }

export interface Finding {
  rule: "old" | "new"; pairs: number; mean: number; harm: number; fails_at: number; harmless: number; passes_at: number;
  /** Evidence after so many pairs: [pairs, harm, harmless], of the whole attempt. */
  history: [number, number, number][];
}

export interface AnnealNow {
  anneal: {
    id: string; overrides: Record<string, unknown>; base: number; began: number; state: string; attempt: number;
    ramp: { start: number; share: number; length: number }; held_by: string; reason: string;
    guard: Record<string, unknown>; policy: { gates?: number[] } & Record<string, unknown>;
  };
  version: number; share: number; verdict: "pass" | "fail" | "inconclusive"; reason: string; findings: Finding[];
  guard_power: { false_alarm: number; loss: number; miss: number; caught: Record<string, number>;
    pairs_to_catch: Record<string, number> };
}

export interface Ramp { start: number; length: number; from?: number | null; to: number }
export interface Schedule { initial: number; ramps: Ramp[]; unit: "versions" | "hero_steps" }
export interface ScheduleState {
  name: string; schedule: Schedule; version: number; hero_steps: number; value: number;
  next_start: number; change: string | null;
}
export interface ScheduleChange {
  id: string; at: number; name: string; who: string; reason: string; before: Schedule; after: Schedule;
  reverts: string | null; epoch: number;
}

export interface PlanStep {
  number: number; kind: string; what: string; promise: string; lossy: string; parameters_before: number;
  parameters_after: number; tensors: number;
}

export interface Planned {
  name: string; digest: string; plan: string; parent: string; epoch: number; schema: string; layout: string;
  parameters_before: number; parameters_after: number; changes: PlanStep[]; anneals: { values: Record<string, unknown>; versions: number }[];
  lint: { level: string; code: string; step: number; message: string }[];
}

export interface Check { digest: string; name: string; epoch: number; at: number; who: string;
  result: { ok?: boolean; why?: string; version?: number; samples?: number; report?: Record<string, unknown> } }

export interface Rehearsal {
  id: string; digest: string; name: string; who: string; by: "run" | "command"; asked_at: number;
  scope: { versions: number; games: number; minutes: number };
  state: "waiting" | "preparing" | "warming" | "learning" | "playing" | "done" | "failed" | "cancelled" | "abandoned";
  ended_at: number | null; fork: string; first: number | null; warm: number | null; until: number | null;
  version: number | null; played: number; cancel: Word | null; error: string;
  result: { won: number; drawn: number; lost: number; score: number; low: number; high: number; worse: boolean } | null;
}

/** Stored rehearsals, newest first, and the worker that would run another one. */
export interface Rehearsed { worker: { host: string; pid: number } | null; items: Rehearsal[] }

export interface Target { version: number; complete: boolean; epoch: number; line: boolean }

export interface Preview {
  to_version: number; head: number; complete: boolean; versions: { first: number; last: number }[];
  surgeries: { name: string; version: number }[]; record: string[]; schedules: { name: string; who: string }[];
  opponents: number[]; ratings: number[]; references: number[]; anneal: string;
}

export interface Mark { at: number; kind: string; label: string; who: string; version: number | null }
