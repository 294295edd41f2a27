// Event stream with all changes of a run (services/controller/routes/console.py).
import { signal } from "@preact/signals";
import { base } from "../base";
import { overview } from "./run";
import { begin, who } from "./session";
import type { AnnealNow, Branch, Instance, Operation, Opponent, Page, Rating, Rehearsed, Slice } from "./types";

export type Link = "connecting" | "live" | "lost";

export const link = signal<Link>("connecting");
export const bottleneck = signal("");
export const operations = signal<readonly Operation[]>([]);
export const rehearsed = signal<Rehearsed>({ worker: null, items: [] });
export const anneal = signal<AnnealNow | null>(null);
export const services = signal<readonly Instance[]>([]);
export const league = signal<readonly Opponent[]>([]);
export const ratings = signal<readonly Rating[]>([]);
export const branches = signal<readonly Branch[]>([]);
/** Grows with every event, and once with each connection: what came before its first look it does not tell. */
export const told = signal(0);
/** Grows with every version and every event: what is drawn from them is asked for again. */
export const moved = signal(0);
/** The console that the controller serves; where it is another one than this page, the page is old. */
export const served = signal(__BUILD__);

let source: EventSource | null = null;
let looked = false;  // whether this connection has delivered an event; all later events arrive on it

function on<T>(kind: string, take: (data: T) => void): void {
  source?.addEventListener(kind, (event) => {
    link.value = "live";
    if (!looked) { looked = true; told.value += 1; }
    take(JSON.parse((event as MessageEvent<string>).data) as T);
  });
}

/** Opens the connection; it comes back by itself, and from where it was. */
export function connect(): void {
  source?.close();
  source = new EventSource(`${base}/v1/console/stream`);
  looked = false;
  source.onopen = () => { link.value = "live"; };
  source.onerror = () => {
    link.value = "lost";
    looked = false;
    // An ended session gets status 401, after which the browser does not reconnect by itself.
    if (source?.readyState === EventSource.CLOSED)
      setTimeout(() => void begin("").then(() => { if (who.value) connect(); }), 3000);
  };
  on<typeof overview.value>("overview", (v) => { overview.value = v; });
  on<string>("bottleneck", (v) => { bottleneck.value = v; });
  on<Operation[]>("operations", (v) => { operations.value = v; });
  on<Rehearsed>("rehearsals", (v) => { rehearsed.value = v; });
  on<AnnealNow | null>("anneal", (v) => { anneal.value = v; });
  on<Instance[]>("services", (v) => { services.value = v; });
  on<Slice<Opponent>>("league", (v) => { league.value = v.items; });
  on<Page<Rating>>("ratings", (v) => { ratings.value = v.items; moved.value += 1; });
  on<Slice<Branch>>("branches", (v) => { branches.value = v.items; });
  on<string>("build", (v) => { served.value = v; });
  on<unknown>("version", () => { moved.value += 1; });
  on<unknown>("event", () => { told.value += 1; moved.value += 1; });
}

export function disconnect(): void {
  source?.close();
  source = null;
}
