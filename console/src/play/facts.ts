// Game data from the header (libs/dota/spectator/facts.py), and a hero's state in a frame.
import type { Header } from "../games/decode/stream.ts";
import type { Frame } from "../games/decode/schema.ts";
import { moment, tableOf, value } from "../games/reading.ts";
import type { UnitId } from "./wire.ts";

export type Aim = "unit" | "point" | "none";
export interface Used {
  readonly aim: readonly Aim[]; readonly range: readonly number[]; readonly area: readonly number[]; readonly mana: readonly number[];
  readonly cooldown: readonly number[]; readonly sides: readonly string[];
}
export interface AbilityFacts extends Used {
  readonly passive: boolean; readonly toggle: boolean; readonly autocast: boolean; readonly ultimate: boolean; readonly learned: boolean;
  readonly ranks: number; readonly from_level: number; readonly levels_between: number;
}
export interface ItemFacts extends Used {
  readonly cost: number; readonly parts: readonly string[]; readonly recipe: number; readonly shops: readonly string[];
}
export interface HeroFacts {
  readonly name: string; readonly range: number; readonly start: readonly string[]; readonly build: readonly string[];
  readonly talents: readonly (readonly [number, string, string])[];
}
/** Kind, side, and position in world units. */
export type Standing = readonly [string, string, number, number];
export interface Facts {
  readonly heroes: Readonly<Record<string, HeroFacts>>; readonly abilities: Readonly<Record<string, AbilityFacts>>;
  readonly items: Readonly<Record<string, ItemFacts>>; readonly xp: readonly number[]; readonly no_point: readonly number[];
  readonly shops: readonly Standing[]; readonly buildings: readonly Standing[]; readonly buyback: readonly number[];
  readonly daySeconds: readonly number[];
}

/** Facts of a header without game data. */
export const NOTHING: Facts = { heroes: {}, abilities: {}, items: {}, xp: [], no_point: [], shops: [], buildings: [], buyback: [], daySeconds: [] };

const numbers = (v: unknown): readonly number[] => Array.isArray(v) ? v.map(Number).filter(Number.isFinite) : [];
const texts = (v: unknown): readonly string[] => Array.isArray(v) ? v.map(String) : [];
const record = (v: unknown): Record<string, Record<string, unknown>> =>
  typeof v === "object" && v !== null && !Array.isArray(v) ? v as Record<string, Record<string, unknown>> : {};

function standing(v: unknown): readonly Standing[] {
  return (Array.isArray(v) ? v : []).map((s: unknown[]) => [String(s[0]), String(s[1]), Number(s[2]), Number(s[3])] as const);
}

function used(v: Record<string, unknown>): Used {
  return { aim: texts(v.aim) as readonly Aim[], range: numbers(v.range), area: numbers(v.area), mana: numbers(v.mana), cooldown: numbers(v.cooldown),
    sides: texts(v.sides) };
}

function each<T>(v: unknown, make: (value: Record<string, unknown>) => T): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(record(v)).map(([name, given]) => [name, make(given ?? {})]));
}

/** Returns the facts in a header. Without them abilities and items have neither range nor cost. */
export function factsOf(header: Header): Facts {
  const given = header.play as Record<string, unknown> | undefined;
  if (!given || typeof given !== "object") return NOTHING;
  return {
    heroes: each(given.heroes, (h) => ({ name: String(h.name ?? ""), range: Number(h.range) || 0, start: texts(h.start), build: texts(h.build),
      talents: (Array.isArray(h.talents) ? h.talents : []).map((t: unknown[]) => [Number(t[0]), String(t[1]), String(t[2])] as const) })),
    abilities: each(given.abilities, (a) => ({ ...used(a), passive: a.passive === true, toggle: a.toggle === true, autocast: a.autocast === true,
      ultimate: a.ultimate === true, learned: a.learned !== false, ranks: Number(a.ranks) || 0, from_level: Number(a.from_level) || 1,
      levels_between: Number(a.levels_between) || 0 })),
    items: each(given.items, (i) => ({ ...used(i), cost: Number(i.cost) || 0, parts: texts(i.parts), recipe: Number(i.recipe) || 0, shops: texts(i.shops) })),
    xp: numbers(given.xp), no_point: numbers(given.no_point), buyback: numbers(given.buyback), daySeconds: numbers(given.day_seconds),
    shops: standing(given.shops), buildings: standing(given.buildings),
  };
}

export interface AbilityNow { readonly slot: number; readonly name: string; readonly level: number; readonly charges: number; readonly ready: number; readonly facts: AbilityFacts | undefined }
export interface ItemNow { readonly slot: number; readonly name: string; readonly charges: number; readonly ready: number; readonly facts: ItemFacts | undefined }
export interface HeroNow {
  readonly hero: number; readonly slot: number; readonly unit: UnitId | null; readonly type: string; readonly level: number; readonly gold: number; readonly xp: number;
  readonly hp: number; readonly maxHp: number; readonly mana: number; readonly maxMana: number; readonly alive: boolean; readonly x: number; readonly y: number;
  readonly respawn: number; readonly buyback: number; readonly netWorth: number; readonly talents: number; readonly points: number;
  readonly abilities: readonly AbilityNow[]; readonly items: readonly ItemNow[];
}

export const INVENTORY = 6, BACKPACK = 3, STASH = 6, SCROLL = 15;

/** Returns a hero's state: moments in seconds since the horn, 0 for none; x and y in the frame's 16 bits. */
export function heroNow(header: Header, facts: Facts, frame: Frame, hero: number): HeroNow {
  const { schema, names } = header;
  const of = (field: string): number => value(schema, frame, "hero", hero, field);
  const slot = of("unit") - 1, unit = (field: string): number => slot < 0 ? 0 : value(schema, frame, "unit", slot, field);
  const rows = (table: string): number => Math.floor((tableOf(schema, table)?.rows ?? 0) / 10);
  const at = (ticks: number): number => ticks ? moment(ticks) : 0;
  const abilities: AbilityNow[] = [], items: ItemNow[] = [];
  for (let k = 0, n = rows("ability"); k < n; k++) {
    const row = hero * n + k, id = value(schema, frame, "ability", row, "id"), name = names.ability?.[id - 1] ?? "";
    if (id) abilities.push({ slot: k, name, level: value(schema, frame, "ability", row, "level"), charges: value(schema, frame, "ability", row, "charges"),
      ready: at(value(schema, frame, "ability", row, "ready")), facts: facts.abilities[name] });
  }
  for (let k = 0, n = rows("item"); k < n; k++) {
    const row = hero * n + k, id = value(schema, frame, "item", row, "id"), name = id ? names.item?.[id - 1] ?? "" : "";
    items.push({ slot: k, name, charges: value(schema, frame, "item", row, "charges"), ready: at(value(schema, frame, "item", row, "ready")), facts: facts.items[name] });
  }
  const level = of("level"), talents = of("talents") | of("talents_high") << 16;
  const spent = abilities.filter((a) => a.facts?.learned !== false).reduce((sum, a) => sum + a.level, 0) + bits(talents);
  const earned = level - facts.no_point.filter((l) => l <= level).length;
  return {
    hero, slot, unit: slot < 0 ? null : [slot, unit("generation")], type: unit("type") ? names.unit?.[unit("type") - 1] ?? "" : "", level, gold: of("gold"), xp: of("xp"),
    hp: unit("hp"), maxHp: unit("max_hp"), mana: unit("mana"), maxMana: unit("max_mana"), alive: (unit("look") & 1 << 6) !== 0, x: unit("x"), y: unit("y"),
    respawn: at(of("respawn")), buyback: at(of("buyback")), netWorth: of("net_worth"), talents, points: Math.max(earned - spent, 0), abilities, items,
  };
}

function bits(mask: number): number {
  let n = 0;
  for (let m = mask; m; m &= m - 1) n++;
  return n;
}

/** Returns the value of a rank: lists hold one for each rank, or one for all. 0 for an empty list. */
export const atRank = (values: readonly number[], rank: number): number => values[Math.min(Math.max(rank, 1), values.length) - 1] ?? 0;

/** Returns whether a point can be spent on an ability at the hero's level. */
export function mayLearn(ability: AbilityNow, hero: HeroNow): boolean {
  const f = ability.facts;
  return f !== undefined && f.learned && hero.points > 0 && ability.level < f.ranks && hero.level >= f.from_level + ability.level * f.levels_between;
}

/** Returns the seconds until day or night ends; null if unknown. */
export function skyChanges(facts: Facts, time: number): number | null {
  const [day = 0, night = 0] = facts.daySeconds;
  if (!day || !night || time < 0) return null;
  const within = time % (day + night);
  return (within < day ? day : day + night) - within;
}

/** Returns the present cost of a buyback. */
export const buybackCost = (facts: Facts, hero: HeroNow): number => Math.round((facts.buyback[0] ?? 0) + hero.netWorth / (facts.buyback[1] || Infinity));

/** Returns the slots of a hero's abilities by key: the ultimate is R, the others are Q W E D F. */
export function abilityKeys(abilities: readonly AbilityNow[]): ReadonlyMap<string, number> {
  const others = ["q", "w", "e", "d", "f", "r"], found = new Map<string, number>();
  const ultimate = abilities.find((a) => a.facts?.ultimate);
  if (ultimate) { found.set("r", ultimate.slot); others.pop(); }
  for (const ability of abilities) if (ability !== ultimate) { const key = others.shift(); if (key) found.set(key, ability.slot); }
  return found;
}
