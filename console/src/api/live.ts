// One connection on which the controller tells everything that changes (services/controller/api/console.py).
import { signal } from "@preact/signals";
import { overview } from "./run";
import { begin, who } from "./session";
import type { AnnealNow, Branch, Instance, Operation, Opponent, Page, Rating, RunEvent, Slice } from "./types";

export type Link = "connecting" | "live" | "lost";

export const link = signal<Link>("connecting");
export const bottleneck = signal("");
export const operations = signal<readonly Operation[]>([]);
export const anneal = signal<AnnealNow | null>(null);
export const services = signal<readonly Instance[]>([]);
export const league = signal<readonly Opponent[]>([]);
export const ratings = signal<readonly Rating[]>([]);
export const branches = signal<readonly Branch[]>([]);
/** Events that have come since the page was opened, newest first. */
export const fresh = signal<readonly RunEvent[]>([]);
/** Grows with every version and every event: what is drawn from them is asked for again. */
export const moved = signal(0);
/** The console that the controller serves; where it is another one than this page, the page is old. */
export const served = signal(__BUILD__);

const MAX_FRESH = 500;
let source: EventSource | null = null;

function on<T>(kind: string, take: (data: T) => void): void {
  source?.addEventListener(kind, (event) => {
    link.value = "live";
    take(JSON.parse((event as MessageEvent<string>).data) as T);
  });
}

/** Opens the connection; it comes back by itself, and from where it was. */
export function connect(): void {
  source?.close();
  source = new EventSource("/v1/console/stream");
  source.onopen = () => { link.value = "live"; };
  source.onerror = () => {
    link.value = "lost";
    // A session that has ended is answered with 401, and a browser does not ask again by itself.
    if (source?.readyState === EventSource.CLOSED)
      setTimeout(() => void begin("").then(() => { if (who.value) connect(); }), 3000);
  };
  on<typeof overview.value>("overview", (v) => { overview.value = v; });
  on<string>("bottleneck", (v) => { bottleneck.value = v; });
  on<Operation[]>("operations", (v) => { operations.value = v; });
  on<AnnealNow | null>("anneal", (v) => { anneal.value = v; });
  on<Instance[]>("services", (v) => { services.value = v; });
  on<Slice<Opponent>>("league", (v) => { league.value = v.items; });
  on<Page<Rating>>("ratings", (v) => { ratings.value = v.items; moved.value += 1; });
  on<Slice<Branch>>("branches", (v) => { branches.value = v.items; });
  on<string>("build", (v) => { served.value = v; });
  on<unknown>("version", () => { moved.value += 1; });
  on<RunEvent>("event", (v) => {
    fresh.value = [v, ...fresh.peek()].slice(0, MAX_FRESH);
    moved.value += 1;
  });
}

export function disconnect(): void {
  source?.close();
  source = null;
}
