// Received frames of a game, thirty a second, and the render position between two of them.
import type { GameEvent, Step } from "../games/decode/chunk.ts";
import { readStep } from "../games/decode/chunk.ts";
import type { Frame } from "../games/decode/schema.ts";
import { Damaged, copyFrame, emptyFrame } from "../games/decode/schema.ts";
import type { Header } from "../games/decode/stream.ts";
import { column, tableOf } from "../games/reading.ts";
import { BLINKED } from "../games/view/scene.ts";
import { ENGINE_FRAMES_PER_SECOND } from "./wire.ts";

const KEPT = 45, ARRIVALS = 60;
const FRAME_MS = 1000 / ENGINE_FRAMES_PER_SECOND;
const UNITS_A_FRAME = 100; // world units; a longer move within an engine frame is a jump
const FURTHEST_BEHIND = 2, ASTRAY = 10, SLEW_MS = 250; // frames, frames, and the time constant of catching up

type Bitmaps = Readonly<Record<string, Uint8Array>>;

/** Reuses the previous frame's bitmaps where they are equal, so that layers compare them by identity. */
function shared(bits: Bitmaps, before: Bitmaps): Bitmaps {
  const same = (a: Uint8Array, b: Uint8Array | undefined): b is Uint8Array => {
    if (a.length !== b?.length) return false;
    for (let k = 0; k < a.length; k++) if (a[k] !== b[k]) return false;
    return true;
  };
  return Object.fromEntries(Object.entries(bits).map(([name, now]) => [name, same(now, before[name]) ? before[name] : now]));
}

export interface Sample { readonly from: Step; readonly to: Step; readonly share: number; readonly frame: number }

export class Steps {
  readonly header: Header;
  /** The newest frame's number; -1 before the first. */
  newest = -1;
  decodeMs = 0;
  bytes = 0;
  private current: Frame | null = null;
  private readonly kept: { readonly frame: number; readonly step: Step }[] = [];
  private readonly offsets: number[] = [];
  private position = -1;
  private before = 0;
  constructor(header: Header) { this.header = header; }

  /** Decodes a message: 2 is a whole frame, 3 changes the previous one. `at`: its arrival, ms. Raises Damaged. */
  take(data: Uint8Array, at: number): readonly GameEvent[] {
    const began = performance.now();
    const kind = data[0], frame = new DataView(data.buffer, data.byteOffset, data.byteLength).getUint32(1, true);
    if (kind === 2) this.current = emptyFrame(this.header.schema);
    else if (kind !== 3 || !this.current) throw new Damaged("a change comes before its frame");
    const events = readStep(data.subarray(5), this.header.schema, this.current!);
    const last = this.kept[this.kept.length - 1], copy = copyFrame(this.current!);
    const step: Step = { frame: last ? { tables: copy.tables, bits: shared(copy.bits, last.step.frame.bits) } : copy, events };
    if (last && frame > last.frame) this.mark(last.step.frame, step.frame, frame - last.frame);
    else this.kept.length = 0;
    this.kept.push({ frame, step });
    if (this.kept.length > KEPT) this.kept.shift();
    this.newest = frame;
    this.offsets.push(at - frame * FRAME_MS);
    if (this.offsets.length > ARRIVALS) this.offsets.shift();
    this.bytes += data.length;
    this.decodeMs += performance.now() - began;
    return events;
  }

  /** The newest step. */
  get last(): Step | undefined { return this.kept[this.kept.length - 1]?.step; }

  // Marks jumps (blinks, teleports), which are not interpolated.
  private mark(before: Frame, now: Frame, frames: number): void {
    const table = tableOf(this.header.schema, "unit"), a = before.tables.unit, b = now.tables.unit;
    if (!table || !a || !b) return;
    const w = table.fields.length, x = column(table, "x"), y = column(table, "y"), type = column(table, "type"), look = column(table, "look");
    const far = UNITS_A_FRAME * frames * 65535 / this.header.map.extent;
    for (let at = 0; at < b.length; at += w)
      if (b[at + type] && a[at + type] && Math.hypot(b[at + x]! - a[at + x]!, b[at + y]! - a[at + y]!) > far) b[at + look]! |= BLINKED;
  }

  /** Returns what to draw now. It is behind the newest frame by the jitter of the last two seconds. */
  sample(now: number): Sample | undefined {
    if (!this.kept.length) return undefined;
    const sorted = [...this.offsets].sort((a, b) => a - b), least = sorted[0]!, most = sorted[Math.floor(sorted.length * 0.9)]!;
    const before = this.kept[this.kept.length - 2]?.frame ?? this.newest - 1;
    const wanted = (now - least) / FRAME_MS - (this.newest - before) - Math.min((most - least) / FRAME_MS, FURTHEST_BEHIND);
    const passed = Math.min(now - this.before, 1000);
    this.before = now;
    this.position += passed / FRAME_MS;
    const astray = wanted - this.position;
    this.position = Math.abs(astray) > ASTRAY ? wanted : this.position + astray * Math.min(passed / SLEW_MS, 1);
    this.position = Math.min(Math.max(this.position, this.kept[0]!.frame), this.newest);
    let k = this.kept.length - 1;
    while (k > 0 && this.kept[k]!.frame > this.position) k--;
    const from = this.kept[k]!, to = this.kept[k + 1] ?? from;
    return { from: from.step, to: to.step, frame: from.frame, share: to === from ? 0 : (this.position - from.frame) / (to.frame - from.frame) };
  }
}
