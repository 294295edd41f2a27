// Decodes the named files and prints the contents of each as a line of JSON, for tests/console/test_decoder.py.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { readChunk } from "../src/games/decode/chunk.ts";
import { Splitter } from "../src/games/decode/stream.ts";
import { Damaged } from "../src/games/decode/schema.ts";

async function decoded(path: string): Promise<Record<string, unknown>> {
  const splitter = new Splitter(), hash = createHash("sha256"), events: unknown[] = [];
  let steps = 0, index: unknown = null, end = false, schema;
  try {
    const data = readFileSync(path);
    for (let at = 0; at < data.length; at += 10_007)
      for (const piece of await splitter.take(data.subarray(at, at + 10_007))) {
        if (piece.kind === "header") schema = piece.header.schema;
        else if (piece.kind === "index") index = piece.index;
        else if (piece.kind === "end") end = true;
        else
          for (const step of await readChunk(piece.data, schema!)) {
            for (const table of schema!.tables) hash.update(new Uint8Array(step.frame.tables[table.name]!.buffer));
            for (const bits of schema!.bits) hash.update(step.frame.bits[bits.name]!);
            events.push(...step.events);
            steps++;
          }
      }
  } catch (error) {
    if (error instanceof Damaged) return { refused: error.message };
    throw error;
  }
  return { steps, sha256: hash.digest("hex"), events, index, end };
}

for (const path of process.argv.slice(2)) console.log(JSON.stringify(await decoded(path)));
