// Frame layout of a recording, read from the recording (libs/dota/spectator/schema.py).

export interface Table { readonly name: string; readonly rows: number; readonly fields: readonly string[]; readonly masks: number }
export interface Bits { readonly name: string; readonly count: number }
export interface Schema { readonly tables: readonly Table[]; readonly bits: readonly Bits[]; readonly hash: string }

/** A frame: each table's rows one after another, each bitmap's bytes with the lowest bit first. */
export interface Frame {
  readonly tables: Readonly<Record<string, Uint16Array>>;
  readonly bits: Readonly<Record<string, Uint8Array>>;
}

/** Error of a damaged or hostile recording. The message is for people. */
export class Damaged extends Error {}

const MAX_ROWS = 4096, MAX_FIELDS = 64, MAX_BITS = 1 << 16, MAX_PARTS = 32;

function isNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((v) => typeof v === "string");
}

/** Returns the schema in a recording's header. Raises Damaged for a malformed or too large one. */
export async function schemaOf(described: unknown): Promise<Schema> {
  const given = (described ?? {}) as { tables?: unknown; bits?: unknown };
  if (!Array.isArray(given.tables) || !Array.isArray(given.bits)) throw new Damaged("its schema cannot be read");
  const tables = given.tables.map((t: unknown): Table => {
    const [name, rows, fields] = Array.isArray(t) ? t : [];
    if (typeof name !== "string" || !Number.isInteger(rows) || !isNames(fields) || rows < 1 || rows > MAX_ROWS ||
        fields.length < 1 || fields.length > MAX_FIELDS)
      throw new Damaged("its schema has a table that cannot be");
    return { name, rows, fields, masks: Math.ceil(fields.length / 16) };
  });
  const bits = given.bits.map((b: unknown): Bits => {
    const [name, count] = Array.isArray(b) ? b : [];
    if (typeof name !== "string" || !Number.isInteger(count) || count < 1 || count > MAX_BITS)
      throw new Damaged("its schema has a bitmap that cannot be");
    return { name, count };
  });
  const names = [...tables, ...bits].map((p) => p.name);
  if (new Set(names).size !== names.length || names.length > MAX_PARTS) throw new Damaged("its schema names a part twice");
  const text = JSON.stringify({ tables: tables.map((t) => [t.name, t.rows, t.fields]), bits: bits.map((b) => [b.name, b.count]) });
  // Python escapes non-ASCII characters; names of the game are ASCII.
  const digest = await sha256(new TextEncoder().encode(text));
  return { tables, bits, hash: digest.slice(0, 16) };
}

async function sha256(data: Uint8Array<ArrayBuffer>): Promise<string> {
  if (!globalThis.crypto?.subtle) return ""; // plain HTTP other than localhost has no crypto: chunk hashes are not checked
  return [...new Uint8Array(await crypto.subtle.digest("SHA-256", data))].map((b) => b.toString(16).padStart(2, "0")).join("");
}

/** Returns a frame of zeros. */
export function emptyFrame(schema: Schema): Frame {
  return {
    tables: Object.fromEntries(schema.tables.map((t) => [t.name, new Uint16Array(t.rows * t.fields.length)])),
    bits: Object.fromEntries(schema.bits.map((b) => [b.name, new Uint8Array((b.count + 7) >> 3)])),
  };
}

/** Returns a copy of a frame. */
export function copyFrame(frame: Frame): Frame {
  return {
    tables: Object.fromEntries(Object.entries(frame.tables).map(([name, table]) => [name, table.slice()])),
    bits: Object.fromEntries(Object.entries(frame.bits).map(([name, bits]) => [name, bits.slice()])),
  };
}
