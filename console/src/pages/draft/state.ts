// Draft state in the URL, so that it can be saved and shared: ?radiant=lion,sven&dire=axe&banned=&order=&side=R.
import { computed } from "@preact/signals";
import { note, query } from "../../shell/route";

export type Team = "R" | "D";

export interface PairOfHeroes { hero: string; other: string; allied: boolean; games: number }
export interface Choice { hero: string; win: number; own: number; played: number | null; rarest: PairOfHeroes | null }
export interface Draft {
  table: string; heroes: string[]; team: number; shared: boolean; line_ups: number; facts: Record<string, unknown>;
  order: string; to_move: Team | ""; radiant: string[]; dire: string[]; banned: string[]; win: number; choices: Choice[];
  games: number; support: PairOfHeroes | null;
}
export interface Table { name: string; heroes: string[]; team: number; shared: boolean; facts: Record<string, unknown> }
export interface Bin { low: number; high: number; games: number; predicted: number | null; won: number | null; at_least: number | null; at_most: number | null }
export interface Calibration {
  games: number; first: number | null; last: number | null; brier: number | null; brier_constant: number | null; error: number | null; bins: Bin[];
  gain_error: number | null; is_informative: boolean | null;
}

const names = (name: string): string[] => (query.value.get(name) ?? "").split(",").filter(Boolean);

export const radiant = computed(() => names("radiant"));
export const dire = computed(() => names("dire"));
export const banned = computed(() => names("banned"));
export const order = computed(() => query.value.get("order") ?? "");
export const table = computed(() => query.value.get("table") ?? "");
/** The team that the person picks for; the model picks for the other one. "": the person picks for both. */
export const side = computed<Team | "">(() => { const said = query.value.get("side"); return said === "R" || said === "D" ? said : ""; });

const list = (heroes: readonly string[]): string | null => heroes.length ? heroes.join(",") : null;

export function pick(team: Team, hero: string): void {
  if (team === "R") note({ radiant: list([...radiant.value, hero]) });
  else note({ dire: list([...dire.value, hero]) });
}

export function ban(hero: string): void {
  note({ banned: list(banned.value.includes(hero) ? banned.value.filter((h) => h !== hero) : [...banned.value, hero]) });
}

/** Takes back the last pick; against the model, back to the person's own last one. */
export function undo(whole: string): void {
  let mine = radiant.value, theirs = dire.value, made = mine.length + theirs.length;
  do {
    made -= 1;
    if (whole[made] === "R") mine = mine.slice(0, -1);
    else theirs = theirs.slice(0, -1);
  } while (side.value && made > 0 && whole[made] !== side.value);
  note({ radiant: list(mine), dire: list(theirs) });
}

export function begin(): void {
  note({ radiant: null, dire: null, banned: null });
}

/** Formats a hero's name: "queen_of_pain" is "queen of pain". */
export const said = (hero: string): string => hero.replaceAll("_", " ");
