// Game being watched, live or recorded: its chunks, and the decoded frames of the current ones.
import { signal } from "@preact/signals";
import type { GameEvent, Step } from "./decode/chunk.ts";
import { readChunk } from "./decode/chunk.ts";
import type { Header, Index } from "./decode/stream.ts";
import { Splitter } from "./decode/stream.ts";
import { Damaged } from "./decode/schema.ts";
import { gameTime, netWorth, radiantWins } from "./reading.ts";

const KEPT_CHUNKS = 6; // maximum number of decoded chunks
const LOST = "the connection to the controller was lost: reload the page to go on";
const TRACK_STEPS = 10; // steps between two points of a track, as in libs/dota/spectator/camera.py

export type TrackPoint = readonly [number, number | null, number, number];
export interface TimedEvent { readonly time: number; readonly event: GameEvent }

interface Held { readonly data: Uint8Array<ArrayBuffer>; readonly first: number; readonly steps: number; decoded?: Step[]; wanted?: Promise<Step[]>; used: number }

/** A live or recorded game. Its signals hold what has been received so far. */
export class Film {
  readonly header = signal<Header | null>(null);
  readonly steps = signal(0);
  readonly over = signal(false);
  readonly problem = signal("");
  readonly track = signal<readonly TrackPoint[]>([]);
  readonly events = signal<readonly TimedEvent[]>([]);
  private readonly held: Held[] = [];
  private readonly stop = new AbortController();
  private index: Index | null = null;
  private uses = 0;

  /** Reads the game from an address below /v1 until it ends or `close` is called. */
  read(address: string, live: boolean): Promise<void> {
    return this.whole(async () => {
      const answer = await fetch(address, { credentials: "same-origin", cache: "no-store", signal: this.stop.signal });
      if (!answer.ok || !answer.body) {
        const said = await answer.json().catch(() => ({}));
        throw new Damaged(String(said.detail ?? `the controller answered ${answer.status}`));
      }
      await this.take(answer.body.getReader(), live);
    });
  }

  /** Reads a recording from memory. */
  readBytes(data: Uint8Array<ArrayBuffer>): Promise<void> {
    return this.whole(() => this.take(new Blob([data]).stream().getReader(), false));
  }

  private async whole(reading: () => Promise<void>): Promise<void> {
    try {
      await reading();
    } catch (error) {
      if (!this.stop.signal.aborted)
        this.problem.value = error instanceof Damaged ? error.message : LOST;
    }
  }

  close(): void { this.stop.abort(); }

  private async take(reader: ReadableStreamDefaultReader<Uint8Array>, live: boolean): Promise<void> {
    const splitter = new Splitter();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      for (const piece of await splitter.take(value)) {
        if (piece.kind === "header") this.header.value = piece.header;
        else if (piece.kind === "chunk") await this.keep(piece.data, piece.steps, live);
        else if (piece.kind === "index") this.index = piece.index;
        else this.over.value = true;
      }
    }
    if (!this.header.peek()) throw new Damaged("the recording ends before its header does");
    if (!live || this.over.value) this.over.value = true;
    else if (!this.stop.signal.aborted) this.problem.value = LOST;
    if (this.index) {
      this.track.value = this.index.track;
      this.events.value = this.index.events.map((e) => ({ time: e.time, event: e as unknown as GameEvent }));
    } else if (!live) await this.survey();
  }

  private async keep(data: Uint8Array<ArrayBuffer>, steps: number, live: boolean): Promise<void> {
    const held: Held = { data, first: this.steps.peek(), steps, used: 0 };
    this.held.push(held);
    if (live) await this.note(held);
    this.steps.value = held.first + steps;
  }

  /** Decodes all chunks of a truncated recording, which has no index. */
  private async survey(): Promise<void> {
    for (const held of this.held) await this.note(held);
  }

  private async note(held: Held): Promise<void> {
    const header = this.header.peek();
    if (!header) throw new Damaged("a chunk comes before its header");
    const decoded = await this.decode(held);
    const points: TrackPoint[] = [], events: TimedEvent[] = [];
    decoded.forEach((step, k) => {
      const time = gameTime(header.schema, step.frame);
      if (k % TRACK_STEPS === 0)
        points.push([time, radiantWins(header.schema, step.frame), netWorth(header.schema, step.frame, 0), netWorth(header.schema, step.frame, 1)]);
      for (const event of step.events) events.push({ time, event });
    });
    this.track.value = [...this.track.peek(), ...points];
    if (events.length) this.events.value = [...this.events.peek(), ...events];
  }

  private decode(held: Held): Promise<Step[]> {
    held.used = ++this.uses;
    if (held.decoded) return Promise.resolve(held.decoded);
    return held.wanted ??= (async () => {
      const header = this.header.peek();
      if (!header) throw new Damaged("a chunk comes before its header");
      held.decoded = await readChunk(held.data, header.schema);
      delete held.wanted;
      const decoded = this.held.filter((h) => h.decoded).sort((a, b) => a.used - b.used);
      for (const old of decoded.slice(0, -KEPT_CHUNKS)) delete old.decoded;
      return held.decoded ?? [];
    })();
  }

  private find(step: number): Held | undefined {
    let low = 0, high = this.held.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1, held = this.held[middle]!;
      if (step < held.first) high = middle - 1;
      else if (step >= held.first + held.steps) low = middle + 1;
      else return held;
    }
    return undefined;
  }

  /** Returns a step, or starts to decode its chunk and returns undefined. Decodes the next chunk in advance. */
  at(step: number): Step | undefined {
    const held = this.find(step);
    if (!held) return undefined;
    const found = held.decoded?.[step - held.first];
    if (!found) void this.decode(held).catch((error: unknown) => this.fail(error));
    else {
      held.used = ++this.uses;
      const next = this.find(held.first + held.steps);
      if (next && !next.decoded && !next.wanted && step - held.first > held.steps / 2)
        void this.decode(next).catch((error: unknown) => this.fail(error));
    }
    return found;
  }

  /** Returns the step nearest to a game time, from the index or the received chunks. */
  stepAt(time: number): number {
    const header = this.header.peek(), first = this.track.peek()[0];
    if (!header || !first) return 0;
    return Math.max(0, Math.min(this.steps.peek() - 1, Math.round((time - first[0]) * header.steps_per_second)));
  }

  private fail(error: unknown): void {
    this.problem.value = error instanceof Damaged ? error.message : "this recording cannot be read";
  }
}
