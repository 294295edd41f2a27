// Hit test under the cursor, and interpolated positions of units between two frames.
import type { Header } from "../games/decode/stream.ts";
import type { Frame } from "../games/decode/schema.ts";
import { column, plain, tableOf, value } from "../games/reading.ts";
import type { Camera } from "../games/view/camera.ts";
import { ALIVE, SIZES } from "../games/view/scene.ts";
import type { Place, UnitId } from "./wire.ts";

export interface Unit { readonly slot: number; readonly generation: number; readonly kind: string; readonly team: number; readonly hero: number; readonly x: number; readonly y: number; readonly name: string }

const LEAST_PIXELS = 14;

export const idOf = (unit: Unit): UnitId => [unit.slot, unit.generation];

/** Converts a frame's 16-bit positions to world units, and back. */
export const world = (header: Header, at: Place): readonly [number, number] =>
  [header.map.x + at[0] / 65535 * header.map.extent, header.map.y + at[1] / 65535 * header.map.extent];
export function quantised(header: Header, x: number, y: number): Place {
  const one = (v: number, low: number): number => Math.min(Math.max(Math.round((v - low) / header.map.extent * 65535), 0), 65535);
  return [one(x, header.map.x), one(y, header.map.y)];
}

/** Returns the unit in a slot if it is alive and the team sees it; -1 sees all. */
export function unitAt(header: Header, frame: Frame, slot: number, seen: number): Unit | null {
  const of = (field: string): number => value(header.schema, frame, "unit", slot, field);
  const look = of("look");
  if (!of("type") || !(look & ALIVE) || (seen >= 0 && !(look & 1 << 7 + seen))) return null;
  return { slot, generation: of("generation"), kind: header.names.kind?.[look & 15] ?? "", team: look >> 4 & 3, hero: (look >> 11) - 1, x: of("x"), y: of("y"),
    name: plain(header.names.unit?.[of("type") - 1] ?? "") };
}

/** Yields all living units that a team sees. */
export function* units(header: Header, frame: Frame, seen: number): Generator<Unit> {
  const table = tableOf(header.schema, "unit"), rows = frame.tables.unit;
  if (!table || !rows) return;
  const w = table.fields.length, type = column(table, "type");
  for (let slot = 0; slot * w < rows.length; slot++) {
    if (!rows[slot * w + type]) continue;
    const found = unitAt(header, frame, slot, seen);
    if (found) yield found;
  }
}

/** Returns the nearest unit under a pixel that `wanted` accepts; heroes come first. */
export function under(header: Header, frame: Frame, camera: Camera, px: number, py: number, seen: number, wanted: (unit: Unit) => boolean): Unit | null {
  let best: Unit | null = null, least = Infinity;
  for (const unit of units(header, frame, seen)) {
    const [x, y] = camera.at(...world(header, [unit.x, unit.y])), far = Math.hypot(x - px, y - py);
    const reach = Math.max(camera.length((SIZES[unit.kind] ?? 55) * 1.15), LEAST_PIXELS);
    if (far > reach || !wanted(unit)) continue;
    const rank = far - (unit.kind === "hero" ? 1000 : 0);
    if (rank < least) { least = rank; best = unit; }
  }
  return best;
}

/** Returns the position of a rune or item on the ground under a pixel. */
export function lying(header: Header, frame: Frame, camera: Camera, px: number, py: number): Place | null {
  for (const [name, what] of [["rune", "kind"], ["ground_item", "id"]] as const) {
    const rows = tableOf(header.schema, name)?.rows ?? 0;
    for (let k = 0; k < rows; k++) {
      if (!value(header.schema, frame, name, k, what)) continue;
      const at: Place = [value(header.schema, frame, name, k, "x"), value(header.schema, frame, name, k, "y")];
      const [x, y] = camera.at(...world(header, at));
      if (Math.hypot(x - px, y - py) < Math.max(camera.length(70), LEAST_PIXELS)) return at;
    }
  }
  return null;
}
