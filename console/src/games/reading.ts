// Accessors for the numbers of a frame (libs/dota/core/bindings/tables_seen.cpp, libs/dota/spectator/camera.py).
import type { Frame, Schema, Table } from "./decode/schema.ts";

const tables = new WeakMap<Schema, Map<string, Table>>();
const columns = new WeakMap<Table, Map<string, number>>();

/** Returns a table of a schema; undefined if the recording is older than the table. */
export function tableOf(schema: Schema, name: string): Table | undefined {
  let known = tables.get(schema);
  if (!known) tables.set(schema, known = new Map(schema.tables.map((t) => [t.name, t])));
  return known.get(name);
}

/** Returns a field's position in its table's rows; -1 if the recording is older than the field. */
export function column(table: Table, field: string): number {
  let known = columns.get(table);
  if (!known) columns.set(table, known = new Map(table.fields.map((f, k) => [f, k])));
  return known.get(field) ?? -1;
}

/** Returns a value; 0 if the recording lacks its table or field. */
export function value(schema: Schema, frame: Frame, name: string, row: number, field: string): number {
  const table = tableOf(schema, name);
  if (!table) return 0;
  const at = column(table, field);
  return at < 0 ? 0 : frame.tables[name]?.[row * table.fields.length + at] ?? 0;
}

/** Returns 16 bits as a signed number. */
export const signed = (v: number): number => (v << 16) >> 16;

/** Returns the time of a frame, seconds since the horn. */
export function gameTime(schema: Schema, frame: Frame): number {
  return (value(schema, frame, "clock", 0, "time") | value(schema, frame, "clock", 0, "time_high") << 16) / 100;
}

/** Converts a moment in ticks to seconds since the horn. Callers check for 0, which stands for none. */
export const moment = (ticks: number): number => ticks / 15 - 100;

export function netWorth(schema: Schema, frame: Frame, team: number): number {
  let sum = 0;
  for (let h = team * 5; h < team * 5 + 5; h++) sum += value(schema, frame, "hero", h, "net_worth");
  return sum;
}

/** Returns Radiant's win probability, the mean of what both teams' policies report; null if neither does. */
export function radiantWins(schema: Schema, frame: Frame): number | null {
  const seen: number[] = [];
  for (const team of [0, 1]) {
    if (!(value(schema, frame, "thought", team * 5, "known") & 2)) continue;
    const p = value(schema, frame, "thought", team * 5, "win") / 65535;
    seen.push(team ? 1 - p : p);
  }
  return seen.length ? seen.reduce((a, b) => a + b) / seen.length : null;
}

/** Formats a game time: "7:05", "-0:30". */
export function clock(seconds: number): string {
  const s = Math.floor(Math.abs(seconds));
  return `${seconds < 0 ? "-" : ""}${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`;
}

/** Formats a name of the game's data: "npc_dota_hero_crystal_maiden" is "crystal maiden". */
export function plain(name: string): string {
  return name.replace(/^npc_dota_(hero_)?|^item_/, "").replaceAll("_", " ");
}
