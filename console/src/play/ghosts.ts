// Enemy buildings out of sight: shown at their last known position until they are seen to be gone.
import type { Frame } from "../games/decode/schema.ts";
import type { Header } from "../games/decode/stream.ts";
import type { Facts } from "./facts.ts";
import { quantised, units } from "./picking.ts";
import type { Place } from "./wire.ts";

const NEAR = 400; // 65535ths; buildings are further apart than this
const KINDS = new Set(["tower", "barracks", "fort", "shrine"]);

export interface Ghost { readonly kind: string; readonly team: number; readonly at: Place; readonly x: number; readonly y: number }

export class Ghosts {
  private left: Ghost[];
  private shown: readonly Ghost[] = [];
  private looked = -1;
  private readonly header: Header;
  private readonly team: number;
  constructor(header: Header, facts: Facts, team: number) {
    this.header = header;
    this.team = team;
    this.left = facts.buildings.filter(([kind, side]) => KINDS.has(kind) && (side === "dire" ? 1 : 0) !== team)
      .map(([kind, side, x, y]) => ({ kind, team: side === "dire" ? 1 : 0, at: quantised(header, x, y), x, y }));
  }

  /** Returns the buildings that a frame does not show. One whose visible position is empty has fallen. */
  of(frame: Frame, number: number): readonly Ghost[] {
    if (number - this.looked < 15 && number >= this.looked) return this.shown;
    this.looked = number;
    const standing = [...units(this.header, frame, this.team)].filter((unit) => KINDS.has(unit.kind));
    const bits = frame.bits[this.team ? "dire_fog" : "radiant_fog"], { map } = this.header, n = map.fog_cells;
    const seen = (ghost: Ghost): boolean => {
      const cell = Math.floor((ghost.y - map.y) / map.extent * n) * n + Math.floor((ghost.x - map.x) / map.extent * n);
      return bits !== undefined && (bits[cell >> 3]! >> (cell & 7) & 1) === 1;
    };
    const there = (ghost: Ghost): boolean => standing.some((unit) => Math.hypot(unit.x - ghost.at[0], unit.y - ghost.at[1]) < NEAR);
    const shown: Ghost[] = [];
    this.left = this.left.filter((ghost) => {
      if (there(ghost)) return true;
      if (seen(ghost)) return false;
      shown.push(ghost);
      return true;
    });
    return this.shown = shown;
  }
}
