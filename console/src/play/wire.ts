// Messages of a played game (docs/play-protocol.md): the server's text messages, and the client's commands.

export const ENGINE_FRAMES_PER_SECOND = 30;

/** A unit by its slot and generation. The generation changes when the slot is given to another unit. */
export type UnitId = readonly [number, number];
/** A position in 1/65535 of the map's side. */
export type Place = readonly [number, number];

export type OrderKind =
  "move" | "follow" | "attack" | "attack_move" | "stop" | "hold" | "cast" | "use" | "toggle" | "level" | "talent" | "buy" | "sell" | "swap" |
  "drop" | "pickup" | "courier" | "buyback" | "glyph" | "shrine" | "scan";

export interface Order {
  readonly kind: OrderKind; readonly target?: UnitId; readonly at?: Place; readonly slot?: number; readonly to?: number; readonly item?: string;
  readonly queue?: boolean; readonly hero?: number;
}

export interface Seat { readonly hero: number; readonly name: string; readonly team: number; readonly who: string | null; readonly held: boolean }
export interface Ack { readonly type: "ack"; readonly n: number; readonly frame: number; readonly ok: boolean; readonly reason: string }
export interface State {
  readonly type: "state"; readonly running: boolean; readonly winner: number | null; readonly seats: readonly Seat[]; readonly version: number | null;
  readonly late: number; readonly delay_ms: number;
}
export interface Ping { readonly type: "ping"; readonly who: string; readonly at: Place | null }
export interface Refused { readonly type: "refused"; readonly reason: string }
/** winner: 0 nobody, 1 Radiant, 2 Dire, 3 a draw. reason: "" after a whole game; closed, abandoned, drained or lost. */
export interface End { readonly type: "end"; readonly winner: number | null; readonly reason: string; readonly rating: { readonly mu: number; readonly sigma: number } | null; readonly recorded: boolean }
export type ServerMessage = Ack | State | Ping | Refused | End;

const finite = (v: unknown): number | null => typeof v === "number" && Number.isFinite(v) ? v : null;
const place = (v: unknown): Place | null => Array.isArray(v) && finite(v[0]) !== null && finite(v[1]) !== null ? [Number(v[0]), Number(v[1])] : null;

function seat(v: unknown): Seat {
  const given = (v ?? {}) as Record<string, unknown>;
  return { hero: Number(given.hero), name: String(given.name ?? ""), team: Number(given.team), who: typeof given.who === "string" ? given.who : null,
    held: given.held === true };
}

/** Parses a text message; null for a type that this page does not know, which a newer server may send. */
export function parseMessage(text: string): ServerMessage | null {
  let given: Record<string, unknown>;
  try {
    given = JSON.parse(text);
  } catch {
    return null;
  }
  const reason = String(given?.reason ?? "");
  switch (given?.type) {
    case "ack": return { type: "ack", n: Number(given.n), frame: finite(given.frame) ?? 0, ok: given.ok === true, reason };
    case "state": return { type: "state", running: given.running === true, winner: finite(given.winner),
      seats: Array.isArray(given.seats) ? given.seats.map(seat) : [], version: finite(given.version), late: finite(given.late) ?? 0,
      delay_ms: finite(given.delay_ms) ?? 0 };
    case "ping": return { type: "ping", who: String(given.who ?? ""), at: place(given.at) };
    case "refused": return { type: "refused", reason };
    case "end": {
      const rating = given.rating as { mu?: unknown; sigma?: unknown } | null | undefined;
      const mu = finite(rating?.mu), sigma = finite(rating?.sigma);
      return { type: "end", winner: finite(given.winner), reason, rating: mu !== null && sigma !== null ? { mu, sigma } : null, recorded: given.recorded === true };
    }
    default: return null;
  }
}

// Reasons of refusals, of the game and of the server.
const REASONS: Readonly<Record<string, string>> = {
  dead: "your hero is dead", alive: "your hero is alive", stunned: "your hero is stunned", silenced: "your hero is silenced", muted: "items cannot be used now",
  rooted: "your hero cannot move", disarmed: "your hero cannot attack", mana: "not enough mana", cooldown: "not ready yet", not_learned: "not learned yet",
  points: "there is no point to spend", level: "your hero's level is too low", taken: "that is taken already", unseen: "that cannot be seen",
  target: "that cannot be a target", range: "out of range", gold: "not enough gold", shop: "your hero is at no shop that sells it", stock: "out of stock",
  full: "there is no room left", slot: "there is nothing in that slot that this can be done with", item: "that cannot be bought, sold or dropped",
  courier: "there is nothing for the courier to do", busy: "the courier or the item is in use", not_held: "the agent has your hero", agent: "the agent has your hero", paused: "the game is paused", spectator: "spectators give no orders", hero: "that is not your hero",
  game_over: "the game is over", unknown: "this game has no such thing", rate: "too many orders in a second", over: "there is no such game, or it is over",
  away: "the server of this game is gone", unreadable: "the server did not understand this page",
};

/** The text of a refusal's reason. An unknown reason is shown as it is. */
export function reasonText(reason: string): string {
  return REASONS[reason] ?? (reason ? reason.replaceAll("_", " ") : "refused");
}
