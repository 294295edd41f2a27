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
/** Grows with each event, and once with each connection, which may have missed events. */
export const eventCount = signal(0);
/** Grows with each version, rating and event: pages that show them read them again. */
export const changeCount = signal(0);
/** Build of the console that the controller serves; "" if it is not built. A page of another build is outdated. */
export const servedBuild = signal(__BUILD__);

const RETRY_MS = 3000;
// The controller sends a heartbeat every five seconds, but only while it reads the run's store. A lost network or store
// does not close the connection, so silence is the only sign of it.
const SILENCE_MS = 30_000, CHECK_MS = 5000;

let source: EventSource | null = null;
let hasReceived = false;  // whether this connection has delivered an event; all later events arrive on it
let receivedAt = 0;  // time of the last event, ms
let retryTimer = 0, silenceTimer = 0;

function on<T>(kind: string, take: (data: T) => void): void {
  source?.addEventListener(kind, (event) => {
    link.value = "live";
    receivedAt = Date.now();
    if (!hasReceived) { hasReceived = true; eventCount.value += 1; }
    take(JSON.parse((event as MessageEvent<string>).data) as T);
  });
}

/** Opens the connection and keeps it open until `disconnect`, or until the session ends. */
export function connect(): void {
  disconnect();
  source = new EventSource(`${base}/v1/console/stream`);
  hasReceived = false;
  receivedAt = Date.now();
  source.onerror = () => {
    link.value = "lost";
    hasReceived = false;
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
  on<Page<Rating>>("ratings", (v) => { ratings.value = v.items; changeCount.value += 1; });
  on<Slice<Branch>>("branches", (v) => { branches.value = v.items; });
  on<string>("build", (v) => { servedBuild.value = v; });
  on<unknown>("version", () => { changeCount.value += 1; });
  on<unknown>("event", () => { eventCount.value += 1; changeCount.value += 1; });
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
