// Commands of keys and clicks: immediate, or with a cursor that waits for a target.
import { signal } from "@preact/signals";
import type { Aim, Used } from "./facts.ts";
import type { Unit } from "./picking.ts";
import { idOf } from "./picking.ts";
import type { Order, OrderKind, Place } from "./wire.ts";

/** An order that waits for its target. Ranges are in world units, 0 for none. */
export interface Aiming {
  readonly kind: OrderKind; readonly slot: number; readonly name: string; readonly aim: readonly Aim[]; readonly sides: readonly string[]; readonly range: number;
  readonly area: number; readonly queue: boolean;
}

export const aiming = signal<Aiming | null>(null);

/** Returns the aimed attack. */
export const attacking = (range: number, queue: boolean): Aiming =>
  ({ kind: "attack_move", slot: 0, name: "attack", aim: ["unit", "point"], sides: ["both"], range, area: 0, queue });

/** Returns the aimed order of an ability or item; null if it takes no target. */
export function aimed(kind: OrderKind, slot: number, name: string, used: Used, rank: number, queue: boolean): Aiming | null {
  const aim = used.aim.filter((a) => a !== "none");
  if (!aim.length) return null;
  const at = (values: readonly number[]): number => values[Math.min(Math.max(rank, 1), values.length) - 1] ?? 0;
  return { kind, slot, name, aim, sides: used.sides, range: at(used.range), area: at(used.area), queue };
}

/** Returns whether a unit is a valid target. Targets that the game's data call custom are not checked. */
export function suits(aiming: Aiming, unit: Unit, team: number): boolean {
  const { sides } = aiming;
  if (!sides.length || sides.includes("both") || sides.includes("custom")) return true;
  return unit.team === team ? sides.includes("friendly") : sides.includes("enemy");
}

/** Returns the order of a click on a unit or a position; null if that is no valid target. */
export function resolve(aiming: Aiming, unit: Unit | null, at: Place): Order | null {
  const base = { slot: aiming.slot, queue: aiming.queue };
  if (aiming.kind === "attack_move") return unit ? { kind: "attack", target: idOf(unit), queue: aiming.queue } : { kind: "attack_move", at, queue: aiming.queue };
  if (unit && aiming.aim.includes("unit")) return { ...base, kind: aiming.kind, target: idOf(unit), at };
  // Trees are not units: abilities that target one use the tree nearest to the position.
  if (aiming.aim.includes("point") || aiming.sides.includes("custom")) return { ...base, kind: aiming.kind, at };
  return null;
}

/** Returns the order of a right click: attack an enemy, use a shrine, follow a friend, pick up an item, or move. */
export function smart(unit: Unit | null, lies: Place | null, at: Place, team: number, queue: boolean): Order {
  if (unit && unit.team !== team) return { kind: "attack", target: idOf(unit), queue };
  if (unit && unit.kind === "shrine") return { kind: "shrine", target: idOf(unit), queue };
  if (unit) return { kind: "follow", target: idOf(unit), queue };
  if (lies) return { kind: "pickup", at: lies, queue };
  return { kind: "move", at, queue };
}
