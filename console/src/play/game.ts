// Game played over a WebSocket: received messages, sent commands, and the result of each order. It reconnects by itself;
// the server reserves the seat for a while.
import { signal } from "@preact/signals";
import type { GameEvent } from "../games/decode/chunk.ts";
import { Damaged } from "../games/decode/schema.ts";
import { headerOf } from "../games/decode/stream.ts";
import { gameTime } from "../games/reading.ts";
import type { Header } from "../games/decode/stream.ts";
import { Delays } from "./delays.ts";
import type { Facts } from "./facts.ts";
import { NOTHING, factsOf } from "./facts.ts";
import { Steps } from "./steps.ts";
import type { End, Order, Place, State } from "./wire.ts";
import { parseMessage, reasonText } from "./wire.ts";

/** elsewhere: the same person has opened the game in another window, which plays it now. */
export type Link = "connecting" | "live" | "lost" | "elsewhere" | "ended";
export interface Happened { readonly time: number; readonly event: GameEvent }
/** An order that is marked on the map and on its button. */
export interface Pending { readonly n: number; readonly order: Order; readonly began: number; state: "sent" | "taken" | "refused"; frame: number; settled: number }
export interface Pinged { readonly who: string; readonly at: Place; readonly came: number }

const FIRST_WAIT_MS = 300, LONGEST_WAIT_MS = 5000, NEVER_BACK = [4003, 4004], TRIES_UNSEEN = 5;
// The server sends the state once a second while the game runs. A lost network does not close the connection, and the
// next one gets no answer.
const SILENCE_MS = 10_000, CHECK_MS = 1000;
const KEPT_EVENTS = 200, TRACE_MS = 1500, PING_MS = 4000;

export class Game {
  readonly header = signal<Header | null>(null);
  readonly link = signal<Link>("connecting");
  readonly state = signal<State | null>(null);
  readonly end = signal<End | null>(null);
  /** Text that is shown to the person for some seconds, such as a refusal's reason; "" for none. */
  readonly notice = signal("");
  readonly events = signal<readonly Happened[]>([]);
  /** Grows when an order is sent or answered, so that buttons show it at once. */
  readonly orders = signal(0);
  facts: Facts = NOTHING;
  steps: Steps | null = null;
  pending: Pending[] = [];
  pings: Pinged[] = [];
  /** Delay from the key to the answer, and to the first drawing of the frame in which the order took effect. */
  readonly answered = new Delays();
  readonly shown = new Delays();
  acks = 0;
  private readonly awaited: { readonly frame: number; readonly began: number }[] = [];
  private readonly address: string;
  private socket: WebSocket | null = null;
  private n = 0;
  private wait = FIRST_WAIT_MS;
  private timer = 0;
  private readonly silenceTimer: number;
  private receivedAt = 0;
  private noticeTimer = 0;
  private tries = 0;
  private elsewhere = false;
  private closed = false;
  private reading: Promise<void> = Promise.resolve();
  constructor(address: string) {
    this.address = address;
    this.connect();
    this.silenceTimer = window.setInterval(() => this.checkSilence(), CHECK_MS);
  }

  private connect(): void {
    const url = new URL(this.address, location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const socket = this.socket = new WebSocket(url);
    this.receivedAt = performance.now();
    socket.binaryType = "arraybuffer";
    socket.onmessage = (message: MessageEvent<string | ArrayBuffer>) => {
      if (socket !== this.socket) return;
      this.receivedAt = performance.now();
      if (typeof message.data === "string") { this.hear(message.data); return; }
      const data = new Uint8Array(message.data), at = performance.now();
      if (data[0] === 1) this.reading = this.begin(data.subarray(1), socket);
      else if (this.steps) this.see(data, at);
      // The header is decompressed in the background; later messages wait for it.
      else this.reading = this.reading.then(() => { if (socket === this.socket && this.steps) this.see(data, at); });
    };
    socket.onclose = (event) => { if (socket === this.socket) this.lose(event.code, event.reason); };
  }

  private async begin(packed: Uint8Array<ArrayBuffer>, socket: WebSocket): Promise<void> {
    this.steps = null;
    try {
      const header = await headerOf(packed, null);
      if (socket !== this.socket) return;
      this.facts = factsOf(header);
      this.steps = new Steps(header);
      this.header.value = header;
    } catch (error) {
      this.fail(error);
    }
  }

  private see(data: Uint8Array, at: number): void {
    const steps = this.steps!;
    try {
      const events = steps.take(data, at);
      if (this.link.peek() !== "live") this.link.value = "live";
      this.wait = FIRST_WAIT_MS;
      if (events.length) {
        const time = gameTime(steps.header.schema, steps.last!.frame);
        this.events.value = [...this.events.peek(), ...events.map((event) => ({ time, event }))].slice(-KEPT_EVENTS);
      }
    } catch (error) {
      this.fail(error);
    }
  }

  private fail(error: unknown): void {
    this.say(error instanceof Damaged ? error.message : "what came cannot be read");
    this.socket?.close();
  }

  private lose(code: number, reason: string): void {
    this.steps = null;
    this.settleAll();
    const letIn = this.header.peek() !== null || ++this.tries < TRIES_UNSEEN;
    if (this.elsewhere) {
      this.link.value = "elsewhere";
      return;
    }
    if (this.closed || this.end.peek() || NEVER_BACK.includes(code) || !letIn) {
      if (reason) this.say(reason);
      this.link.value = "ended";
      return;
    }
    this.link.value = "lost";
    this.timer = window.setTimeout(() => this.connect(), this.wait);
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT_MS);
  }

  private checkSilence(): void {
    const { socket } = this;
    const waits = socket?.readyState === WebSocket.CONNECTING ||
      (this.link.peek() === "live" && this.state.peek()?.running);
    if (!waits || performance.now() - this.receivedAt < SILENCE_MS) return;
    this.socket = null;
    socket?.close();
    this.lose(1006, "");
  }

  private settleAll(): void {
    this.pending = [];
    this.awaited.length = 0;
    this.n = 0;
    this.orders.value++;
  }

  private hear(text: string): void {
    const message = parseMessage(text);
    switch (message?.type) {
      case "state": this.state.value = message; break;
      case "end": this.end.value = message; break;
      case "refused":
        this.elsewhere = message.reason === "elsewhere";
        if (!this.elsewhere) this.say(reasonText(message.reason));
        break;
      case "ping": if (message.at) this.pings = [...this.recentPings(), { who: message.who, at: message.at, came: performance.now() }]; break;
      case "ack": {
        const found = this.pending.find((p) => p.n === message.n), now = performance.now();
        this.acks++;
        if (!found) break;
        found.state = message.ok ? "taken" : "refused";
        found.frame = message.frame;
        found.settled = now;
        this.answered.add(now - found.began);
        if (message.ok) this.awaited.push({ frame: message.frame, began: found.began });
        else this.say(reasonText(message.reason));
        this.orders.value++;
        break;
      }
    }
  }

  /** Shows a text to the person for some seconds. */
  say(text: string): void {
    this.notice.value = text;
    clearTimeout(this.noticeTimer);
    this.noticeTimer = window.setTimeout(() => { this.notice.value = ""; }, 4000);
  }

  private send(message: unknown): boolean {
    if (this.socket?.readyState !== WebSocket.OPEN) {
      this.say("the connection is lost");
      return false;
    }
    this.socket.send(JSON.stringify(message));
    return true;
  }

  /** Sends an order. `began` is the time stamp of the input event. */
  order(order: Order, began: number): void {
    const n = this.n + 1;
    if (!this.send({ type: "order", slot: -1, to: -1, item: "", queue: false, ...order, n })) return;
    this.n = n;
    this.pending = [...this.traces(), { n, order, began, state: "sent", frame: -1, settled: Infinity }];
    this.orders.value++;
  }

  /** Returns the orders that are still marked. */
  traces(): Pending[] {
    const now = performance.now();
    return this.pending.filter((p) => p.state === "sent" ? now - p.began < 10_000 : now - p.settled < TRACE_MS);
  }

  recentPings(): Pinged[] {
    const now = performance.now();
    return this.pings.filter((p) => now - p.came < PING_MS);
  }

  ping(at: Place): void { this.send({ type: "ping", at }); }

  /** Gives a hero to the agent, or takes it back. */
  hand(hero: number, held: boolean): void { this.send({ type: "hand", held, hero }); }

  /** Leaves the game and gives up the seat. */
  leave(): void {
    this.send({ type: "leave" });
    this.close();
  }

  /** Records that a frame has been drawn, for the delays of orders. */
  drew(frame: number): void {
    for (let k = this.awaited.length - 1; k >= 0; k--)
      if (frame >= this.awaited[k]!.frame) this.shown.add(performance.now() - this.awaited.splice(k, 1)[0]!.began);
  }

  /** Takes the game back from another window. */
  again(): void {
    this.elsewhere = false;
    this.link.value = "connecting";
    this.connect();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    clearTimeout(this.noticeTimer);
    clearInterval(this.silenceTimer);
    this.socket?.close();
    this.link.value = "ended";
  }
}
