// Event stream with all changes of a run (services/controller/routes/console.py).
import { signal } from "@preact/signals";
import { base } from "../base";
import { loggedOut } from "./client";
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
export const league = signal<Slice<Opponent>>({ items: [], total: 0, next: null });
export const ratings = signal<readonly Rating[]>([]);
export const branches = signal<readonly Branch[]>([]);
/** Grows with every event, and once with each connection: what came before its first look it does not tell. */
export const told = signal(0);
/** Grows with every version and every event: what is drawn from them is asked for again. */
export const moved = signal(0);
/** The console that the controller serves; where it is another one than this page, the page is old. */
export const served = signal(__BUILD__);

const RETRY_MS = 3000;
// The controller sends a heartbeat every five seconds, but only while it reads the run's store. A lost network or store
// does not close the connection, so silence is the only sign of it.
const SILENCE_MS = 30_000, CHECK_MS = 5000;

let source: EventSource | null = null;
let looked = false;  // whether this connection has delivered an event; all later events arrive on it
let receivedAt = 0;  // time of the last event, ms
let retryTimer = 0, silenceTimer = 0;

function on<T>(kind: string, take: (data: T) => void): void {
  source?.addEventListener(kind, (event) => {
    link.value = "live";
    receivedAt = Date.now();
    if (!looked) { looked = true; told.value += 1; }
    take(JSON.parse((event as MessageEvent<string>).data) as T);
  });
}

/** Opens the connection and keeps it open until `disconnect`, or until the session ends. */
export function connect(): void {
  disconnect();
  source = new EventSource(`${base}/v1/console/stream`);
  looked = false;
  receivedAt = Date.now();
  source.onerror = () => {
    link.value = "lost";
    looked = false;
    // The browser reconnects by itself, but not after a status: 401 of an ended session, 502 of a reverse proxy.
    if (source?.readyState === EventSource.CLOSED) retryTimer = window.setTimeout(() => void reconnect(), RETRY_MS);
  };
  silenceTimer = window.setInterval(() => {
    if (Date.now() - receivedAt < SILENCE_MS) return;
    link.value = "lost";
    connect();
  }, CHECK_MS);
  on<unknown>("heartbeat", () => undefined);
  on<typeof overview.value>("overview", (v) => { overview.value = v; });
  on<string>("bottleneck", (v) => { bottleneck.value = v; });
  on<Operation[]>("operations", (v) => { operations.value = v; });
  on<Rehearsed>("rehearsals", (v) => { rehearsed.value = v; });
  on<AnnealNow | null>("anneal", (v) => { anneal.value = v; });
  on<Instance[]>("services", (v) => { services.value = v; });
  on<Slice<Opponent>>("league", (v) => { league.value = v; });
  on<Page<Rating>>("ratings", (v) => { ratings.value = v.items; moved.value += 1; });
  on<Slice<Branch>>("branches", (v) => { branches.value = v.items; });
  on<string>("build", (v) => { served.value = v; });
  on<unknown>("version", () => { moved.value += 1; });
  on<unknown>("event", () => { told.value += 1; moved.value += 1; });
}

/** Connects again, unless the session has ended. */
async function reconnect(): Promise<void> {
  await begin("");
  if (who.value && !loggedOut.value) connect();
}

export function disconnect(): void {
  clearTimeout(retryTimer);
  clearInterval(silenceTimer);
  source?.close();
  source = null;
}
