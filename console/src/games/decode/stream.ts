// Stream decoder of a recording, from a file or a live game: header, chunks, and an index or an end.
import { HEAD, inflate, inflateUpTo, readHead } from "./chunk.ts";
import type { Schema } from "./schema.ts";
import { Damaged, schemaOf } from "./schema.ts";

const MAX_HEADER = 8 << 20, MAX_INDEX = 16 << 20;

/** Header of a recording. Its texts are untrusted: they are only shown as text. */
export interface Header {
  readonly steps_per_second: number; readonly patch: string; readonly mode: string;
  readonly names: Readonly<Record<string, readonly string[]>>;
  readonly map: {
    readonly x: number; readonly y: number; readonly extent: number; readonly cells: number; readonly fog_cells: number;
    readonly elevation: readonly number[]; readonly trees: readonly (readonly [number, number])[];
  };
  readonly about: Readonly<Record<string, unknown>>;
  readonly schema: Schema;
  /** In a played game, the hero whose view it is; -1: none. */
  readonly hero: number;
  /** Game data for players, read by play/facts.ts. Older recordings lack it. */
  readonly play: unknown;
}

/** chunks: [offset, frame, time, steps]; track: [time, Radiant's win probability, net worth of Radiant, of Dire]. */
export interface Index {
  readonly chunks: readonly (readonly [number, number, number, number])[];
  readonly events: readonly (Readonly<Record<string, unknown>> & { kind: string; time: number })[];
  readonly track: readonly (readonly [number, number | null, number, number])[];
}

export type Piece =
  { readonly kind: "header"; readonly header: Header } | { readonly kind: "chunk"; readonly data: Uint8Array<ArrayBuffer>; readonly steps: number } |
  { readonly kind: "index"; readonly index: Index } | { readonly kind: "end" };

/** Returns the header in zlib data of `size` decompressed bytes; null: at most `most`. Raises Damaged. */
export async function headerOf(packed: Uint8Array<ArrayBuffer>, size: number | null, most = MAX_HEADER): Promise<Header> {
  let given: Record<string, unknown>;
  try {
    given = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(await (size === null ? inflateUpTo(packed, most) : inflate(packed, size))));
  } catch (error) {
    throw error instanceof Damaged ? error : new Damaged("its header cannot be read");
  }
  if (given?.format !== 1) throw new Damaged("its header is of another format");
  const schema = await schemaOf(given.schema);
  const names = given.names as Record<string, unknown> | undefined;
  const map = given.map as Header["map"] | undefined;
  const isNumbers = (v: unknown): boolean => Array.isArray(v) && v.every((n) => Number.isFinite(n));
  if (!names || !["unit", "ability", "item", "kind", "action"].every((n) => Array.isArray(names[n]) &&
      (names[n] as unknown[]).every((t) => typeof t === "string")))
    throw new Damaged("its header lacks required names");
  if (!map || ![map.x, map.y, map.extent, map.cells, map.fog_cells].every(Number.isFinite) || map.extent <= 0 ||
      map.cells < 1 || map.cells > 1024 || map.fog_cells < 1 || map.fog_cells > 256 || !isNumbers(map.elevation) ||
      !Array.isArray(map.trees) || !map.trees.every((t) => isNumbers(t) && t.length >= 2))
    throw new Damaged("its header lacks the map");
  const rate = Number(given.steps_per_second);
  if (!(rate > 0 && rate < 1000)) throw new Damaged("its header lacks the rate of its steps");
  return {
    steps_per_second: rate, patch: String(given.patch), mode: String(given.mode), names: names as Header["names"], map,
    about: typeof given.about === "object" && given.about !== null ? given.about as Record<string, unknown> : {}, schema,
    hero: Number.isInteger(given.hero) ? Number(given.hero) : -1, play: given.play,
  };
}

/** Splits a stream of bytes into the pieces of a recording. */
export class Splitter {
  private waiting = new Uint8Array(1 << 16);
  private size = 0;
  private begun = false;

  /** Adds bytes and returns the complete pieces. Raises Damaged for bytes that do not belong to a recording. */
  async take(data: Uint8Array): Promise<Piece[]> {
    if (this.size + data.length > this.waiting.length) {
      const larger = new Uint8Array(2 * (this.size + data.length));
      larger.set(this.waiting.subarray(0, this.size));
      this.waiting = larger;
    }
    this.waiting.set(data, this.size);
    this.size += data.length;
    const found: Piece[] = [];
    for (;;) {
      const piece = await this.next();
      if (!piece) return found;
      found.push(piece);
    }
  }

  private drop(count: number): Uint8Array<ArrayBuffer> {
    const taken = this.waiting.slice(0, count);
    this.waiting.copyWithin(0, count, this.size);
    this.size -= count;
    return taken;
  }

  private async next(): Promise<Piece | undefined> {
    const view = new DataView(this.waiting.buffer, 0, this.size);
    if (!this.begun) {
      if (this.size < 16) return undefined;
      if (new TextDecoder().decode(this.waiting.subarray(0, 8)) !== "FIVEVIEW") throw new Damaged("this is no recording");
      const unpacked = view.getUint32(8, true), packed = view.getUint32(12, true);
      if (unpacked > MAX_HEADER || packed > MAX_HEADER) throw new Damaged("its header is larger than any may be");
      if (this.size < 16 + packed) return undefined;
      const header = await headerOf(this.drop(16 + packed).subarray(16), unpacked);
      this.begun = true;
      return { kind: "header", header };
    }
    if (this.size < 4) return undefined;
    const magic = view.getUint32(0, true);
    if (magic === 0x4e455646) { // FVEN
      this.drop(4);
      return { kind: "end" };
    }
    if (magic === 0x58495646) { // FVIX
      if (this.size < 12) return undefined;
      const unpacked = view.getUint32(4, true), packed = view.getUint32(8, true);
      if (unpacked > MAX_INDEX || packed > MAX_INDEX) throw new Damaged("its index is larger than any may be");
      if (this.size < 20 + packed) return undefined;
      return { kind: "index", index: await indexOf(this.drop(20 + packed).subarray(12, 12 + packed), unpacked) };
    }
    if (this.size < HEAD) return undefined;
    const head = readHead(this.waiting.subarray(0, HEAD));
    if (this.size < HEAD + head.size) return undefined;
    return { kind: "chunk", data: this.drop(HEAD + head.size), steps: head.steps };
  }
}

async function indexOf(packed: Uint8Array<ArrayBuffer>, size: number): Promise<Index> {
  let given: Index;
  try {
    given = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(await inflate(packed, size)));
  } catch (error) {
    throw error instanceof Damaged ? error : new Damaged("its index cannot be read");
  }
  const isNumber = (n: unknown): boolean => typeof n === "number" && Number.isFinite(n);
  if (!Array.isArray(given?.chunks) || !Array.isArray(given.events) || !Array.isArray(given.track) ||
      !given.events.every((e) => typeof e?.kind === "string" && isNumber(e.time)) ||
      !given.track.every((t) => Array.isArray(t) && isNumber(t[0]) && (t[1] === null || isNumber(t[1])) && isNumber(t[2]) && isNumber(t[3])))
    throw new Damaged("its index cannot be read");
  return given;
}
