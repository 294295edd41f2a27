// Decoder of a recording's chunks (format: libs/dota/spectator/chunks.py). Input is untrusted: every read is checked,
// and damaged or hostile data throw Damaged.
import type { Bits, Frame, Schema, Table } from "./schema.ts";
import { Damaged, copyFrame, emptyFrame } from "./schema.ts";

export const HEAD = 32;
const MAX_STEPS = 1024, MAX_SIZE = 16 << 20;

export interface Head {
  readonly steps: number; readonly schema: string; readonly frame: number; readonly unpacked: number; readonly size: number;
}
export type GameEvent = Readonly<Record<string, unknown>> & { readonly kind: string };
export interface Step { readonly frame: Frame; readonly events: readonly GameEvent[] }

/** Returns the head of a chunk. Raises Damaged for a malformed one. */
export function readHead(data: Uint8Array): Head {
  if (data.length < HEAD) throw new Damaged("a chunk ends within its head");
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  if (view.getUint32(0, true) !== 0x48435646 || view.getUint16(4, true) !== 1)
    throw new Damaged("no chunk begins here, or one of another format");
  const head = {
    steps: view.getUint16(6, true), frame: view.getUint32(16, true), unpacked: view.getUint32(20, true),
    size: view.getUint32(24, true),
    schema: [...data.subarray(8, 16)].map((b) => b.toString(16).padStart(2, "0")).join(""),
  };
  if (head.steps < 1 || head.steps > MAX_STEPS || head.unpacked > MAX_SIZE || head.size > MAX_SIZE)
    throw new Damaged(`a chunk claims ${head.steps} steps in ${head.unpacked} bytes`);
  return head;
}

/** Decompresses zlib data to exactly `size` bytes. Raises Damaged for another size. */
export async function inflate(packed: Uint8Array<ArrayBuffer>, size: number): Promise<Uint8Array> {
  const raw = await inflateUpTo(packed, size);
  if (raw.length !== size) throw new Damaged("what is packed is smaller than it claims");
  return raw;
}

/** Decompresses zlib data to at most `most` bytes. Raises Damaged for more. */
export async function inflateUpTo(packed: Uint8Array<ArrayBuffer>, most: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.length;
      if (size > most) {
        void reader.cancel();
        throw new Damaged("what is packed is larger than it claims");
      }
      parts.push(value);
    }
  } catch (error) {
    throw error instanceof Damaged ? error : new Damaged("what is packed cannot be unpacked");
  }
  const raw = new Uint8Array(size);
  let at = 0;
  for (const part of parts) { raw.set(part, at); at += part.length; }
  return raw;
}

/** Returns the steps of a whole chunk. Raises Damaged. */
export async function readChunk(data: Uint8Array<ArrayBuffer>, schema: Schema): Promise<Step[]> {
  const head = readHead(data);
  if (schema.hash && head.schema !== schema.hash) throw new Damaged("a chunk is of another schema than its recording");
  if (data.length !== HEAD + head.size) throw new Damaged("a chunk is cut short");
  return readSteps(await inflate(data.subarray(HEAD), head.unpacked), head.steps, schema);
}

/** Returns the steps in a chunk's decompressed bytes. Raises Damaged. */
function readSteps(raw: Uint8Array, steps: number, schema: Schema): Step[] {
  const cursor = new Cursor(raw);
  const frame = emptyFrame(schema);
  const found: Step[] = [];
  for (let k = 0; k < steps; k++) {
    const events = change(cursor, schema, frame);
    found.push({ frame: copyFrame(frame), events });
  }
  if (cursor.left) throw new Damaged("a chunk goes on behind its last step");
  return found;
}

/** Applies a step outside a chunk to a frame, and returns its events. Raises Damaged for malformed bytes. */
export function readStep(raw: Uint8Array, schema: Schema, frame: Frame): GameEvent[] {
  const cursor = new Cursor(raw);
  const events = change(cursor, schema, frame);
  if (cursor.left) throw new Damaged("a step goes on behind its events");
  return events;
}

function change(cursor: Cursor, schema: Schema, frame: Frame): GameEvent[] {
  for (const table of schema.tables) readTable(cursor, table, frame.tables[table.name]!);
  for (const bits of schema.bits) readBits(cursor, bits, frame.bits[bits.name]!);
  return readEvents(cursor);
}

class Cursor {
  private at = 0;
  private readonly data: Uint8Array;
  constructor(data: Uint8Array) { this.data = data; }

  get left(): number { return this.data.length - this.at; }

  /** Skips `count` bytes and returns the offset of the first. Raises Damaged if there are fewer. */
  take(count: number): number {
    if (count > this.left) throw new Damaged("a chunk ends within a step");
    const at = this.at;
    this.at += count;
    return at;
  }

  word(): number {
    const at = this.take(2);
    return this.data[at]! | this.data[at + 1]! << 8;
  }

  bytes(count: number): Uint8Array {
    const at = this.take(count);
    return this.data.subarray(at, at + count);
  }
}

function readTable(cursor: Cursor, table: Table, into: Uint16Array): void {
  const n = cursor.word();
  if (!n) return;
  const rows = cursor.bytes(2 * n), masks = cursor.bytes(2 * n * table.masks);
  const width = table.fields.length, words = table.masks;
  let changed = 0;
  for (const byte of masks) for (let b = byte; b; b &= b - 1) changed++;
  const low = cursor.bytes(changed), high = cursor.bytes(changed);
  let value = 0, before = -1;
  for (let i = 0; i < n; i++) {
    const row = rows[2 * i]! | rows[2 * i + 1]! << 8;
    if (row >= table.rows || row <= before)
      throw new Damaged(`a chunk changes rows that table ${table.name} does not have, or one twice`);
    before = row;
    for (let w = 0; w < words; w++) {
      const at = 2 * (i * words + w);
      let mask = masks[at]! | masks[at + 1]! << 8;
      while (mask) {
        const field = 16 * w + 31 - Math.clz32(mask & -mask);
        mask &= mask - 1;
        if (field >= width) throw new Damaged(`a chunk changes fields that table ${table.name} does not have`);
        into[row * width + field] = into[row * width + field]! + (low[value]! | high[value]! << 8);
        value++;
      }
    }
  }
}

function readBits(cursor: Cursor, bits: Bits, into: Uint8Array): void {
  const n = cursor.word();
  const low = cursor.bytes(n), high = cursor.bytes(n);
  let at = 0, flips = false;
  for (let i = 0; i <= n; i++) {
    const run = i < n ? low[i]! | high[i]! << 8 : bits.count - at;
    if ((run === 0 && i > 0 && i < n) || at + run > bits.count || (i < n && at + run >= bits.count))
      throw new Damaged(`a chunk flips bits that ${bits.name} does not have`);
    if (flips) flip(into, at, at + run);
    at += run;
    if (i < n) flips = !flips;
    if (!n) return;
  }
}

function flip(into: Uint8Array, from: number, to: number): void {
  let at = from;
  while (at < to && at & 7) { into[at >> 3]! ^= 1 << (at & 7); at++; }
  while (at + 8 <= to) { into[at >> 3]! ^= 255; at += 8; }
  while (at < to) { into[at >> 3]! ^= 1 << (at & 7); at++; }
}

function readEvents(cursor: Cursor): GameEvent[] {
  const size = cursor.word() + cursor.word() * 65536;
  if (!size) return [];
  let events: unknown;
  try {
    events = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(cursor.bytes(size)));
  } catch (error) {
    throw error instanceof Damaged ? error : new Damaged("a chunk's events cannot be read");
  }
  const isEvent = (e: unknown): e is GameEvent =>
    typeof e === "object" && e !== null && !Array.isArray(e) && typeof (e as { kind?: unknown }).kind === "string";
  if (!Array.isArray(events) || !events.every(isEvent)) throw new Damaged("a chunk's events are not a list of events");
  return events;
}
