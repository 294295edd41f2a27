// Accessors for the numbers of a frame (libs/dota/core/bindings/tables_seen.cpp, libs/dota/spectator/camera.py).
import type { Frame, Schema, Table } from "./decode/schema.ts";

const tables = new WeakMap<Schema, Map<string, Table>>();
const columns = new WeakMap<Table, Map<string, number>>();

/** A table of a schema; undefined where recordings of that time had none. */
export function tableOf(schema: Schema, name: string): Table | undefined {
  let known = tables.get(schema);
  if (!known) tables.set(schema, known = new Map(schema.tables.map((t) => [t.name, t])));
  return known.get(name);
}

/** Where a field stands in its table's rows; -1 where recordings of that time had none. */
export function column(table: Table, field: string): number {
  let known = columns.get(table);
  if (!known) columns.set(table, known = new Map(table.fields.map((f, k) => [f, k])));
  return known.get(field) ?? -1;
}

/** A value; 0 where there is none. */
export function value(schema: Schema, frame: Frame, name: string, row: number, field: string): number {
  const table = tableOf(schema, name);
  if (!table) return 0;
  const at = column(table, field);
  return at < 0 ? 0 : frame.tables[name]?.[row * table.fields.length + at] ?? 0;
}

/** A signed number in 16 bits. */
export const signed = (v: number): number => (v << 16) >> 16;

/** Seconds since the horn. */
export function gameTime(schema: Schema, frame: Frame): number {
  return (value(schema, frame, "clock", 0, "time") | value(schema, frame, "clock", 0, "time_high") << 16) / 100;
}

/** Seconds since the horn of a moment in ticks; 0 stands for none. */
export const moment = (ticks: number): number => ticks / 15 - 100;

export function netWorth(schema: Schema, frame: Frame, team: number): number {
  let sum = 0;
  for (let h = team * 5; h < team * 5 + 5; h++) sum += value(schema, frame, "hero", h, "net_worth");
  return sum;
}

/** Radiant's win probability as both teams see it, null where neither says. */
export function radiantWins(schema: Schema, frame: Frame): number | null {
  const seen: number[] = [];
  for (const team of [0, 1]) {
    if (!(value(schema, frame, "thought", team * 5, "known") & 2)) continue;
    const p = value(schema, frame, "thought", team * 5, "win") / 65535;
    seen.push(team ? 1 - p : p);
  }
  return seen.length ? seen.reduce((a, b) => a + b) / seen.length : null;
}

/** "7:05", "-0:30". */
export function clock(seconds: number): string {
  const s = Math.floor(Math.abs(seconds));
  return `${seconds < 0 ? "-" : ""}${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`;
}

/** A name of the game's data as people read it: "npc_dota_hero_crystal_maiden" is "crystal maiden". */
export function plain(name: string): string {
  return name.replace(/^npc_dota_(hero_)?|^item_/, "").replaceAll("_", " ");
}
